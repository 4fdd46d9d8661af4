"""A file is a plugin, and so is a module that an installed package offers. Nothing is listed anywhere.

``method: gcon`` loads ``fedgraph/methods/gcon``, a file or a package. Anybody's package offers more through entry points of the
group ``fedgraph.`` and the room, in its ``pyproject.toml``::

    [project.entry-points."fedgraph.methods"]
    tree_votes = "acme_dp.tree_votes"

Then ``method: tree_votes`` works wherever that package is installed. Every room of ``PLUGIN_CONTRACTS`` is open in this way.
What the plugins of a room share stands in its ``base``, which is no plugin.

Names are read without importing anything. A name that two distributions offer is an error when it is asked for, and so is a
module that cannot be imported or lacks a part of its contract: whoever does not ask for it is not stopped by it.
"""

import difflib
import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from fedgraph.errors import ScenarioError

PLUGIN_HOME = Path(__file__).parent
PLUGIN_CONTRACTS = {  # what a file of each room holds; what it means stands in the room's ``base``
    "attacks": ("REFERENCE", "NEEDS", "VIEWER", "GAME", "Params", "refuses", "attack"),
    "data": ("DATASETS", "load"),
    "methods": ("REFERENCE", "OFFERS", "Params", "plan", "start", "prepare", "client", "server"),
    "partition": ("PARTITION", "Params"),
    "report.sections": ("KINDS", "build"),
    "tasks": ("TASK", "Params", "plugins_of", "cells", "plan", "run"),
}
_OF_KIND = {"classifier": ("predict",), "embedder": ("answers", "in_clear"), "linker": ("scores",)}  # by ``OFFERS.kind``
_ZOO = {  # plugins of the second distribution of this repository, for whoever asks without having it
    "attacks": (
        "attribute_inference", "bayes_optimal", "graph_reconstruction", "label_distribution", "link_stealing_more",
        "posterior_classifier", "property_inference", "rmia",
    ),
    "methods": ("blink", "dpdgc", "heter_poisson", "privgnn", "progap_node"),
}  # fmt: skip


@lru_cache
def names(package: str) -> list[str]:
    """Plugins of ``fedgraph.<package>``, own and installed, sorted. Nothing of them is imported; read once per process."""
    return sorted({*own_names(package), *_offered(package)})


@lru_cache
def own_names(package: str) -> list[str]:
    """Plugins in the folder of ``fedgraph.<package>``, and in folders that were added to its ``__path__``, sorted."""
    found = (m.name for m in pkgutil.iter_modules(_folders(package)))
    return sorted(n for n in found if n not in ("base", "__main__"))


@lru_cache
def usable(package: str) -> list[str]:
    """``names`` without installed plugins that cannot be loaded, for whoever looks through all of them.

    Each that is left out gets one line on the error stream, once per process.
    """
    found = []
    for name in names(package):
        try:
            if name in _offered(package):
                load(package, name)
            found.append(name)
        except ScenarioError as why:
            print(f"Left out: {why}", file=sys.stderr)
    return found


@lru_cache
def load(package: str, name: str) -> ModuleType:
    """The module of a plugin, imported once per process.

    Args:
        package: a room, or a folder of one, such as ``report.sections``.
        name: of the file, package or entry point, as a scenario writes it.

    Raises:
        ScenarioError: there is none, with the allowed names; two distributions offer it; or the module cannot be imported or
            lacks a part of its room's contract.
    """
    allowed, kind = names(package), package.split(".")[-1].rstrip("s")
    if name not in allowed:
        if name in _ZOO.get(package, ()):
            raise ScenarioError(f"{kind} {name!r} stands in fedgraph-zoo: pip install ./zoo (a folder of the repository)")
        raise ScenarioError(f"unknown {kind} {name!r}{suggest_plugin_name(name, allowed)}; allowed: {', '.join(allowed)}")
    points, own = _offered(package).get(name, ()), name in own_names(package)
    if len(points) + own > 1:
        offers = ["fedgraph itself"] * own + [f"{_distribution(p)} ({p.value})" for p in points]
        raise ScenarioError(f"{kind} {name!r} is offered by {' and by '.join(offers)}: uninstall one of them, or rename one")
    if own:
        where = f"fedgraph/{package.replace('.', '/')}/{name}"
        module = _imported(lambda: importlib.import_module(f"fedgraph.{package}.{name}"), where)
    else:
        where = f"{kind} {name!r} of {_distribution(points[0])} ({points[0].value})"
        module = _imported(points[0].load, where)
        if not isinstance(module, ModuleType):
            raise ScenarioError(f"{where} names no module; allowed: a module, such as {points[0].module!r}")
    gives = getattr(vars(module).get("OFFERS"), "kind", "")
    parts = (*PLUGIN_CONTRACTS.get(package, ()), *_OF_KIND.get(gives, ()))
    if missing := [part for part in parts if part not in vars(module)]:
        contract = f"fedgraph.{package}" if package == "partition" else f"fedgraph.{package}.base"
        raise ScenarioError(f"{where} lacks {', '.join(missing)}; the docstring of {contract} says what each is")
    if "OFFERS" in parts and not gives:
        raise ScenarioError(f"{where}: OFFERS is a {type(module.OFFERS).__name__}; allowed: base.Offers(units=…, situations=…)")
    if "Params" in parts:
        from pydantic import BaseModel  # not before it is used: a command that computes nothing loads no library

        if isinstance(module.Params, type) and issubclass(module.Params, BaseModel):
            return module
        raise ScenarioError(f"{where}: Params holds no settings; allowed: a subclass of fedgraph.documents.Settings")
    return module


