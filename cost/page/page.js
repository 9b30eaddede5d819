"use strict";
(() => {
  const boxes = [...document.querySelectorAll(".flame .b")].map((g) => ({
    g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d,
    rect: g.querySelector("rect"), text: g.querySelector("text"), title: g.querySelector("title").textContent,
  }));
  const whole = document.getElementById("whole");
  const show = (z) => {
    for (const b of boxes) {
      const inside = b.x + b.w > z.x + 1e-9 && b.x < z.x + z.w - 1e-9;
      b.g.style.display = inside ? "" : "none";
      if (!inside) continue;
      const from = Math.max(0, (b.x - z.x) / z.w), to = Math.min(1, (b.x + b.w - z.x) / z.w);
      const px = from * 1000, wide = Math.max((to - from) * 1000 - 0.3, 0.1);
      b.rect.setAttribute("x", px);
      b.rect.setAttribute("width", wide);
      const letters = Math.floor((wide - 4) / 6.2);
      const name = b.title.split(/, of |: /)[0].replace(/^.*\//, "");
      if (!b.text && letters >= 3) {
        b.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        b.text.setAttribute("y", +b.rect.getAttribute("y") + 11);
        b.text.setAttribute("fill", "#000");
        b.g.append(b.text);
      }
      if (b.text) {
        b.text.setAttribute("x", px + 2);
        b.text.textContent = letters < 3 ? "" : name.length <= letters ? name : name.slice(0, letters - 1) + "…";
      }
    }
    whole.hidden = z.w > 0.9999;
  };
  for (const b of boxes) b.g.addEventListener("click", () => show(b));
  whole.addEventListener("click", () => show({ x: 0, w: 1 }));
  const found = document.getElementById("found");
  document.getElementById("find").addEventListener("input", (e) => {
    const text = e.target.value.trim().toLowerCase();
    let sum = 0, end = -1;
    for (const b of boxes) {
      const hit = text !== "" && b.title.toLowerCase().includes(text);
      b.g.classList.toggle("dim", text !== "" && !hit);
      if (hit && b.x >= end - 1e-9) { sum += b.w; end = b.x + b.w; }
    }
    found.textContent = text === "" ? "" : (100 * sum).toFixed(1) + " % of the CPU";
  });
})();
