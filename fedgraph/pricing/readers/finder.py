"""A Python file or a notebook alone: the calls of differential privacy that stand in it, and what would have to be known.

What a program does is not read from its text: how often a loop runs, which loader it walks, what a row was made of. So every
number is asked, with what the file writes as the first plausible answer: a table of what each would mean, and never a total.
Whoever knows all of them writes them as a neutral YAML, which has one.
"""

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import QUESTIONS, Document, catalogue, table
from fedgraph.pricing.readings import TO_RECIPIENT, Claim, Reading, Sums

_KNOWN = catalogue()["python"].options
CALLS = {name: library for library, names in table(_KNOWN, "calls").items() for name in str(names).split()}
_FACTS = {name: fact for fact, names in table(_KNOWN, "names").items() for name in str(names).split()}
_LIMITS = {
    "noise multiplier": (1e-6, 1e6),
    "epochs": (1e-9, 1e12),
    "steps": (1, 1e12),
    "sampling rate": (1e-12, 1),
    "delta": (1e-300, 0.5),
}
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
    said, source = (
        _said([node for _, tree in cells for node in ast.walk(tree)]),
        "\n".join(ast.unparse(tree) for _, tree in cells),
    )

    def ask(name: str, question: str = "") -> float:
        written = said.get(name, ())
        words = f" The file writes {' and '.join(f'{v:g}' for v in written)}." if written else ""
        plausible = tuple(dict.fromkeys((*written, *map(float, QUESTIONS[name]["values"]))))
        return document.ask(name, None, f"{question or QUESTIONS[name]['ask']}{words}", plausible)

    noise, graph = ask("noise multiplier") * document.louder, re.search(_GRAPHS, source)
    mixed = f"{graph[0]} mixes the rows of several people" if graph else ""
    whose = mixed and f"{mixed}: in how many examples is one person?"
    records = ask("examples of one person", whose) if unit == "example" else 1.0
    beside = document.ask("other steps or files")
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
    delta_said = said.get("delta", (None,))[0]
    claims = tuple(Claim(e, delta_said, "total", "target_epsilon") for e in said.get("epsilon", ()))
    runs = f"{'jupyter execute' if document.path.suffix.lower() == '.ipynb' else 'python'} {document.path.name}"
    first = f"{', '.join(libraries)}: calls that speak of privacy. None of it was run; "
    first += f'fedgraph price --run "{runs}" prices what it does'
    return Reading(
        rows, claims or readings.without_claim("no ε is read from a program"),
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


def _said(nodes: Sequence[ast.AST]) -> dict[str, tuple[float, ...]]:
    """Fact → the numbers that the program writes for it: in calls, flags, defaults of arguments, and constants."""
    constants: dict[str | None, float] = {}

    def number(node: ast.expr) -> float | None:
        value = node.value if isinstance(node, ast.Constant) else constants.get(called(node))
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    for node in nodes:
        pairs: list[tuple[str, ast.expr]] = []
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target.id, value) for target in targets if isinstance(target, ast.Name)]
            case ast.Call(args=[ast.Constant(value=str() as option), *more], keywords=options):  # of argparse or absl
                default = [*(k.value for k in options if k.arg == "default"), *more][:1]
                pairs = [(option.lstrip("-").replace("-", "_"), value) for value in default]
        constants |= {name: known for name, held in pairs if (known := number(held)) is not None}
    keywords = [(k.arg, number(k.value)) for node in nodes if isinstance(node, ast.Call) for k in node.keywords]
    found: dict[str, dict[float, None]] = {}
    for word, wrote in (*keywords, *constants.items()):
        fact = _FACTS.get(str(word), "")
        least, most = _LIMITS.get(fact, (0.0, math.inf))
        if fact and wrote is not None and least <= wrote <= most:
            found.setdefault(fact, {})[wrote] = None
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
