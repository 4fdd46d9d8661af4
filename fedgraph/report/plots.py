"""Pictures of a report: altair's charts as specifications that the page draws itself, and as picture files.

altair and vl-convert are imported when the first picture is made, so that a run starts without them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fedgraph.cells import store

Panel: TypeAlias = Any  # a chart of altair, or a part of one
Spec: TypeAlias = dict[str, Any]  # Vega-Lite
GREY, INK, FADED = "#9aa3ad", "#39424e", "#b9c0c8"
WIDTH, HEIGHT = 380, 250  # of a panel in a file
_PER_ROW = 4  # panels side by side; more would be too small to read
_SCALE = 1.6  # pixels of a PNG file for each unit
LOOK: Spec = {
    "font": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "gridColor": "#e3e6ea", "domainColor": GREY, "tickColor": GREY,
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
class PlotFigure:
    """One figure of a report."""

    caption: str
    panels: tuple[Panel, ...]  # what stands side by side in a picture, and one below the other on a narrow page
    columns: int = _PER_ROW  # panels side by side in a picture
    # whether the page draws it, so that points can be asked; a picture of thousands of marks is shown as it is
    live: bool = True

    @cached_property
    def _drawn(self) -> list[Spec]:
        """Vega-Lite, one for each panel: altair is slow, so that each is written once."""
        return [_specify(panel) for panel in self.panels]

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

    @cached_property
    def png(self) -> bytes:
        import vl_convert

        return vl_convert.svg_to_png(self.svg, scale=_SCALE)

    @cached_property
    def jpeg(self) -> bytes:
        """As the page shows a picture that it does not draw itself."""
        import vl_convert

        return vl_convert.svg_to_jpeg(self.svg, scale=1.0, quality=50)


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
            made = _bundle()
            own = kept.with_name(f"{kept.name}.{os.getpid()}")  # another run may be at the same
            store.write_atomically(own, hashlib.sha256(made.encode()).hexdigest().encode() + b"\n" + made.encode())
            own.replace(kept)
    return made or _bundle()


def _bundle() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def _specify(chart: Panel) -> Spec:
    """Vega-Lite, whatever the number of marks: altair's own limit is for notebooks."""
    import altair

    with altair.data_transformers.disable_max_rows():
        spec: Spec = chart.to_dict(validate=False)
    spec["config"] = {key: {**spec["config"].get(key, {}), **look} if isinstance(look, dict) else look
                      for key, look in (spec["config"] | LOOK).items()}  # fmt: skip
    return spec


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
