"""A Python file or a notebook alone: the calls of differential privacy that stand in it, and what would have to be known.

What a program does is not read from its text: how often a loop runs, which loader it walks, what a row was made of. So every
number is asked, with what the file writes as the first plausible answer: a table of what each would mean, and never a total.
Whoever knows all of them writes them as a neutral YAML, which has one.
"""

import ast
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document, catalogue
from fedgraph.pricing.facts import QUESTIONS, table
from fedgraph.pricing.readings import TO_RECIPIENT, Claim, Reading, Sums

_KNOWN = catalogue()["python"].options
CALLS = {name: library for library, names in table(_KNOWN, "calls").items() for name in str(names).split()}
ACCOUNTANT = "an accountant"
_SHUFFLED = "TensorFlow Privacy"  # whose users draw no coins
_UNITS = {"pfl-research": "user", "TensorFlow Federated": "client"}  # whose data a row is, where it is no example
_DECLARED = {  # whose noise is declared in other files → what to price
    "Flower": "price the pyproject.toml of its app", "NVIDIA FLARE": "export the job, and price its folder",
}  # fmt: skip
_NAMES = {fact: str(names).split() for fact, names in table(_KNOWN, "names").items()}  # fact → what may call it
_GRAPHS = r"(Neighbor|LinkNeighbor|Cluster|GraphSAINT\w*|HGT|Shadow\w*)Loader|SAGEConv|GCNConv|GATConv|GINConv|MessagePassing"


def read(document: Document) -> Reading:
    """Questions, with what the file says as plausible answers; the calls stand in ``order``, each with its line."""
    cells, left_out = _programs(document)
    trees = [(label, ast.parse(code)) for label, code in cells]
    found = [(label, call) for label, tree in trees for call in _calls(tree)]
    if not found:
        more = f" ({'; '.join(left_out)})" if left_out else ""
        raise PricingError(
            f"{document.path}: no call of differential privacy stands in it{more}; describe the run in a neutral YAML"
        )
    document.facts.place = (document.path, found[0][1].lineno)
    said = _said([tree for _, tree in trees])
    libraries = dict.fromkeys(CALLS[called(call.func)] for _, call in found)
    if libraries.keys() <= _DECLARED.keys():
        words = " and ".join(_DECLARED[library] for library in libraries)
        raise PricingError(f"{_shown(str(document.path), found[0][1])}: {words}, or describe it in a neutral YAML")
    unit = next((_UNITS[library] for library in libraries if library in _UNITS), "example")
    source = "\n".join(code for _, code in cells)
    shuffled = _SHUFFLED in libraries or re.search(r"poisson_sampling\s*=\s*False", source)

    def ask(name: str, allowed: tuple[float, float], words: str = "") -> float:
        entry = QUESTIONS[name]
        first = [v for v in said.get(name, ()) if allowed[0] <= v <= allowed[1]]
        written = f" The file writes {' and '.join(f'{v:g}' for v in first)}." if first else ""
        plausible = tuple(dict.fromkeys((*first, *map(float, entry["values"]))))
        return document.facts.ask(name, f"{words or entry['ask']}{written}", plausible)

    noise = ask("noise multiplier", (1e-6, 1e6))
    graph = re.search(_GRAPHS, source)
    mixed = f"{graph[0]} mixes the rows of several people: in how many examples is one person?" if graph else ""
    records = ask("examples of one person", (1, 1), mixed) if unit == "example" else 1.0
    beside = document.facts.ask("other steps or files", _BESIDE, (0.0, 1.0))
    if shuffled:
        sums = Sums(noise * document.louder, math.ceil(ask("epochs", (1e-9, 1e12))))
    else:
        sums = Sums(noise * document.louder, int(ask("steps", (1, 1e12))), "poisson", ask("sampling rate", (1e-12, 1.0)))
    delta = ask("delta", (1e-300, 0.5))
    listed = tuple(_shown(label, call) for label, call in found)
    why = f"if the answers say what runs: {sums.words}" + (f"; {graph[0]} mixes the rows of several people" if graph else "")
    rows = readings.rows_of_sums([[sums]], unit, TO_RECIPIENT, delta, people=(int(max(records, 1)),))
    rows = tuple(
        replace(row, why=f"{why}; {row.why.rpartition('; ')[2]}") for row in ((rows[2], *rows[:2]) if records > 1 else rows[:2])
    )
    if beside:
        rows = (readings.in_clear(unit, TO_RECIPIENT, "other steps use the same rows", delta=delta), *rows)
    claimed = [(v, d) for v in said.get("epsilon", ()) for d in said.get("delta", (0.0,))[:1]]
    claim = tuple(Claim(e, d or None, "total", "target_epsilon") for e, d in claimed) or readings.without_claim(
        "no ε is read from a program"
    )
    runs = f"{'jupyter execute' if document.path.suffix.lower() == '.ipynb' else 'python'} {document.path.name}"
    first = f"{', '.join(libraries)}: calls that speak of privacy. None of it was run; {_RUN.format(runs)}"
    open_ = ("everything that its text does not show", readings.SELECTED)
    return Reading(
        rows, claim, open_, left_out, (first, *listed), no_fix="what a program does is not read from its text", closed=False
    )