def place_of(error: Exception) -> str:
    """`` (acme_dp.py, line 40)``, the last place in an installed plugin's own files that an error passed; else nothing."""
    offered = {p.module.partition(".")[0] for room in PLUGIN_CONTRACTS for points in _offered(room).values() for p in points}
    passed = list(traceback.walk_tb(error.__traceback__))
    own = [(f.f_code.co_filename, n) for f, n in passed if str(f.f_globals.get("__name__")).partition(".")[0] in offered]
    return f" ({Path(own[-1][0]).name}, line {own[-1][1]})" if own else ""


def _imported(act: Callable[[], ModuleType], where: str) -> ModuleType:
    """What ``act`` imports; an error names the file and line in which it arose."""
    try:
        return act()
    except Exception as failure:
        words = " ".join(str(failure).split())
        frames = [f for f in traceback.extract_tb(failure.__traceback__) if "importlib" not in f.filename]
        last = frames[-1] if frames else None
        ours = last is None or isinstance(failure, SyntaxError) or Path(last.filename) == Path(__file__)
        place = "" if last is None or ours else f" ({Path(last.filename).name}, line {last.lineno})"
        raise ScenarioError(f"{where} cannot be imported: {type(failure).__name__}: {words}{place}") from failure


@lru_cache
def _offered(package: str) -> dict[str, tuple[metadata.EntryPoint, ...]]:
    """Name → the entry points of that name. A distribution that is found twice offers once."""
    if package not in PLUGIN_CONTRACTS:
        return {}
    found: dict[str, dict[tuple[str, str], metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=f"fedgraph.{package}"):
        found.setdefault(point.name, {})[_distribution(point), point.value] = point
    return {name: tuple(points.values()) for name, points in found.items()}


def _distribution(point: metadata.EntryPoint) -> str:
    return "a package without a name" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def distributions() -> tuple[tuple[str, str], ...]:
    """(name, version) of every installed distribution that offers a plugin, sorted: what a run may depend on beside us."""
    points = [point for package in PLUGIN_CONTRACTS for each in _offered(package).values() for point in each]
    return tuple(sorted({(p.dist.name, p.dist.version) for p in points if p.dist is not None}))


def packages() -> tuple[str, ...]:
    """Top-level packages that offer methods, sorted: classes of theirs may stand in a model's file."""
    return tuple(sorted({p.module.partition(".")[0] for points in _offered("methods").values() for p in points}))


def forget() -> None:
    """Read folders and entry points again when somebody next asks."""
    for cached in (names, own_names, usable, load, _offered):
        cached.cache_clear()


def source(package: str, name: str) -> Path | None:
    """The file of a plugin, without importing it; None where its package cannot be found."""
    if name in own_names(package):
        places = [Path(folder, end) for folder in _folders(package) for end in (f"{name}.py", f"{name}/__init__.py")]
        return next(place for place in places if place.is_file())
    try:
        spec = importlib.util.find_spec(_offered(package)[name][0].module)
    except Exception:  # whatever a foreign package does when its parent is imported; ``load`` says what
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _folders(package: str) -> list[str]:
    loaded = sys.modules.get(f"fedgraph.{package}")
    return list(loaded.__path__) if loaded else [str(PLUGIN_HOME.joinpath(*package.split(".")))]


def suggest_plugin_name(found: str, allowed: list[str]) -> str:
    """``; did you mean 'x'?`` when something allowed looks like ``found``, else nothing.

    Args:
        found: what was written.
        allowed: what could have been meant; the closest one is named where ``difflib`` finds it similar (ratio 0.6 or more).
    """
    close = difflib.get_close_matches(found, allowed, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
