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

  // ---- charts: the picture is replaced by one that answers the pointer --------------------------------------------
  const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "wye", "cross", "times"];
  const DASHES = ["6 4", "2 4", "8 3 2 3"]; // of the horizontal lines of a panel, in their order
  const colour = (i) => `var(--c${i % 10})`;
  const symbol = (i) => SYMBOLS[i % SYMBOLS.length];

  function glyph(entry) {
    const shape = entry.symbol === undefined ? "square" : symbol(entry.symbol);
    const kinds = { circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle, diamond: d3.symbolDiamond,
      star: d3.symbolStar, wye: d3.symbolWye, cross: d3.symbolCross, times: d3.symbolTimes };
    const svg = d3.create("svg").attr("viewBox", "-8 -8 16 16").attr("aria-hidden", "true");
    svg.append("path").attr("d", d3.symbol(kinds[shape], 90)()).attr("fill", entry.colour === undefined ? "currentColor" : colour(entry.colour))
      .attr("stroke", entry.colour === undefined ? "currentColor" : colour(entry.colour));
    return svg.node();
  }

  // A name in lines of at most so many letters, broken between words.
  const wrapped = (text, letters) => text.split(" ").reduce((rows, word) => {
    if (rows.length && rows.at(-1).length + 1 + word.length <= letters) rows.push(`${rows.pop()} ${word}`);
    else rows.push(word);
    return rows;
  }, []).join("\n");

  function panel(spec, hidden, range, caption, width) {
    const points = [], lines = [], height = Math.round(Math.max(260, Math.min(400, width * 0.7)));
    for (const line of spec.lines) {
      if (line.keys.some((key, i) => hidden.has(`${i}/${key}`))) continue;
      const own = line.points.map(([x, y, e, tip]) => ({ x, y, e, tip, c: colour(line.colour), s: symbol(line.symbol), z: lines.length }));
      points.push(...own);
      if (line.joined && new Set(own.map((p) => p.x)).size > 1) lines.push(own);
    }
    const ticks = new Map(spec.ticks.map(([at, label]) => [at, label]));
    const places = [...ticks.keys()];
    const letters = Math.max(7, Math.floor((width - 60) / places.length / 6.6)), named = places.map((at) => wrapped(ticks.get(at), letters));
    const deep = Math.max(...named.map((text) => text.split("\n").length));
    const room = Math.max(0.25, 0.06 * (Math.max(...places) - Math.min(...places)));
    const marks = [Plot.gridY({ strokeOpacity: 0.15 }), Plot.axisX(places, { tickFormat: (d, i) => named[i], label: spec.xlabel, labelArrow: "none", labelAnchor: "center", fontSize: 12 }),
      Plot.axisY({ label: spec.ylabel, fontSize: 12, labelArrow: "none" })];
    spec.levels.forEach((level, i) => marks.push(Plot.ruleY([level.y], { strokeDasharray: DASHES[i % 3], strokeOpacity: 0.7 })));
    marks.push(Plot.link(points.filter((p) => p.e > 0), { x1: "x", x2: "x", y1: (p) => p.y - p.e, y2: (p) => p.y + p.e, stroke: "c", strokeOpacity: 0.7 }));
    marks.push(Plot.line(lines.flat(), { x: "x", y: "y", z: "z", stroke: "c", strokeWidth: 1.6 }));
    marks.push(Plot.dot(points, { x: "x", y: "y", stroke: "c", fill: "c", symbol: "s", r: 4.5 }));
    marks.push(Plot.tip(points, Plot.pointer({ x: "x", y: "y", title: "tip", maxRadius: 30, fontSize: 12, fill: "var(--back)", stroke: "var(--soft)" })));
    return Plot.plot({
      width, height, marginTop: 30, marginLeft: 52, marginBottom: 28 + 14 * deep, style: { fontFamily: "inherit" }, ariaLabel: `${spec.title}: ${caption}`,
      x: { type: "linear", domain: [Math.min(...places) - room, Math.max(...places) + room] },
      y: { domain: range, nice: true }, color: { type: "identity" }, symbol: { type: "identity" }, marks,
    });
  }

  // What the dashed lines of a panel say, above it: inside, points and lines would cover the words.
  function levels(spec) {
    return spec.levels.map((level, i) => {
      const dash = d3.create("svg").attr("viewBox", "0 0 28 8").attr("aria-hidden", "true");
      dash.append("path").attr("d", "M0 4H28").attr("stroke", "currentColor").attr("stroke-width", 1.5).attr("stroke-dasharray", DASHES[i % 3]);
      return make("span", {}, dash.node(), make("span", { text: `${level.label} ${level.y.toFixed(2)}` }));
    });
  }

  function bounds(panels) {
    const values = panels.flatMap((p) => [...p.lines.flatMap((l) => l.points.flatMap(([, y, e]) => [y - e, y + e])), ...p.levels.map((l) => l.y)]);
    const low = Math.min(...values), high = Math.max(...values), gap = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - gap, high + gap];
  }

  function chart(figure) {
    const data = figure.querySelector("script[type='application/json']");
    if (!data || typeof Plot === "undefined") return;
    const spec = JSON.parse(data.textContent), caption = figure.querySelector("figcaption").textContent;
    const hidden = new Set(), shared = bounds(spec.panels);
    const plots = make("div", { class: `panels${spec.panels.length === 1 ? " one" : ""}` });
    const draw = () => plots.replaceChildren(...spec.panels.map((p, i) => {
      const room = plots.children[i]?.clientWidth || Math.min(figure.clientWidth, spec.panels.length === 1 ? 760 : 400);
      const svg = panel(p, hidden, spec.shared ? shared : bounds([p]), caption, Math.min(760, Math.max(280, room)));
      svg.setAttribute("role", "img");
      $("[aria-label]", svg).forEach((g) => { g.dataset.mark = g.getAttribute("aria-label"); g.removeAttribute("aria-label"); });
      const head = p.title ? [make("h4", { text: p.title, role: "presentation" })] : [];
      return make("div", {}, ...head, ...(p.levels.length ? [make("p", { class: "levels" }, ...levels(p))] : []), svg);
    }));
    const legends = spec.legend.map((group, i) => {
      const row = make("div", { class: "legend", role: "group", "aria-label": group.title || "Lines" });
      if (group.title) row.append(make("span", { text: `${group.title}:` }));
      for (const entry of group.entries) {
        const button = make("button", { type: "button", "aria-pressed": "true", title: "Show or hide" }, glyph(entry), make("span", { text: entry.label }));
        button.addEventListener("click", () => {
          const key = `${i}/${entry.label}`;
          if (!hidden.delete(key)) hidden.add(key);
          button.setAttribute("aria-pressed", String(!hidden.has(key)));
          draw();
        });
        row.append(button);
      }
      return row;
    });
    figure.querySelector(".plot").replaceChildren(...legends, plots);
    draw();
    draw(); // once more: now every panel knows the width that it has
    let width = plots.clientWidth;
    new ResizeObserver(() => {
      if (plots.clientWidth && Math.abs(plots.clientWidth - width) > 1) { width = plots.clientWidth; plots.replaceChildren(); draw(); draw(); }
    }).observe(figure);
  }

  // ---- what a number says, under the pointer or after a tap --------------------------------------------------------
  const tip = document.getElementById("tip");
  const shared = document.getElementById("tips"), tips = shared ? JSON.parse(shared.textContent) : [];
  for (const cell of $("#everything td[data-t]")) cell.dataset.tip = tips[cell.dataset.t];
  function explain(target) {
    const said = [target.dataset.tip, target.closest("tbody") && headOf(target)?.dataset.tip].filter(Boolean).join(" ");
    if (!said) return;
    tip.textContent = said;
    tip.hidden = false;
    const box = target.getBoundingClientRect(), width = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8)) + scrollX}px`;
    const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.top = `${(below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + scrollY}px`;
  }
  const headOf = (cell) => cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  const told = (event) => event.target.closest?.("#everything td:not(.open), #everything th[data-tip]");
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
      const link = make("a", { href: `#${row.dataset.anchor}`, text: "The privacy of this row in plain words" });
      const more = make("tr", { class: "more" }, make("td", { colspan: heads.length }, list, link));
      row.after(more);
      button.setAttribute("aria-expanded", "true");
      button.textContent = "−";
    }
    for (const row of rows) {
      const button = make("button", { type: "button", "aria-expanded": "false", "aria-label": `Everything about ${row.cells[1].textContent}`, text: "+" });
      button.addEventListener("click", () => open(row, button));
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
        const value = (row) => { const cell = row.cells[i + 1], v = cell.dataset.v ?? cell.textContent; return number ? (v === "inf" ? Infinity : v === "-inf" ? -Infinity : Number(v)) : v; };
        const order = (a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; };
        rows.sort((a, b) => (up ? order(a, b) : order(b, a)));
        body.append(...rows);
      });
    });

    function filter() {
      closeAll();
      const wanted = new FormData(filters), most = parseFloat(wanted.get("epsilon"));
      let count = 0;
      for (const row of rows) {
        const same = ["dataset", "unit", "trust", "method"].every((key) => !wanted.get(key) || row.dataset[key] === wanted.get(key));
        const epsilon = row.dataset.epsilon === "inf" ? Infinity : Number(row.dataset.epsilon);
        row.hidden = !(same && (Number.isNaN(most) || epsilon <= most * (1 + 1e-9)));
        count += !row.hidden;
      }
      shown.textContent = `${count} of ${rows.length} rows`;
    }
    filters.hidden = false;
    filters.addEventListener("input", filter);
    filters.addEventListener("submit", (event) => event.preventDefault());
    filters.addEventListener("reset", () => setTimeout(filter));
    filter();
  }

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

  $("figure.drawn").forEach(chart);
  table();
  follow();
})();
