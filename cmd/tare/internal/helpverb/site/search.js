// Searches the sections of all pages. Their index is loaded when it is first needed.
"use strict";
(() => {
  const most = 20; // sections shown
  const around = 90; // characters shown on each side of a word
  const byId = (id) => document.getElementById(id);
  const form = byId("search"), input = byId("words"), results = byId("results"), count = byId("count"), found = byId("found");
  const narrow = matchMedia("(max-width: 48rem)");
  if (narrow.matches) document.querySelector("nav details").open = false;

  let loading;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "index.js";
    script.onload = () => done(window.tareSections.map((s) => ({...s, low: [s.title, s.page, s.text].map((t) => t.toLowerCase())})));
    script.onerror = failed;
    document.head.append(script);
  });

  // score is 0 unless the section has every word: in its title, its page's title or its text.
  const score = (section, words) => {
    let sum = 0;
    for (const word of words) {
      const at = section.low.findIndex((text) => text.includes(word));
      if (at < 0) return 0;
      sum += [10, 5, 1][at];
    }
    return sum;
  };

  const excerpt = (section, words) => {
    const at = Math.max(0, ...words.map((w) => section.low[2].indexOf(w)));
    const from = Math.max(0, at - around), to = at + around;
    return (from > 0 ? "…" : "") + section.text.slice(from, to) + (to < section.text.length ? "…" : "");
  };

  const show = (sections, words) => {
    const hits = sections.map((s) => [score(s, words), s]).filter(([n]) => n > 0).sort(([a], [b]) => b - a);
    found.replaceChildren(...hits.slice(0, most).map(([, s]) => {
      const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
      link.href = s.link;
      link.textContent = s.title === s.page ? s.page : `${s.page} › ${s.title}`;
      text.textContent = excerpt(s, words);
      item.append(link, text);
      return item;
    }));
    count.textContent = hits.length === 0 ? "No section has all these words." :
      `${hits.length} section${hits.length === 1 ? "" : "s"}${hits.length > most ? `, the best ${most} shown` : ""}`;
  };

  const search = async () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.hidden = words.length === 0;
    if (results.hidden) return;
    try {
      const typed = input.value, sections = await load();
      if (input.value === typed) show(sections, words);
    } catch {
      count.textContent = "The index, index.js, could not be loaded.";
    }
  };

  form.hidden = false;
  input.addEventListener("input", search);
  found.addEventListener("click", (e) => { if (e.target.closest("a")) results.hidden = true; });
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    found.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !e.ctrlKey && !e.metaKey && document.activeElement !== input) {
      e.preventDefault();
      input.focus();
    }
    if (e.key === "Escape" && document.activeElement === input) {
      input.value = "";
      results.hidden = true;
    }
  });
})();
