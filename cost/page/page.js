"use strict";
(() => {
  const wide = 1000, letter = 6.2;
  const shorten = (name, letters) => {
    const short = name.replace(/^.*\//, "");
    return letters < 3 ? "" : short.length <= letters ? short : short.slice(0, letters - 1) + "…";
  };
  const pattern = (text) => {
    try { return new RegExp(text, "i"); } catch { return null; }
  };

  const graph = (section) => {
    const svg = section.querySelector(".flame");
    const boxes = [...svg.querySelectorAll(".b")].map((g) => ({
      g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, owner: g.dataset.o || "", from: g.dataset.f || "",
      rect: g.querySelector("rect"), text: g.querySelector("text"), title: g.querySelector("title").textContent,
    }));
    for (const b of boxes) b.name = b.title.split(/, of |, begins |, an owner|: /)[0];
    const whole = section.querySelector(".whole"), found = section.querySelector(".found"), find = section.querySelector(".find");
    let at = boxes[0], zoomed = boxes[0];

    const label = (b, px, width) => {
      const letters = Math.floor((width - 4) / letter);
      if (!b.text && letters >= 3) {
        b.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        b.text.setAttribute("y", +b.rect.getAttribute("y") + 11);
        b.text.setAttribute("fill", "#000");
        b.g.append(b.text);
      }
      if (!b.text) return;
      b.text.setAttribute("x", px + 2);
      b.text.textContent = shorten(b.name, letters);
    };
    const zoom = (z) => {
      zoomed = z;
      for (const b of boxes) {
        const inside = b.x + b.w > z.x + 1e-9 && b.x < z.x + z.w - 1e-9;
        b.g.style.display = inside ? "" : "none";
        if (!inside) continue;
        const from = Math.max(0, (b.x - z.x) / z.w), to = Math.min(1, (b.x + b.w - z.x) / z.w);
        const width = Math.max((to - from) * wide - 0.3, 0.1);
        b.rect.setAttribute("x", from * wide);
        b.rect.setAttribute("width", width);
        label(b, from * wide, width);
      }
      whole.hidden = z.w > 0.9999;
    };
    // Boxes stand in the order of a walk from the root, so that of those that
    // match none counts that lies within the one counted last. Others are only
    // lit with them.
    const mark = (match, lit) => {
      let sum = 0, end = -1, n = 0;
      for (const b of boxes) {
        const hit = match && match(b);
        b.g.classList.toggle("dim", !!match && !hit && !lit?.(b));
        if (!hit) continue;
        n++;
        if (b.x >= end - 1e-9) { sum += b.w; end = b.x + b.w; }
      }
      found.textContent = match ? `${n} ${n === 1 ? "box" : "boxes"}, ${(100 * sum).toFixed(1)} % of all` : "";
    };
    const search = () => {
      const text = find.value.trim(), re = pattern(text);
      find.setAttribute("aria-invalid", re === null);
      if (re === null) { found.textContent = "no regular expression"; return; }
      mark(text === "" ? null : (b) => re.test(b.name) || re.test(b.owner));
    };
    const select = (b) => {
      if (!b) return;
      at.g.classList.remove("at");
      at = b;
      b.g.classList.add("at");
      found.textContent = b.title;
    };
    const shown = (b) => b.g.style.display !== "none";
    const inside = (b, on) => b.x >= on.x - 1e-9 && b.x + b.w <= on.x + on.w + 1e-9;
    const beside = (step) => {
      for (let i = boxes.indexOf(at) + step; i >= 0 && i < boxes.length; i += step) {
        if (boxes[i].d === at.d && shown(boxes[i])) return boxes[i];
      }
    };
    const moves = {
      ArrowUp: () => select(boxes.filter((b) => b.d === at.d + 1 && inside(b, at) && shown(b)).sort((a, b) => b.w - a.w)[0]),
      ArrowDown: () => select(boxes.find((b) => b.d === at.d - 1 && inside(at, b))),
      ArrowRight: () => select(beside(1)),
      ArrowLeft: () => select(beside(-1)),
      Enter: () => zoom(at),
      Escape: () => { zoom(boxes[0]); find.value = ""; mark(null); },
    };

    for (const b of boxes) b.g.addEventListener("click", () => { select(b); zoom(b === zoomed ? boxes[0] : b); });
    whole.addEventListener("click", () => zoom(boxes[0]));
    find.addEventListener("input", search);
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (e) => {
      if (!moves[e.key] || e.ctrlKey || e.altKey || e.metaKey) return;
      e.preventDefault();
      moves[e.key]();
    });
    return { find, show: (owner) => mark(owner === null ? null : (b) => b.owner === owner, (b) => b.from === owner) };
  };

  const graphs = [...document.querySelectorAll(".graph")].map(graph);
  let chosen = null;
  for (const dot of document.querySelectorAll("button.dot")) {
    dot.addEventListener("click", () => {
      chosen = chosen === dot.dataset.owner ? null : dot.dataset.owner;
      for (const d of document.querySelectorAll("button.dot")) d.setAttribute("aria-pressed", d.dataset.owner === chosen);
      for (const g of graphs) g.show(chosen);
    });
  }
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.target.tagName === "INPUT" || graphs.length === 0) return;
    e.preventDefault();
    graphs[0].find.focus();
  });
})();
