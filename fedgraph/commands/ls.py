"""``fedgraph ls``: what there is, on one screen; ``fedgraph ls KIND`` and ``--all``: one line each; of one: its settings.

    fedgraph ls
    fedgraph ls methods
    fedgraph ls methods features
    fedgraph ls --all

What it says of a method, a task, a partition or an attack is the first sentence of its docstring, read without importing it.
"""

import argparse
import textwrap
from collections.abc import Callable

import yaml

from fedgraph import plugins
from fedgraph.errors import ScenarioError
from fedgraph.scenario import shipped

HELP = "list scenarios, methods, data sets, partitions, tasks, attacks and systems that can be priced"
WIDTH = 100
_WITH_SETTINGS = {"methods": "methods", "partitions": "partition", "tasks": "tasks", "attacks": "attacks"}  # kind → room
KINDS = ("scenarios", "methods", "data", "partitions", "tasks", "attacks", "systems")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=KINDS, help="only these, one line each (default: the names of all)")
    parser.add_argument("name", nargs="?", help="one of them: its settings, their defaults and what they mean")
    parser.add_argument("--all", action="store_true", help="everything, one line each")


def run(options: argparse.Namespace) -> int:
    if not options.kind and not options.all:
        print(_overview_of_names())
        return 0
    if options.name is not None:
        print(_settings_of(options.kind, options.name))
        return 0
    for kind in [options.kind] if options.kind else KINDS:
        lines = _LISTS[kind]()
        if not options.kind:
            print(f"{kind}:")
        width = max((len(name) for name, _ in lines), default=0)
        for name, said in lines:
            print(f"{'' if options.kind else '  '}{name:<{width}}  {said}".rstrip())
        if not options.kind:
            print()
    return 0


def _settings_of(kind: str, name: str) -> str:
    """What it says of itself, and a line for each setting: name, default, what is allowed and what it means."""
    if kind not in _WITH_SETTINGS:
        raise ScenarioError(f"{kind} have no settings to list; allowed: {', '.join(_WITH_SETTINGS)}")
    from fedgraph.scenario import schema as schemas

    module = plugins.load(_WITH_SETTINGS[kind], name)
    said = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    schema = module.Params.model_json_schema()
    lines = [("setting", "default", "meaning")]
    for setting, about in schema.get("properties", {}).items():
        default = "needed" if setting in schema.get("required", ()) else str(about.get("default", "none"))
        allowed = schemas.allowed_words(about, schema.get("$defs", {}))
        lines.append((setting, default, f"{about.get('description', '')}{f' ({allowed})' if allowed else ''}".strip()))
    widths = [min(max(len(line[k]) for line in lines), 24) for k in (0, 1)]
    indent = " " * (sum(widths) + 6)
    text = [*textwrap.wrap(said, WIDTH), ""]
    for setting, default, meaning in lines:
        head = f"  {setting:<{widths[0]}}  {textwrap.shorten(default, widths[1], placeholder='…'):<{widths[1]}}  "
        text += textwrap.wrap(meaning, WIDTH, initial_indent=head, subsequent_indent=indent) or [head.rstrip()]
    return "\n".join(text)


def _overview_of_names() -> str:
    width = max(map(len, plugins.names("methods")))
    room = WIDTH - width - 4
    methods = [f"  {name:<{width}}  {textwrap.shorten(said, room, placeholder=' …')}" for name, said in _modules("methods")]
    names = {
        "scenarios": shipped.names(),
        "data": [f"{name}/…" for name in plugins.names("data") if name != "own"],
        "partitions": plugins.names("partition"),
        "tasks": plugins.names("tasks"),
        "attacks": plugins.names("attacks"),
        "systems": [name for name, _ in _systems()],
    }
    found = ["methods:", *methods]
    for kind, those in names.items():
        found += textwrap.wrap(f"{kind}: {', '.join(those)}", WIDTH, subsequent_indent="  ")
    return "\n".join([*found, "One line each: fedgraph ls KIND, such as fedgraph ls data; everything: fedgraph ls --all."])


def _first_sentence(text: str | None) -> str:
    line = " ".join((text or "").split("\n\n")[0].split())
    return line.split(". ")[0].rstrip(".")


def _modules(package: str) -> list[tuple[str, str]]:
    return [(name, _first_sentence(_docstring(package, name))) for name in plugins.names(package)]


def _docstring(package: str, name: str) -> str | None:
    """Read from the source: a list of names should not load torch."""
    import ast

    source = plugins.source(package, name)
    return None if source is None else ast.get_docstring(ast.parse(source.read_bytes()))


def _data() -> list[tuple[str, str]]:
    from fedgraph import data
    from fedgraph.data import PublishedData

    found = []
    for name in data.names():
        family, _, dataset = name.partition("/")
        entry = data.data_families()[family][dataset]
        title = entry.title if isinstance(entry, PublishedData) else ""
        found.append((name, title or _first_sentence(_docstring("data", family))))
    return found


def _systems() -> list[tuple[str, str]]:
    text = (plugins.PLUGIN_HOME / "pricing" / "catalogue.yaml").read_text(encoding="utf-8")
    return [(key, f"{system['name']}: {system['version']}") for key, system in sorted(yaml.safe_load(text).items())]


_LISTS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "scenarios": lambda: [(name, shipped.title(name)) for name in shipped.names()],
    "methods": lambda: _modules("methods"),
    "data": _data,
    "partitions": lambda: _modules("partition"),
    "tasks": lambda: _modules("tasks"),
    "attacks": lambda: _modules("attacks"),
    "systems": _systems,
}
