"""Drawing primitives: every figure of a report, as PNG bytes, with one look.

``plot_on_all_cores`` draws them on all cores: a copy of this process draws one, while this process draws the next.
"""

import contextlib
import io
import os
import pickle
import re
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

# The caller's own settings and backend neither change a figure of a report nor are changed by one.
_LOOK = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")}
_LOOK |= {"svg.fonttype": "none"}  # text stays text: smaller, and it can be searched
_LOOK |= {"svg.hashsalt": "fedgraph"}  # equal figures give equal files

_Made = TypeVar("_Made")
_MOST_COPIES = 7  # at once: each may need 100 MB
_SECONDS_TO_DRAW = 60.0  # a copy that takes longer may wait for a lock that no thread of it holds
_SECONDS_BETWEEN_LOOKS = 0.005
_room = 0  # copies of this process that may be at work at once
_at_work: list["_Copy[object]"] = []


@contextlib.contextmanager
def plot_on_all_cores() -> Iterator[None]:
    """Inside, copies of this process help. Only where nothing else is computed here: a copy has one thread."""
    global _room
    _room = min(len(os.sched_getaffinity(0)) - 1, _MOST_COPIES) if sys.platform == "linux" else 0
    try:
        yield
    finally:
        _room = 0
        while _at_work:
            _at_work[0].end()


def _draw_in_copy(make: Callable[[], _Made]) -> Callable[[], _Made]:
    """Gives what ``make()`` returns: made in a copy of this process where one is free, or else here and now."""
    for copy in list(_at_work):
        copy.look()
    if len(_at_work) < _room:
        with contextlib.suppress(OSError):  # no room for another process or file
            return _Copy(make)
    made = make()
    return lambda: made


class _Copy(Generic[_Made]):
    """A copy of this process that makes one thing. Where it fails, or never ends, the thing is made here."""

    def __init__(self, make: Callable[[], _Made]) -> None:
        global _room
        self._make, self._found, self._began = make, list[_Made](), time.monotonic()
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(tempfile.TemporaryFile())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: see _SECONDS_TO_DRAW
                self._process = os.fork()
            stack.pop_all()  # closed by ``look``
        if not self._process:
            with contextlib.suppress(BaseException):
                _room = 0
                pickle.dump(make(), self._file)
                self._file.flush()
                os._exit(0)
            os._exit(1)
        _at_work.append(cast(_Copy[object], self))

    def look(self) -> None:
        """Take what it made, if it has ended."""
        try:
            process, status = os.waitpid(self._process, os.WNOHANG)
        except ChildProcessError:  # it has ended, and nobody knows how: whoever began this process ignores SIGCHLD
            process, status = self._process, 0
        if process:
            _at_work.remove(cast(_Copy[object], self))
            with self._file, contextlib.suppress(EOFError, pickle.UnpicklingError):
                if status == 0:
                    self._file.seek(0)
                    self._found.append(cast(_Made, pickle.load(self._file)))

    def end(self) -> None:
        """Wait for it; not for ever."""
        while self in _at_work:
            self.look()
            if self in _at_work and time.monotonic() - self._began > _SECONDS_TO_DRAW:
                os.kill(self._process, signal.SIGKILL)
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def __call__(self) -> _Made:
        self.end()
        if not self._found:
            self._found.append(self._make())
        return self._found[0]


PLOT_COLOURS = ("#1b6ca8", "#c2410c", "#2e7d32", "#7b4fa3", "#a16207", "#0e7490", "#be185d", "#4b5563", "#92400e", "#4d7c0f")
PLOT_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class PlotFigure:
    """One figure of a report.

    Attributes:
        name: File name without its ending.
        picture: Gives PNG and SVG; it is drawn once.
        spec: Where the page's own shapes stand (``charts``); None where the page shows a picture.
    """

    name: str
    caption: str
    picture: Callable[[], tuple[bytes, str]]
    spec: Mapping[str, object] | None = None

    @property
    def png(self) -> bytes:
        return self.picture()[0]

    @property
    def svg(self) -> str:
        return self.picture()[1]


_TONES = 128  # colours of a PNG file; more cannot be told apart in a chart
_PAGE_WIDTH = 800  # pixels of a picture inside the page
_PER_ROW = 4  # panels side by side; more would be too small to read


