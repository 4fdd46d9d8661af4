"use strict";
(() => {
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") node.textContent = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };

  // ---- narrow screens show a table's rows as cards: every cell is told the head of its column ----------------------
  document.documentElement.classList.remove("bare");
  for (const plain of $("table.plain")) {
    const heads = [...plain.tHead.rows[0].cells].map((head) => head.textContent);
    for (const row of plain.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.label = heads[i]; });
  }

  // ---- charts: the legend shows and hides ----------------------------------------------------------------------------
  for (const figure of $("figure.drawn")) {
    const hidden = new Set();
    for (const button of $(".legend button", figure)) {
      button.title = "Show or hide";
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        if (!hidden.delete(button.dataset.key)) hidden.add(button.dataset.key);
        button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.key)));
        for (const line of $("g.line", figure)) line.toggleAttribute("hidden", line.dataset.keys.split(" ").some((key) => hidden.has(key)));
      });
    }
  }

  // ---- what a number says, under the pointer or after a tap --------------------------------------------------------
  const tip = document.getElementById("tip");
  const shared = document.getElementById("tips"), tips = shared ? JSON.parse(shared.textContent) : [];
  for (const cell of $("#everything td[data-t]")) cell.dataset.tip = tips[cell.dataset.t];
  function explain(target) {
    const line = target.closest(".line")?.dataset.tip;
    const axes = target.closest("[data-told]")?.dataset.told.split("\n"), values = target.dataset.tip?.split("\n");
    const own = axes && values ? axes.map((name, i) => `${name}: ${values[i]}`).join("\n") : target.dataset.tip;
    const said = [[line, own].filter(Boolean).join("\n"), target.closest("tbody") && headOf(target)?.dataset.tip].filter(Boolean).join(" ");
    if (!said) return;
    tip.textContent = said;
    tip.hidden = false;
    const box = target.getBoundingClientRect(), width = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8)) + scrollX}px`;
    const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.top = `${(below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + scrollY}px`;
  }
  const headOf = (cell) => cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  const told = (event) => event.target.closest?.("#everything td:not(.open), #everything th[data-tip], .line use, abbr[data-tip]");
  for (const kind of ["mouseover", "click", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const target = told(event);
      if (target && !target.closest("tr.more")) explain(target);
      else tip.hidden = true;
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // ---- the one table -----------------------------------------------------------------------------------------------
  function table() {
    const all = document.getElementById("everything");
    if (!all) return;
    const body = all.tBodies[0], rows = [...body.rows], heads = [...all.tHead.rows[0].cells];
    const shown = document.getElementById("shown"), filters = document.getElementById("filters");

    const closeAll = () => { $("tr.more", body).forEach((r) => r.remove()); $("td.open button", body).forEach((b) => { b.setAttribute("aria-expanded", "false"); b.textContent = "+"; }); };
    function open(row, button) {
      if (button.getAttribute("aria-expanded") === "true") {
        row.nextElementSibling.remove();
        button.setAttribute("aria-expanded", "false");
        button.textContent = "+";
        return;
      }
      const list = make("dl", { class: "facts" });
      [...row.cells].slice(1).forEach((cell, i) => {
        const said = cell.dataset.tip ? ` — ${cell.dataset.tip}` : "";
        list.append(make("dt", { text: heads[i + 1].dataset.title }), make("dd", { text: cell.textContent + said }));
      });
      const link = make("a", { href: row.dataset.link, text: "The privacy of this row in plain words" });
      const more = make("tr", { class: "more" }, make("td", { colspan: heads.length }, list, link));
      row.after(more);
      button.setAttribute("aria-expanded", "true");
      button.textContent = "−";
    }
    for (const row of rows) {
      const button = make("button", { type: "button", "aria-expanded": "false", "aria-label": `Everything about ${row.cells[1].textContent}`, text: "+" });
      button.addEventListener("click", () => open(row, button));
      row.dataset.link = row.cells[0].firstChild.getAttribute("href");
      row.cells[0].replaceChildren(button);
    }

    heads.slice(1).forEach((head, i) => {
      head.dataset.title = head.textContent;
      const button = make("button", { type: "button", text: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending", number = head.classList.contains("number") || head.dataset.title === "trust";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        closeAll();
        const value = (row) => { const cell = row.cells[i + 1], v = cell.dataset.v ?? cell.textContent; return number ? (v === "inf" ? Infinity : v === "-inf" ? -Infinity : parseFloat(v)) : v; };
        const order = (a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; };
        rows.sort((a, b) => (up ? order(a, b) : order(b, a)));
        body.append(...rows);
      });
    });

    function filter() {
      closeAll();
      const kinds = $("select", filters), most = parseFloat(filters.elements.epsilon.value);
      let count = 0;
      for (const row of rows) {
        const own = row.dataset.kinds.split(" "), same = kinds.every((select, i) => !select.value || select.selectedIndex === Number(own[i]));
        const epsilon = row.dataset.epsilon === "inf" ? Infinity : Number(row.dataset.epsilon);
        row.hidden = !(same && (Number.isNaN(most) || epsilon <= most * (1 + 1e-9)));
        count += !row.hidden;
      }
      shown.textContent = `${count} of ${rows.length} rows`;
    }
    filters.hidden = false;
    filters.addEventListener("input", () => { filter(); const folded = all.closest("details"); if (folded) folded.open = true; });
    filters.addEventListener("submit", (event) => event.preventDefault());
    filters.addEventListener("reset", () => setTimeout(filter));
    filter();
  }

  // ---- the name of a row leads to itself, so that it can be copied ----------------------------------------------------
  for (const name of $(".budget h3")) name.replaceChildren(make("a", { href: `#${name.parentNode.id}`, text: name.textContent }));

  // ---- links open what they lead to; print shows everything ---------------------------------------------------------
  function follow() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target) target.scrollIntoView();
  }
  let closed = [];
  addEventListener("beforeprint", () => { closed = $("details:not([open])"); closed.forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => { if (event.target.closest("a[href^='#']")) setTimeout(follow); });

  table();
  follow();
})();
