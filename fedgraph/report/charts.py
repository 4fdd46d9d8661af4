"""Pictures of a report: altair's charts as specifications that the page draws itself, and as picture files.

First what any picture is, then lines against something, maps, settings that vary between rows, and accuracy against provable ε,
a panel for each question. altair and vl-convert are imported when the first picture is made, so that a run starts without them.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fedgraph.cells import store
from fedgraph.report import answer, phrases
from fedgraph.report.answer import Question
from fedgraph.report.table import Line, keeps
from fedgraph.types import in_words_of

if TYPE_CHECKING:
    import pandas

Panel: TypeAlias = Any  # a chart of altair, or a part of one
Spec: TypeAlias = dict[str, Any]  # Vega-Lite
_GREY, INK, _FADED = "#9aa3ad", "#39424e", "#b9c0c8"
_WIDTH, HEIGHT = 380, 250  # of a panel in a file
_SCALE = 1.6  # pixels of a PNG file for each unit
_DODGE = 1.035  # factor on ε between levels of trust, so that equal numbers are seen
_ROOM = 0.34  # of the axis, for labels at the ends of lines
_LONGEST, _NARROW = 250, 310  # pixels: of a horizontal's label; of a panel below which it has its short one
_APART = 0.075  # of the height, between two labels
_AXES = {
    "accuracy": "right for … of 100", "auc": "AUC of hidden edges", "auroc": "AUROC of the rare class",
    "ari": "adjusted Rand index", "average_precision_positive": "average precision",
}  # fmt: skip
_LOOKS = {  # of a level of trust: colour and symbol, the same in every figure
    "curator": ("#1f6fb2", "circle"), "sums": ("#d9690b", "square"), "own-client": ("#2b8a3e", "triangle-up"),
    "active-server": ("#8e5bb5", "diamond"), "nobody": ("#d1477f", "cross"),
}  # fmt: skip
_TIPS = {"row": "row", "method": "method", "interval": "result", "provable": "ε provable", "published": "ε published",
         "trust": "trust", "assumed": "if"}  # fmt: skip
_LOOK: Spec = {
    "font": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "gridColor": "#e3e6ea", "domainColor": _GREY, "tickColor": _GREY,
        "labelFontSize": 12,
        "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 220,
    },
    "legend": {
        "labelColor": INK, "titleColor": INK, "orient": "bottom", "columns": 2, "labelLimit": 165, "labelFontSize": 12,
        "titleFontSize": 12, "symbolStrokeWidth": 2, "symbolBaseFillColor": INK,
        "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},  # Vega's, unknown to altair
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
    "header": {"labelColor": INK, "titleColor": INK},
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """One figure of a report."""

    caption: str
    panels: tuple[Panel, ...]  # what stands side by side in a picture, and one below the other on a narrow page
    columns: int = 4  # panels side by side in a picture; more would be too small to read
    live: bool = True  # whether the page draws it, so that points can be asked; thousands of marks are shown as a picture

    @cached_property
    def _drawn(self) -> list[Spec]:
        """Vega-Lite, one for each panel, whatever the number of marks; altair is slow, so that each is written once."""
        import altair

        with altair.data_transformers.disable_max_rows():
            drawn: list[Spec] = [panel.to_dict(validate=False) for panel in self.panels]
        for spec in drawn:
            every = spec["config"] | _LOOK
            spec["config"] = {k: {**spec["config"].get(k, {}), **v} if isinstance(v, dict) else v for k, v in every.items()}
        return drawn

    @property
    def specs(self) -> list[Spec]:
        """Vega-Lite, one for each panel, as wide as its place in the page; colours of text and rules are the page's."""
        own: Spec = {"width": "container", "background": None, "autosize": {"type": "fit-x", "contains": "padding"}}
        return [spec | own for spec in self._drawn]

    @cached_property
    def _whole(self) -> Spec:
        """All panels side by side."""
        shared = ("$schema", "config", "datasets")
        whole: Spec = {key: self._drawn[0][key] for key in shared[:2]} | {"background": "white", "padding": 10}
        whole["concat"] = [{key: value for key, value in spec.items() if key not in shared} for spec in self._drawn]
        whole["datasets"] = {name: rows for spec in self._drawn for name, rows in spec.get("datasets", {}).items()}
        return whole | {"columns": self.columns, "resolve": {"scale": {"color": "independent", "shape": "independent"}}}

    @cached_property
    def svg(self) -> str:
        import vl_convert

        return vl_convert.vegalite_to_svg(self._whole)

    def picture(self, small: bool = False) -> bytes:
        """As PNG; small: as JPEG, as the page shows a picture that it does not draw itself."""
        import vl_convert

        return vl_convert.svg_to_jpeg(self.svg, 1.0, 50) if small else vl_convert.svg_to_png(self.svg, scale=_SCALE)


