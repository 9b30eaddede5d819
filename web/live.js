// Follows a run: the server sends the page's part anew when the run has another trial.
(function () {
  var state = document.getElementById("live-state"), part = document.getElementById("live");
  if (!state || !part || !window.EventSource) return;
  var source = new EventSource(state.dataset.events);
  state.textContent = "Connecting …";
  source.addEventListener("part", function (e) {
    var message = JSON.parse(e.data), open = [];
    part.querySelectorAll("details[open]").forEach(function (d) { open.push(d.id); });
    part.innerHTML = message.html;
    open.forEach(function (id) { var d = id && document.getElementById(id); if (d) d.open = true; });
    state.textContent = message.state;
  });
  source.addEventListener("end", function (e) {
    state.textContent = JSON.parse(e.data).state;
    source.close();
  });
  source.onerror = function () {
    state.textContent = source.readyState === EventSource.CLOSED ?
      "The live view ended. Load the page again." : "The connection was lost. Trying again …";
  };
})();