_BESIDE = (
    "Is anything else made of the same rows: steps without noise, weights from a file that learned from them, rows that are "
    "standardised by their own means, rows made of neighbours' rows (1 for yes, 0 for no)?"
)
_RUN = 'fedgraph price --run "{}" prices what it does'


def _calls(tree: ast.AST) -> list[ast.Call]:
    """The calls of ``CALLS`` in a program, in the order of their lines."""
    held = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node.func) in CALLS]
    return sorted(held, key=lambda each: (each.lineno, each.col_offset))


def _shown(label: str, call: ast.Call) -> str:
    said = [*map(ast.unparse, call.args), *(f"{k.arg or '**'}={ast.unparse(k.value)}" for k in call.keywords)]
    short = " ".join(", ".join(said).split())
    return f"{label}:{call.lineno}: {called(call.func)}({f'{short[:97]}…' if len(short) > 98 else short})"


def _programs(document: Document) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """((label, code) of the file or of each cell, what is not read)."""
    path: Path = document.path
    if path.suffix.lower() != ".ipynb":
        parsed(path, document.text)
        return [(path.name, document.text)], ()
    held, out, left_out = document.data.get("cells"), [], []
    for number, cell in enumerate(held if isinstance(held, list) else (), 1):
        source = table(cell).get("source") if table(cell).get("cell_type") == "code" else None
        code = "".join(map(str, source)) if isinstance(source, list) else str(source or "")
        magic = re.match(r"\s*%%(\S+)[^\n]*", code)
        if magic and magic[1] not in ("time", "timeit", "capture", "prun", "writefile", "python", "python3", "memit"):
            left_out.append(f"cell {number}, which begins with {magic[0].strip()[:40]}")
            continue
        rows = [re.sub(r"^(\s*)[%!?].*", r"\1pass", row) for row in code.splitlines()]
        try:
            ast.parse("\n".join(rows))
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            left_out.append(f"cell {number}, which is not Python")
            continue
        out.append((f"{path.name}, cell {number}", "\n".join(rows)))
    return out, tuple(left_out)


def _said(trees: list[ast.Module]) -> dict[str, tuple[float, ...]]:
    """Fact → the numbers that the program writes for it: in calls, flags, defaults of arguments, and constants."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    written = [(t.id, n.value) for n in nodes if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    for call in calls:  # an option of argparse or absl, and its default
        match call.args:
            case [ast.Constant(value=str() as option), *more]:
                defaults = [*(k.value for k in call.keywords if k.arg == "default"), *more[:1]]
                written += [(option.lstrip("-").replace("-", "_"), default) for default in defaults[:1]]
    constants: dict[str, float] = {}

    def numbers(pairs: Iterable[tuple[str | None, ast.expr]]) -> Iterator[tuple[str, float]]:
        for name, node in pairs:
            value = node.value if isinstance(node, ast.Constant) else constants.get(called(node))
            if name and isinstance(value, (int, float)) and not isinstance(value, bool):
                yield name, float(value)

    for name, value in numbers(written):
        constants[name] = value
    found: dict[str, dict[float, None]] = {}
    wanted = {word: fact for fact, words in _NAMES.items() for word in words} | {"target_epsilon": "epsilon"}
    for name, value in (*numbers((k.arg, k.value) for call in calls for k in call.keywords), *constants.items()):
        if name in wanted:
            found.setdefault(wanted[name], {})[value] = None
    return {fact: tuple(values) for fact, values in found.items()}


def called(node: ast.expr) -> str:
    """The name that stands last in an expression: ``c`` of ``a.b.c``; empty where it is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def parsed(path: Path, text: str) -> ast.Module:
    """A Python file as its syntax. ``PricingError`` where it is none."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else 1
        raise PricingError(f"{path}:{line or 1}: not Python: {error}") from None