@cache
def scripts() -> str:
    """The scripts that draw a specification: Vega, Vega-Lite and vega-embed, as vl-convert brings them.

    To bundle them takes longer than to draw a picture, so they are kept in the user's cache, where it can be written. They run
    in a page that shows private data: a file of somebody else, or that is not as it was written, is not read.
    """
    import vl_convert

    made = ""
    with contextlib.suppress(OSError, RuntimeError):
        above = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "fedgraph"
        kept = above / f"vega-{vl_convert.__version__}.js"  # type: ignore[attr-defined]
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
        if above.stat().st_uid == os.geteuid():
            digest, _, found = kept.read_bytes().partition(b"\n") if kept.is_file() else (b"", b"", b"")
            if digest == hashlib.sha256(found).hexdigest().encode():
                return found.decode()
            made = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
            own = kept.with_name(f"{kept.name}.{os.getpid()}")  # another run may be at the same
            store.write_atomically(own, hashlib.sha256(made.encode()).hexdigest().encode() + b"\n" + made.encode())
            own.replace(kept)
    return made or str(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def draw_map(arrays: Mapping[str, np.ndarray], title: str) -> list[Panel]:
    """What a cell kept for pictures: its map [N, 2] coloured by each of its groups, and which node of one graph meets which of
    another."""
    import altair
    import pandas

    groups = {"classes": "class", "clusters": "cluster", "truth": "class"}
    x, y, found = bare(altair.X, "x"), bare(altair.Y, "y"), []
    for name, legend in groups.items():
        if name in arrays:
            table = pandas.DataFrame({**_places(arrays["map"]), legend: arrays[name].astype(str)})
            names = sorted(set(map(str, arrays[name].tolist())), key=lambda group: (len(group), group))
            scale = altair.Scale(domain=names)
            looks = [channel(legend, type="nominal", scale=scale) for channel in (altair.Color, altair.Shape)]
            drawn = altair.Chart(table, title=f"{name}, {title}", width=260, height=260)
            found.append(drawn.mark_point(filled=True, size=28, opacity=0.75).encode(x, y, *looks))
    if "coupling" in arrays:  # each graph in a square of its own, and lines for the masses of ``coupling`` [n, m]
        one, two = (_places(arrays[f"places_{name}"], at) for name, at in (("one", 0.0), ("two", 3.0)))
        i, j = np.nonzero(arrays["coupling"] > 1e-3 * arrays["coupling"].max())
        mass = np.round(arrays["coupling"][i, j] / arrays["coupling"].max(), 3)
        ends = pandas.DataFrame({"x": one["x"][i], "y": one["y"][i], "x2": two["x"][j], "y2": two["y"][j], "mass": mass})
        clients = [f"client {number}" for number in arrays["matched"].tolist()]
        nodes = pandas.concat([pandas.DataFrame({**p, "graph": name}) for p, name in zip((one, two), clients, strict=True)])
        lines = altair.Chart(ends, title="which node meets which", width=420, height=260).mark_rule(color=INK)
        lines = lines.encode(x, y, altair.X2("x2"), altair.Y2("y2"), altair.Opacity("mass:Q", legend=None))
        dots = altair.Chart(nodes).mark_point(filled=True, size=40, opacity=1)
        found.append(lines + dots.encode(x, y, altair.Color("graph:N", title=None, sort=clients)))
    return found


def _places(points: np.ndarray, at: float = 0.0) -> dict[str, np.ndarray]:
    """Points [N, 2] within a square around (``at``, 0), to three digits: a page holds each of them."""
    scaled = np.round(points.astype(float) / max(float(np.abs(points).max(initial=0.0)), 1e-30), 3)
    return {"x": scaled[:, 0] + at, "y": scaled[:, 1]}


def bare(channel: Panel, name: str) -> Panel:
    """A channel of a map: a number without an axis."""
    return channel(name, type="quantitative", axis=None, scale={"zero": False})


# ---- lines against something -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A point of a line, in a panel."""

    panel: str
    up: str  # what y is
    line: str
    x: float
    y: float
    error: float = 0.0  # half the length of its bar
    colour: str = ""  # what gives its colour; empty: the line
    symbol: str = ""  # what gives its symbol; empty: all have one
    tip: str = ""  # what else to say of it


def name_scale(row: Line) -> str:
    """What the numbers of a picture or of a table are, of rows like this."""
    return in_words_of(row.one, _AXES.get(row.metric, "score"))


def draw_lines(
    caption: str, points: Sequence[Point], *, across: str, heads: tuple[str, str] = ("", ""), shared: bool = False
) -> tuple[Figure, ...]:
    """One figure with every panel that has two points or more; none without such a panel.

    Args:
        across: What x is.
        heads: Titles of the legends of colours and of symbols.
        shared: One scale of y, so that panels can be compared.
    """
    import pandas

    order = [_tick(x) for x in sorted({one.x for one in points})]
    frame = pandas.DataFrame(
        {**vars(one), "x": _tick(one.x), "low": one.y - one.error, "high": one.y + one.error, "colour": one.colour or one.line}
        for one in points if math.isfinite(one.y)
    )  # fmt: skip
    kept = frame[frame.groupby("panel")["panel"].transform("size") > 1] if len(frame) else frame
    if kept.empty:
        return ()
    domain = list(_domain([*kept["low"], *kept["high"]])) if shared else None
    looks = [list(filter(None, kept[key].unique())) for key in ("colour", "symbol")]
    panels = (_lines(name, part, order, across, looks, heads, domain) for name, part in kept.groupby("panel", sort=False))
    return (Figure(caption, tuple(panels)),)


def _lines(
    panel: str, part: pandas.DataFrame, order: list[str], across: str, looks: Sequence[list[str]], heads: tuple[str, str],
    domain: list[float] | None,
) -> Panel:  # fmt: skip
    import altair as alt

    up = part["up"].iloc[0]
    x = alt.X("x:N", title=across, sort=[x for x in order if x in set(part["x"])],
              axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=True))  # fmt: skip
    y = alt.Y("y:Q", title=up, scale=alt.Scale(zero=False, nice=domain is None, domain=domain or alt.Undefined))
    colour, shape = (
        channel(f"{name}:N", title=head or None, scale=alt.Scale(domain=look))
        for channel, name, head, look in zip((alt.Color, alt.Shape), ("colour", "symbol"), heads, looks, strict=True)
    )
    asked = [alt.Tooltip("line:N", title=" "), alt.Tooltip("x", title=across), alt.Tooltip("y:Q", title=up, format=".3f")]
    asked += [alt.Tooltip("tip:N", title="  ")] if part["tip"].any() else []
    base = alt.Chart(part.drop(columns=["panel", "up", "error"])).encode(x, colour)
    barred = (part["high"] > part["low"]).any()
    layers: list[Panel] = [base.mark_rule(opacity=0.7).encode(alt.Y("low:Q"), alt.Y2("high"))] if barred else []
    layers.append(base.mark_line(strokeWidth=1.7).encode(y, alt.Detail("line:N")))
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(y, tooltip=asked)
    layers.append(dots.encode(shape) if looks[1] else dots)
    return alt.layer(*layers, title=alt.TitleParams(panel, limit=_WIDTH), width=_WIDTH, height=HEIGHT)


