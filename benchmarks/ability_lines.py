"""What each ability costs in lines of the package: the lines of all files that nobody else needs.

    python -m benchmarks.ability_lines [--rooms]

An ability is one method, task, attack, data set, partition, command or reader. It owns each file that only its own file
leads to by imports (also by imports inside functions). What two abilities share belongs to neither. So a whole kind, taken out
at once (the lines at the end), is more than the sum of its abilities. ``--rooms`` prints a table of the rooms instead: lines,
code, docstring, blank lines and imports.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import fedgraph

ROOT = Path(fedgraph.__file__).parent
KINDS = {
    "method": "methods", "task": "tasks", "attack": "attacks", "data set": "data", "partition": "partition",
    "command": "commands", "reader": "pricing.readers",
}  # fmt: skip
LOADED_BY_NAME = ("report.sections.", "runtime.", "data.own.")


def modules() -> dict[str, Path]:
    """Dotted name below ``fedgraph`` (the package itself is ``""``) → file."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(files: dict[str, Path], name: str) -> set[str]:
    """The files that ``name`` loads: what it imports, and every package that these stand in."""
    found = set()
    for node in ast.walk(ast.parse(files[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {one if one.removeprefix("fedgraph.") in files else node.module for one in inner}
    own = {one.removeprefix("fedgraph").removeprefix(".") for one in found if one.partition(".")[0] == "fedgraph"}
    for one in [*own, name]:
        while one:
            one = one.rpartition(".")[0]
            own.add(one)
    return own & files.keys()


def reached(leads_to: dict[str, set[str]], begin: Iterable[str]) -> set[str]:
    """All files that the first ones lead to, themselves included."""
    seen: set[str] = set()
    left = list(begin)
    while left:
        if (name := left.pop()) not in seen:
            seen.add(name)
            left += leads_to[name]
    return seen


def abilities(files: dict[str, Path]) -> dict[tuple[str, str], set[str]]:
    """(kind, name) → the file that is found by this name, and of a task its section of the report."""
    found = {}
    for kind, room in KINDS.items():
        for name in files:
            above, _, own = name.rpartition(".")
            if above == room and own not in ("base", "own", "__main__"):
                found[kind, own] = {name} | ({f"report.sections.{own}"} & files.keys() if kind == "task" else set())
    return found


def count_lines(path: Path) -> Counter[str]:
    """Lines of one file, and which of them are docstring, blank or import."""
    text = path.read_text(encoding="utf-8")
    doc, imports = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            doc |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = text.splitlines()
    blank = sum(not line.strip() and number not in doc for number, line in enumerate(lines, 1))
    code = len(lines) - len(doc) - blank
    return Counter(files=1, lines=len(lines), code=code, docstring=len(doc), blank=blank, imports=len(imports))


def show_rooms(files: dict[str, Path]) -> None:
    rooms: dict[str, Counter[str]] = {}
    for name, path in files.items():
        rooms.setdefault(name.partition(".")[0] or "fedgraph", Counter()).update(count_lines(path))
    rooms = dict(sorted(rooms.items(), key=lambda item: -item[1]["lines"])) | {"all": sum(rooms.values(), Counter())}
    heads = ("files", "lines", "code", "docstring", "blank", "imports")
    print(f"{'room':14}", *(f"{head:>10}" for head in heads))
    for room, counts in rooms.items():
        print(f"{room:14}", *(f"{counts[head]:10,}" for head in heads))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ability_lines", description=__doc__)
    parser.add_argument("--rooms", action="store_true", help="the rooms, in place of the abilities")
    options = parser.parse_args()
    files = modules()
    if options.rooms:
        show_rooms(files)
    else:
        show_abilities(files)


def show_abilities(files: dict[str, Path]) -> None:
    size = {name: count_lines(path)["lines"] for name, path in files.items()}
    leads_to = {name: imported(files, name) for name in files}
    named = abilities(files)
    found_by_name = set().union(*named.values())
    others = {n for n in files if n not in found_by_name and (n.startswith(LOADED_BY_NAME) or n in ("", "run", "library"))}
    others |= {name for name in files if name.endswith("__main__")}
    everything = reached(leads_to, found_by_name | others)

    def lines_without(gone: set[str]) -> tuple[int, int]:
        """(lines, files) that nobody leads to once these files are no longer asked for by name."""
        left = everything - reached(leads_to, (found_by_name | others) - gone)
        return sum(size[name] for name in left), len(left)

    costs = sorted(((*lines_without(own), kind, name) for (kind, name), own in named.items()), reverse=True)
    for lines, num_files, kind, name in costs:
        if lines:
            print(f"{lines:7,} lines  {num_files:3} files  {kind} {name}")
    for kind in KINDS:
        own = set().union(*(files_of for (k, _), files_of in named.items() if k == kind))
        print(f"{lines_without(own)[0]:7,} lines             every {kind} at once")
    print(f"{sum(size.values()):7,} lines             the package")


if __name__ == "__main__":
    main()
