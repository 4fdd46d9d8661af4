"""A Python file or a notebook alone: the calls of differential privacy that stand in it, and what would have to be known.

What a program does is not read from its text: how often a loop runs, which loader it walks, what a row was made of. So every
number is asked, with a table of what plausible answers would mean, and never a total. Whoever knows all of them writes them as
a neutral YAML, which has one.
"""

import ast
import math
import re
from dataclasses import replace
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document, catalogue, table
from fedgraph.pricing.readings import TO_RECIPIENT, Reading, Sums

_KNOWN = table(catalogue()["python"].options, "calls")
CALLS = {name: library for library, names in _KNOWN.items() for name in str(names).split()}
_SHUFFLED = "TensorFlow Privacy"  # whose users draw no coins
_UNITS = {"pfl-research": "user", "TensorFlow Federated": "client"}  # whose data a row is, where it is no example
_DECLARED = {  # whose noise is declared in other files → what to price
    "Flower": "price the pyproject.toml of its app", "NVIDIA FLARE": "export the job, and price its config_fed_client.json",
}  # fmt: skip
_GRAPHS = r"(Neighbor|LinkNeighbor|Cluster|GraphSAINT\w*|HGT|Shadow\w*)Loader|SAGEConv|GCNConv|GATConv|GINConv|MessagePassing"


def read(document: Document) -> Reading:
    """Questions with plausible answers; the calls stand in ``order``, each with its line."""
    cells, left_out = _programs(document)
    found = [(label, call) for label, tree in cells for call in sorted(_calls(tree), key=lambda c: (c.lineno, c.col_offset))]
    if not found:
        words = f"no call of differential privacy stands in it{''.join(f' ({cell})' for cell in left_out)}"
        raise PricingError(f"{document.path}: {words}; describe the run in a neutral YAML")
    libraries = dict.fromkeys(CALLS[called(call.func)] for _, call in found)
    if libraries.keys() <= _DECLARED.keys():
        words = " and ".join(_DECLARED[library] for library in libraries)
        raise PricingError(f"{_shown(str(document.path), found[0][1])}: {words}, or describe it in a neutral YAML")
    unit = next((_UNITS[library] for library in libraries if library in _UNITS), "example")
    source, ask = "\n".join(ast.unparse(tree) for _, tree in cells), document.ask
    noise, graph = ask("noise multiplier") * document.louder, re.search(_GRAPHS, source)
    mixed = f"{graph[0]} mixes the rows of several people" if graph else ""
    whose = mixed and f"{mixed}: in how many examples is one person?"
    records = ask("examples of one person", question=whose) if unit == "example" else 1.0
    beside = ask("other steps or files")
    if _SHUFFLED in libraries or re.search(r"poisson_sampling\s*=\s*False", source):
        sums = Sums(noise, math.ceil(ask("epochs")))
    else:
        sums = Sums(noise, int(ask("steps")), "poisson", ask("sampling rate"))
    delta = ask("delta")
    rows = readings.rows_of_sums([[sums]], unit, TO_RECIPIENT, delta, people=(int(max(records, 1)),))
    rows = (rows[2], *rows[:2]) if records > 1 else rows[:2]
    rows = tuple(replace(row, why=f"if the answers say what runs: {row.why}") for row in rows)
    if beside:
        rows = (readings.in_clear(unit, TO_RECIPIENT, "other steps use the same rows", delta=delta), *rows)
    runs = f"{'jupyter execute' if document.path.suffix.lower() == '.ipynb' else 'python'} {document.path.name}"
    first = f"{', '.join(libraries)}: calls that speak of privacy. None of it was run; "
    first += f'fedgraph price --run "{runs}" prices what it does'
    return Reading(
        rows, readings.without_claim("no ε is read from a program"),
        ("everything that its text does not show", readings.SELECTED), left_out,
        (first, *(_shown(label, call) for label, call in found)), closed=False,
    )  # fmt: skip


def _calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node.func) in CALLS]


def _shown(label: str, call: ast.Call) -> str:
    said = [*map(ast.unparse, call.args), *(f"{k.arg or '**'}={ast.unparse(k.value)}" for k in call.keywords)]
    short = " ".join(", ".join(said).split())
    return f"{label}:{call.lineno}: {called(call.func)}({f'{short[:97]}…' if len(short) > 98 else short})"


def _programs(document: Document) -> tuple[list[tuple[str, ast.Module]], tuple[str, ...]]:
    """((label, syntax) of the file or of each cell, the cells that are not read)."""
    if document.path.suffix.lower() != ".ipynb":
        return [(document.path.name, parsed(document.path, document.text))], ()
    held, out, left_out = document.data.get("cells"), [], []
    for number, cell in enumerate(held if isinstance(held, list) else (), 1):
        source = table(cell).get("source") if table(cell).get("cell_type") == "code" else None
        code = "".join(map(str, source)) if isinstance(source, list) else str(source or "")
        rows = [re.sub(r"^(\s*)[%!?].*", r"\1pass", row) for row in code.splitlines()]
        magic = re.match(r"\s*%%(\S+)", code)
        try:
            if magic and magic[1] not in ("time", "timeit", "capture", "prun", "writefile", "python", "python3", "memit"):
                raise ValueError("another language")
            out.append((f"{document.path.name}, cell {number}", ast.parse("\n".join(rows))))
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            left_out.append(f"cell {number}, which is not Python")
    return out, tuple(left_out)


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
