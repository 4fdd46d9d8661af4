"""A Flower app as data: ``pyproject.toml``, the two Python files it names with the files of the same app that those import, and
the run configuration that they look up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import documents
from fedgraph.pricing.documents import Document, Tree, table
from fedgraph.pricing.python_source import Call, Unresolved, Value

MOST_FILES = 50


@dataclass(frozen=True)
class App:
    """What the files say together: DP calls, the run configuration, rounds, clients in all."""

    document: Document
    calls: tuple[tuple[Path, Call], ...]
    config: Mapping[str, Tree]
    rounds: int | None
    clients: int | None
    mentions: frozenset[str]


def number(app: App, path: Path, call: Call, name: str, position: int) -> float:
    value = _value(app, call.get(name, position))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        said = value.text if isinstance(value, Unresolved) else value
        raise PricingError(
            f"{path}:{call.line}: {call.name} needs {name}, found {said!r}; write a number, or name its key in "
            "[tool.flwr.app.config]"
        )
    return float(value)


def _value(app: App, value: Value) -> Value:
    if isinstance(value, Unresolved) and value.key is not None:
        return app.config.get(value.key, value.default)
    return value


def assemble(document: Document) -> App:
    """The app of a ``pyproject.toml`` or of one Python file."""
    if document.kind == "python":
        return _assembled(document, [document], {}, None)
    flwr = table(table(document.data.get("tool")).get("flwr"))
    app = table(flwr.get("app"))
    components, config = table(app.get("components")), _flat(app.get("config"))
    files = []
    for role in ("serverapp", "clientapp"):
        reference = components.get(role)
        if not isinstance(reference, str):
            raise document.error(f"missing [tool.flwr.app.components] {role}", "tool", "flwr", "app", "components")
        files.append(documents.read(_python_file(document, role, reference)))
    files = _with_imports(document.path.parent, files)
    clients = None
    for federation in table(flwr.get("federations")).values():
        found = _flat(federation).get("options.num-supernodes")
        clients = found if isinstance(found, int) and found > 0 else clients
    return _assembled(document, files, config, clients)


def _python_file(document: Document, role: str, reference: str) -> Path:
    module = reference.partition(":")[0]
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise document.error(f"{role} = {reference!r} is not package.module:name", "tool", "flwr", "app", "components", role)
    root = document.path.parent
    for base in (root, root / "src"):
        path = base.joinpath(*parts).with_suffix(".py")
        if path.is_file():
            return path
    raise document.error(
        f"{role} = {reference!r}: there is no {'/'.join(parts)}.py beside this file", "tool", "flwr", "app", "components", role
    )


def _with_imports(root: Path, files: list[Document]) -> list[Document]:
    """The files, and those below ``root`` that they import, at most ``MOST_FILES`` of them."""
    found = {file.path.resolve(): file for file in files}
    waiting = list(found.values())
    while waiting:
        file = waiting.pop()
        for name in sorted(file.imports):
            parts = name.split(".")
            for base in (file.path.parent, root, root / "src"):
                for length in (len(parts), len(parts) - 1):
                    path = base.joinpath(*parts[:length]).with_suffix(".py") if length else None
                    if path is None or not path.is_file() or path.resolve() in found:
                        continue
                    if not path.resolve().is_relative_to(root.resolve()):
                        continue
                    if len(found) >= MOST_FILES:
                        raise PricingError(
                            f"{root}: an app of more than {MOST_FILES} Python files; name the one with its privacy"
                        )
                    found[path.resolve()] = documents.read(path)
                    waiting.append(found[path.resolve()])
    return list(found.values())


def _assembled(document: Document, files: list[Document], config: Mapping[str, Tree], clients: int | None) -> App:
    calls = tuple((file.path, call) for file in files for call in file.calls)
    app = App(document, calls, config, None, clients, frozenset(n.rsplit(".", 1)[-1] for f in files for n in f.imports))
    rounds = [_value(app, call.keywords["num_rounds"]) for _, call in calls if "num_rounds" in call.keywords]
    whole = [r for r in rounds if isinstance(r, int) and not isinstance(r, bool) and r >= 0]
    listed = config.get("num-server-rounds")
    chosen = whole[0] if whole else listed if isinstance(listed, int) and not rounds else None
    return App(document, calls, config, chosen, clients, app.mentions)


def _flat(table: Tree, at: str = "") -> dict[str, Tree]:
    out: dict[str, Tree] = {}
    for key, value in table.items() if isinstance(table, dict) else ():
        name = f"{at}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return out