def draw_plot(
    name: str, caption: str, panels: int, paint: Callable[[list[Axes]], None], notice: str | None, height: float = 3.6
) -> PlotFigure:
    """``panels`` axes, at most ``_PER_ROW`` side by side, painted and saved. height: inches of one row."""

    @matplotlib.rc_context(_LOOK)
    def picture() -> tuple[bytes, str]:
        columns = min(panels, _PER_ROW)
        lines = -(-panels // columns)
        size = (max(5.2, 4.4 * columns), height * lines)
        figure = Figure(figsize=size, layout="constrained")  # of no backend: pyplot belongs to the caller
        axes = figure.subplots(lines, columns, squeeze=False)
        for unused in axes.flat[panels:]:
            unused.set_axis_off()
        paint(list(axes.flat[:panels]))
        if notice:
            figure.suptitle(notice, fontsize=8, color="#b00020")
        buffer, text = io.BytesIO(), io.StringIO()
        figure.savefig(buffer, dpi=130, format="png")
        figure.set_layout_engine("none")  # keep the layout just found
        figure.savefig(text, format="svg", metadata={"Date": None})
        # The same drawing without what nobody sees: indentation, names of groups, positions finer than 1/10 point (of paths) or
        # 1/100, fonts that are not used. A style that several shapes have is said once.
        svg = text.getvalue()
        svg = re.sub(r"\n *", "\n", svg)
        svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d\d)\d+", r"\1", tag[0]), svg)  # what is written stays as it is
        svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\d+\.\d)\d+", r"\1", path[0]), svg)
        svg = re.sub(r'<g id="[a-zA-Z0-9.]+_\d+">', "<g>", svg)
        svg = re.sub(r"'DejaVu Sans'(, '[^']+')+, sans-serif", "'DejaVu Sans', sans-serif", svg)
        several = [style for style, count in Counter(re.findall(r' style="([^"]*)"', svg)).items() if count > 1]
        for number, style in enumerate(several):
            svg = svg.replace(f' style="{style}"', f' class="s{number}"')
        rules = "".join(f".s{number}{{{style}}}" for number, style in enumerate(several))
        return _in_few_tones(buffer.getvalue()), svg.replace("<defs>", f"<defs><style>{rules}</style>", 1)

    return PlotFigure(name, caption, _draw_in_copy(picture))


def compress_plot(figure: PlotFigure) -> bytes:
    """The picture as a page shows it, as WebP: smaller than its file."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(figure.png)) as picture:
        plain = picture.convert("RGB")
        if plain.width > _PAGE_WIDTH:
            plain = plain.resize((_PAGE_WIDTH, round(plain.height * _PAGE_WIDTH / plain.width)), Image.Resampling.LANCZOS)
        plain.save(buffer, "WEBP", quality=60, method=6)
    return buffer.getvalue()


def _in_few_tones(png: bytes) -> bytes:
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        picture.convert("RGB").quantize(_TONES, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def plot_heatmap(axes: Axes, matrix: np.ndarray, title: str, boundaries: Sequence[int]) -> None:
    """A distance matrix, with lines between its groups."""
    image = axes.imshow(matrix, cmap="viridis", interpolation="nearest")
    for at in boundaries:
        axes.axhline(at - 0.5, color="white", lw=0.7)
        axes.axvline(at - 0.5, color="white", lw=0.7)
    axes.set(title=title, xlabel="client graphs, by cluster", ylabel="")
    axes.figure.colorbar(image, ax=axes, shrink=0.85)  # the title names the quantity; a label would overlap the next panel


def plot_matching(axes: Axes, one: np.ndarray, two: np.ndarray, coupling: np.ndarray, names: tuple[str, str]) -> None:
    """Two maps [n, 2] and [m, 2] side by side, each in a square of its own, and lines for the masses of ``coupling`` [n, m]."""
    places = [rows / max(float(np.abs(rows).max()), 1e-30) + at for rows, at in ((one, 0.0), (two, np.array([3.0, 0.0])))]
    for i, j in zip(*np.nonzero(coupling > 1e-3 * coupling.max()), strict=True):
        ends = np.stack([places[0][i], places[1][j]])
        axes.plot(ends[:, 0], ends[:, 1], color="0.3", lw=0.8, alpha=float(coupling[i, j] / coupling.max()), zorder=1)
    for rows, name, colour, marker in zip(places, names, PLOT_COLOURS, PLOT_MARKERS, strict=False):
        axes.scatter(rows[:, 0], rows[:, 1], s=22, color=colour, marker=marker, label=name, zorder=2)
    axes.set(title="which node meets which", xticks=[], yticks=[])
    axes.legend(fontsize=7, frameon=False, ncols=2)


def plot_scatter(axes: Axes, points: np.ndarray, groups: np.ndarray, title: str, legend: str) -> None:
    """A 2-D map [N, 2] coloured by group."""
    for index, group in enumerate(np.unique(groups)):
        chosen = groups == group
        colour, marker = PLOT_COLOURS[index % len(PLOT_COLOURS)], PLOT_MARKERS[index % len(PLOT_MARKERS)]
        x, y = points[chosen].T
        axes.scatter(x, y, s=16, alpha=0.75, color=colour, marker=marker, label=f"{legend} {group}")
    axes.set(title=title, xticks=[], yticks=[])
    axes.legend(fontsize=7, frameon=False, ncols=2)
