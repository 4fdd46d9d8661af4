"""A Python file or a notebook alone: the calls of differential privacy that stand in it, and what would have to be known.

What a program does is not read from its text: how often a loop runs, which loader it walks, what a row was made of. So every
number is asked, with what the file writes as the first plausible answer: a table of what each would mean, and never a total.
Whoever knows all of them writes them as a neutral YAML, which has one.
"""

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document, catalogue
from fedgraph.pricing.facts import QUESTIONS, table
from fedgraph.pricing.readings import TO_RECIPIENT, Claim, Reading, Sums

_KNOWN = catalogue()["python"].options
_CALLS = {name: library for library, names in table(_KNOWN, "calls").items() for name in str(names).split()}
_SHUFFLED = ("TensorFlow Privacy", "pfl-research")
_NAMES = {fact: str(names).split() for fact, names in table(_KNOWN, "names").items()}  # fact → what may call it
_GRAPHS = r"(Neighbor|LinkNeighbor|Cluster|GraphSAINT\w*|HGT|Shadow\w*)Loader|SAGEConv|GCNConv|GATConv|GINConv|MessagePassing"


@dataclass(frozen=True)
class _Found:
    """A call that speaks of privacy."""

    name: str
    label: str  # the file, or the cell of a notebook
    line: int
    said: str  # its arguments, as they are written


def read(document: Document) -> Reading:
    """Questions, with what the file says as plausible answers; the calls stand in ``order``, each with its line."""
    cells, left_out = _programs(document)
    trees = [(label, ast.parse(code)) for label, code in cells]
    found = [call for label, tree in trees for call in _calls(tree, label)]
    if not found:
        more = f" ({'; '.join(left_out)})" if left_out else ""
        raise PricingError(
            f"{document.path}: no call of differential privacy stands in it{more}; describe the run in a neutral YAML"
        )
    document.facts.place = (document.path, found[0].line)
    said = _said([tree for _, tree in trees])
    libraries = dict.fromkeys(_CALLS[call.name] for call in found)
    shuffled = bool(libraries) and all(library in _SHUFFLED for library in libraries)
    source = "\n".join(code for _, code in cells)

    def ask(name: str, allowed: tuple[float, float], words: str = "") -> float:
        entry = QUESTIONS[name]
        low, high = allowed
        first = tuple(v for v in said.get(name, ()) if low <= v <= high)
        plausible = tuple(dict.fromkeys((*first, *entry.values)))
        written = f" The file writes {' and '.join(f'{v:g}' for v in first)}." if first else ""
        return document.facts.ask(name, f"{words or entry.ask}{written}", plausible)

    noise = ask("noise multiplier", (1e-6, 1e6))
    graph = re.search(_GRAPHS, source)
    mixed = f"{graph[0]} mixes the rows of several people: in how many examples is one person?" if graph else ""
    records = ask("examples of one person", (1, 1), mixed)
    beside = document.facts.ask("other steps or files", _BESIDE, (0.0, 1.0))
    if shuffled:
        sums = Sums(noise * document.louder, math.ceil(ask("epochs", (1e-9, 1e12))))
    else:
        sums = Sums(noise * document.louder, int(ask("steps", (1, 1e12))), "poisson", ask("sampling rate", (1e-12, 1.0)))
    delta = ask("delta", (1e-300, 0.5))
    listed = tuple(f"{call.label}:{call.line}: {call.name}({call.said})" for call in found)
    why = f"if the answers say what runs: {sums.words}" + (f"; {graph[0]} mixes the rows of several people" if graph else "")
    rows = readings.rows_of_sums([[sums]], "example", TO_RECIPIENT, delta, people=(int(max(records, 1)),))
    rows = tuple(
        replace(row, why=f"{why}; {row.why.rpartition('; ')[2]}") for row in ((rows[2], *rows[:2]) if records > 1 else rows[:2])
    )
    if beside:
        rows = (readings.in_clear("example", TO_RECIPIENT, "other steps use the same rows", delta=delta), *rows)
    claimed = [(v, d) for v in said.get("epsilon", ()) for d in said.get("delta", (0.0,))[:1]]
    claim = tuple(Claim(e, d or None, "total", "target_epsilon") for e, d in claimed) or readings.without_claim(
        "no ε is read from a program"
    )
    first = f"{', '.join(libraries)}: calls that speak of privacy. None of it was run; {_RUN.format(document.path.name)}"
    open_ = ("everything that its text does not show", readings.SELECTED)
    return Reading(
        rows, claim, open_, left_out, (first, *listed), no_fix="what a program does is not read from its text", closed=False
    )


_BESIDE = (
    "Is anything else made of the same rows: steps without noise, weights from a file that learned from them, rows that are "
    "standardised by their own means, rows made of neighbours' rows (1 for yes, 0 for no)?"
)
_RUN = 'fedgraph price --run "python {}" prices what it does'


def _calls(tree: ast.AST, label: str) -> Iterator[_Found]:
    """The calls of ``_CALLS`` in a program, in the order of their lines."""
    held = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(held, key=lambda each: (each.lineno, each.col_offset)):
        if (name := called(node.func)) in _CALLS:
            said = [*map(ast.unparse, node.args), *(f"{k.arg or '**'}={ast.unparse(k.value)}" for k in node.keywords)]
            short = " ".join(", ".join(said).split())
            yield _Found(name, label, node.lineno, f"{short[:97]}…" if len(short) > 98 else short)


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
    constants: dict[str, float] = {}
    found: dict[str, dict[float, None]] = {}

    def number(node: ast.AST | None) -> float | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return float(node.value)
        return constants.get(called(node)) if isinstance(node, ast.expr) else None

    nodes = [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.Assign) and (value := number(node.value)) is not None:
            constants.update({target.id: value for target in node.targets if isinstance(target, ast.Name)})
        if isinstance(node, ast.Call):
            option = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            default = next((k.value for k in node.keywords if k.arg == "default"), node.args[1] if len(node.args) > 1 else None)
            if isinstance(option, str) and (value := number(default)) is not None:
                constants[option.lstrip("-").replace("-", "_")] = value
    wanted = {word: fact for fact, words in _NAMES.items() for word in words} | {"target_epsilon": "epsilon"}
    for node in nodes:
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg in wanted and (value := number(keyword.value)) is not None:
                found.setdefault(wanted[keyword.arg], {})[value] = None
    for name, value in constants.items():
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
