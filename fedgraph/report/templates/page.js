"use strict";
(() => {
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
  document.documentElement.classList.remove("bare");

  // whoever follows a link into something folded sees it opened
  function show(id) {
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    $(".found").forEach((node) => node.classList.remove("found"));
    target.classList.add("found");
    target.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", () => show(decodeURIComponent(location.hash.slice(1))));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) show(decodeURIComponent(link.hash.slice(1)));
  });

  // the first pictures are drawn at once, and a still one stands until then; the others where they are seen
  const { look, specs } = JSON.parse(document.getElementById("specs").textContent);
  async function draw(place) {
    if (place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const box = document.createElement("div");
    box.style.width = "100%";
    place.append(box);
    const { view } = await vegaEmbed(box, specs[place.dataset.spec], { actions: false, renderer: "svg", mode: "vega-lite", config: look });
    // a click on a mark goes to its row
    view.addEventListener("click", (_, item) => { if (item?.datum?.slug) location.hash = item.datum.slug; });
  }
  const seen = new IntersectionObserver((found) => {
    for (const one of found) if (one.isIntersecting) { seen.unobserve(one.target); draw(one.target); }
  }, { rootMargin: "400px" });
  Promise.all($("#answer .chart").map(draw)).then(() => $(".still").forEach((still) => still.remove()));
  $(".chart:not([data-drawn])").forEach((place) => seen.observe(place));
  addEventListener("beforeprint", () => $("details[open] .chart, section > figure .chart").forEach(draw));

  // a click on the head of a column sorts its table of rows
  for (const all of $("table.everything")) $("th button", all).forEach((button, i) => button.addEventListener("click", () => {
    const head = button.parentElement, down = head.getAttribute("aria-sort") === "ascending";
    $("th", all).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[i].dataset.v ?? row.cells[i].textContent;
    const compare = (a, b) => (isNaN(a) || isNaN(b) || a === "" || b === "" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    const rows = [...all.tBodies[0].rows].sort((a, b) => (down ? -1 : 1) * compare(value(a), value(b)));
    all.tBodies[0].append(...rows);
  }));
  show(decodeURIComponent(location.hash.slice(1)));
})();
