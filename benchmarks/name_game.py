"""Does a name say where it stands? Draws public names, and counts the guesses of somebody who has not seen the code.

    python -m benchmarks.name_game --seed 31                  prints 20 names
    python -m benchmarks.name_game --seed 31 --guesses FILE   how many files and rooms were guessed in one try

Give the names, the list of the package's files and the table of rooms in docs/dataflow.md to somebody who never saw the code.
They write a line for each name: the name, a tab, a file.

A public name is a function, class or constant of a module, without an underscore, that exactly one file defines.
"""

from __future__ import annotations

import argparse
import ast
import random
from pathlib import Path

import fedgraph

ROOT = Path(fedgraph.__file__).parent.parent


def defined_names(path: Path) -> set[str]:
    """What the file defines at its outermost level, imports apart."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def public_names() -> dict[str, str]:
    """Name → the one file that defines it, relative to the checkout."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "fedgraph").rglob("*.py")):
        for name in defined_names(path):
            places.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return {name: files[0] for name, files in sorted(places.items()) if len(files) == 1}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.name_game", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", type=int, default=20, help="how many are drawn (default 20)")
    parser.add_argument("--guesses", type=Path, help="a file of the stranger's lines: name, tab, file")
    options = parser.parse_args()
    places = public_names()
    drawn = random.Random(options.seed).sample(sorted(places), options.names)
    if options.guesses is None:
        print("\n".join(drawn))
        return
    lines = options.guesses.read_text(encoding="utf-8").splitlines()
    guessed = dict(line.split("\t", 1) for line in lines if "\t" in line)
    files = sum(guessed.get(name) == places[name] for name in drawn)
    rooms = sum(guessed.get(name, "").split("/")[1:2] == places[name].split("/")[1:2] for name in drawn)
    print(f"{len(places)} public names; of {len(drawn)} drawn: file {files}, room {rooms}")


if __name__ == "__main__":
    main()
