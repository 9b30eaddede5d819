// Widens drawings: without it they are as wide as the page, and complete.
document.querySelectorAll(".zoom").forEach(function (box) {
  var wide = box.firstElementChild, factor = 1, bar = document.createElement("div");
  bar.className = "zoomer";
  [["−", "Narrower", 0.5], ["+", "Wider", 2]].forEach(function (b) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = b[0];
    button.setAttribute("aria-label", b[1]);
    button.onclick = function () {
      var middle = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth;
      factor = Math.min(8, Math.max(1, factor * b[2]));
      wide.style.width = 100 * factor + "%";
      box.scrollLeft = middle * box.scrollWidth - box.clientWidth / 2;
    };
    bar.appendChild(button);
  });
  box.parentNode.insertBefore(bar, box);
});