def _domain(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    gap = 0.06 * (high - low or abs(high) or 1.0)
    return low - gap, high + gap


def _tick(x: float) -> str:
    return f"{x:,.4g}".replace("inf", "∞")


# ---- accuracy against provable ε, a panel for each question -------------------------------------------------------------


def draw_question(question: Question) -> Panel:
    """The panel of a question of which at least one row is ``kept``.

    Of several ε each level of trust is a line, and their marks stand a little beside each other. Of one ε that a row keeps
    each level of trust is a column, so that nobody reads a place for another ε.
    """
    import altair as alt
    import pandas

    scale, budgets, trusts = 100 if question.head.metric == "accuracy" else 1, question.budgets, question.trusts
    single = len(budgets) == 1 and any(keeps(row, budgets[0]) for row in question.kept)
    best, seeds = list[Spec](), list[Spec]()
    for place, trust in enumerate(trusts):
        for budget in budgets:
            if (row := question.at(budget, trust)) is not None:
                x = trust.value if single else budget * _DODGE ** (place - (len(trusts) - 1) / 2)
                best.append({**_told(row, scale), "x": x})
                seeds += [{"x": x, "trust": trust.value, "y": scale * value} for value in row.scores.values()]
    shown = [row for row in question.kept if not single or keeps(row, budgets[0])]
    others = [{**_told(row, scale), "x": row.trust.value if single else row.epsilon_provable} for row in shown]
    heights = [point[name] for point in (*best, *others) for name in ("y", "low", "high")]
    span, rules, below = _rules(question, scale, heights)
    y = alt.Y("y:Q", title=name_scale(question.head), scale=alt.Scale(domain=list(span), nice=False, zero=False),
              axis=alt.Axis(tickCount=6))  # fmt: skip
    names = [trust.value for trust in trusts]
    if single:
        title = f"who is trusted, all with ε ≤ {phrases.rounded(budgets[0])} proven"
        x = alt.X("x:N", title=title, sort=names, axis=alt.Axis(labelAngle=0))
    else:
        low, high = (pick(point["x"] for point in (*best, *others)) for pick in (min, max))
        decades = max(math.log10(high / low), 0.5)
        ends = [10 ** (math.log10(low) - 0.1 * decades), 10 ** (math.log10(high) + _ROOM * decades)]
        marked = [budget for budget in budgets if ends[0] <= budget <= ends[1]] or sorted({low, high})[
            : 2 if high > 1.2 * low else 1
        ]
        if decades > 2.2:
            marked = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
        axis = alt.Axis(values=marked, labelExpr="format(datum.value, '~g')", labelOverlap="greedy")
        x = alt.X("x:Q", title="ε, proven at most", scale=alt.Scale(type="log", domain=ends, nice=False), axis=axis)
    colours, shapes = (alt.Scale(domain=names, range=[_LOOKS[name][k] for name in names]) for k in (0, 1))
    colour, shape = alt.Color("trust:N", scale=colours, legend=None), alt.Shape("trust:N", scale=shapes, legend=None)
    tips = [alt.Tooltip(f"{key}:N", title=title) for key, title in _TIPS.items()]
    layers: list[Panel] = []
    if others:
        light = alt.Chart(pandas.DataFrame(others)).encode(x, y)
        layers += [] if single else [light.mark_line(color=_FADED, strokeWidth=1.1, opacity=0.6).encode(alt.Detail("line:N"))]
        layers.append(light.mark_point(filled=True, color=_FADED, size=22, opacity=0.75).encode(shape, tooltip=tips))
    texts: list[Panel] = []  # above lines, below points
    for value, label, up in [*rules, *([(span[0], below, True)] if below else [])]:
        level = alt.Chart(pandas.DataFrame({"y": [value], "label": [label], "short": [label.partition(" (")[0]]}))
        layers += [] if label == below else [level.mark_rule(strokeDash=[5, 4], color=_GREY).encode(y)]
        said = alt.ExprRef(f"width < {_NARROW} ? datum.short : datum.label")  # whose row it is has no room on a telephone
        named = level.mark_text(text=said, align="left", dx=3, dy=-7 if up else 9, color=INK, fontSize=11, limit=_LONGEST)
        texts.append(named.encode(y, alt.Description("label:N"), x=alt.value(0)))
    if best:
        base = alt.Chart(pandas.DataFrame(best)).encode(x, colour)
        layers += [] if single else [base.mark_line(strokeWidth=2.4).encode(y)]
        layers.append(base.mark_rule(strokeWidth=1.2, opacity=0.55).encode(alt.Y("low:Q"), alt.Y2("high")))
        if len(seeds) > len(best):
            layers.append(alt.Chart(pandas.DataFrame(seeds)).mark_point(filled=True, size=14, opacity=0.8).encode(x, y, colour))
        layers += [*texts, base.mark_point(filled=True, size=78, opacity=1).encode(y, shape, tooltip=tips)]
        if not single:
            size = alt.ExprRef(f"width < {_NARROW} ? 11 : 12")
            ends = alt.Chart(pandas.DataFrame(_labels(best, span))).mark_text(align="left", dx=9, fontSize=size, fontWeight=600)
            layers.append(ends.encode(x, y, colour, alt.Text("label:N")))
    layers += [] if best else texts
    return alt.layer(*layers, title=alt.TitleParams(question.title, limit=_WIDTH + 60), width=_WIDTH + 40, height=HEIGHT + 30)


def _rules(
    question: Question, scale: int, heights: Sequence[float]
) -> tuple[tuple[float, float], list[tuple[float, str, bool]], str]:
    """(ends of the axis, horizontals as (value, label, whether the label stands above), what is said of guessing far below)."""
    top, free, rules = question.ceiling, question.free, list[tuple[float, str, bool]]()
    if top is not None:
        rules.append((scale * top.mean, f"without privacy {answer.format_mean(top)} ({top.name})", True))
    if free is not None:
        rules.append((scale * free.mean, f"nothing private released {answer.format_mean(free)} ({free.name})", False))
    values = [*heights, *(value for value, *_ in rules)]
    if question.head.metric == "ari":  # small numbers around chance are not drawn large
        values += [-0.05, 0.3]
    low, high, guess, metric = min(values), max(values), scale * question.guess, question.head.metric
    named = f"guessing {question.guess:.2f}" if metric not in ("auc", "auroc", "ari") else "chance"
    if metric == "accuracy":
        named = f"{'public sizes' if question.of_graphs else 'largest class'} {guess:.0f}"
    if not question.guess and metric != "ari":
        return _domain(values), rules, ""
    if low - guess > 1.5 * (high - low):
        return _domain(values), rules, f"↓ {named}"
    span = _domain([*values, guess])
    if all(abs(value - guess) > 0.04 * (span[1] - span[0]) for value, *_ in rules):
        rules.append((guess, named, True))
    return span, rules, ""


def _told(row: Line, scale: int) -> Spec:
    """A row as a point says it."""
    first = [words.split(";")[0].split(" (")[0] for words in row.assumptions[:3]]
    more = [f"{len(row.assumptions) - 3} more"] if len(row.assumptions) > 3 else []
    return {
        "y": scale * row.mean, "low": scale * row.low, "high": scale * row.high, "trust": row.trust.value, "slug": row.slug,
        "line": f"{row.name}, {row.world}, {row.calibrated_by}, {row.task}", "row": row.row,
        "method": row.title.split(". ")[0].rstrip("."), "interval": f"{answer.format_mean(row)} ({answer.span(row)})",
        "provable": phrases.upper(row.epsilon_provable, 3), "published": phrases.rounded(row.epsilon_published, 3),
        "assumed": "; ".join([*first, *more]),
    }  # fmt: skip


def _labels(best: Sequence[Spec], span: tuple[float, float]) -> list[Spec]:
    """A label at the last point of each line, moved apart where they would cover each other."""
    last = {point["trust"]: point for point in best}  # budgets come in order
    right = max(point["x"] for point in last.values())
    placed: list[Spec] = []
    for point in sorted(last.values(), key=lambda point: point["y"]):
        x = right if point["x"] > right / 1.3 else point["x"]
        near = [one["y"] for one in placed if abs(math.log(one["x"] / point["x"])) < 1]
        y = max([point["y"], *(y + _APART * (span[1] - span[0]) for y in near)])
        placed.append({"x": x, "y": y, "trust": point["trust"], "label": point["trust"]})
    over = max(0.0, max(one["y"] for one in placed) - span[1])
    return [one | {"y": one["y"] - over} for one in placed]
