"""A Python file or a notebook alone: the calls of differential privacy that stand in it, and what would have to be known.

What a program does is not read from its text: how often a loop runs, which loader it walks, what a row was made of. So every
number is asked, with what the file writes as the first plausible answer: a table of what each would mean, and never a total.
Whoever knows all of them writes them as a neutral YAML, which has one.
"""

import ast
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import QUESTIONS, Document, catalogue, table
from fedgraph.pricing.readings import TO_RECIPIENT, Claim, Reading, Sums

_KNOWN = catalogue()["python"].options
CALLS = {name: library for library, names in table(_KNOWN, "calls").items() for name in str(names).split()}
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
    walked = [(label, list(ast.walk(ast.parse(code)))) for label, code in cells]
    found = [(label, call) for label, nodes in walked for call in sorted(_calls(nodes), key=lambda c: (c.lineno, c.col_offset))]
    if not found:
        more = f" ({'; '.join(left_out)})" if left_out else ""
        words = f"no call of differential privacy stands in it{more}; describe the run in a neutral YAML"
        raise PricingError(f"{document.path}: {words}")
    libraries = dict.fromkeys(CALLS[called(call.func)] for _, call in found)
    if libraries.keys() <= _DECLARED.keys():
        words = " and ".join(_DECLARED[library] for library in libraries)
        raise PricingError(f"{_shown(str(document.path), found[0][1])}: {words}, or describe it in a neutral YAML")
    unit = next((_UNITS[library] for library in libraries if library in _UNITS), "example")
    said, source = _said([node for _, nodes in walked for node in nodes]), "\n".join(code for _, code in cells)

    def ask(name: str, least: float, most: float, words: str = "") -> float:
        entry, first = QUESTIONS[name], [v for v in said.get(name, ()) if least <= v <= most]
        written = f" The file writes {' and '.join(f'{v:g}' for v in first)}." if first else ""
        plausible = tuple(dict.fromkeys((*first, *map(float, entry["values"]))))
        return document.ask(name, None, f"{words or entry['ask']}{written}", plausible)

    noise, graph = ask("noise multiplier", 1e-6, 1e6) * document.louder, re.search(_GRAPHS, source)
    mixed = f"{graph[0]} mixes the rows of several people" if graph else ""
    whose = mixed and f"{mixed}: in how many examples is one person?"
    records = ask("examples of one person", 1, 1, whose) if unit == "example" else 1.0
    beside = document.ask("other steps or files")
    if _SHUFFLED in libraries or re.search(r"poisson_sampling\s*=\s*False", source):
        sums = Sums(noise, math.ceil(ask("epochs", 1e-9, 1e12)))
    else:
        sums = Sums(noise, int(ask("steps", 1, 1e12)), "poisson", ask("sampling rate", 1e-12, 1.0))
    delta = ask("delta", 1e-300, 0.5)
    why = "; ".join(filter(None, (f"if the answers say what runs: {sums.words}", mixed)))
    rows = readings.rows_of_sums([[sums]], unit, TO_RECIPIENT, delta, people=(int(max(records, 1)),))
    rows = (rows[2], *rows[:2]) if records > 1 else rows[:2]
    rows = tuple(replace(row, why=f"{why}; {row.why.rpartition('; ')[2]}") for row in rows)
    if beside:
        rows = (readings.in_clear(unit, TO_RECIPIENT, "other steps use the same rows", delta=delta), *rows)
    claims = tuple(Claim(e, said.get("delta", (None,))[0] or None, "total", "target_epsilon") for e in said.get("epsilon", ()))
    runs = f"{'jupyter execute' if document.path.suffix.lower() == '.ipynb' else 'python'} {document.path.name}"
    first = f"{', '.join(libraries)}: calls that speak of privacy. None of it was run; {_RUN.format(runs)}"
    return Reading(
        rows, claims or readings.without_claim("no ε is read from a program"),
        ("everything that its text does not show", readings.SELECTED), left_out,
        (first, *(_shown(label, call) for label, call in found)),
        closed=False,
    )  # fmt: skip


_RUN = 'fedgraph price --run "{}" prices what it does'


def _calls(nodes: Iterable[ast.AST]) -> list[ast.Call]:
    """The calls of ``CALLS`` among them."""
    return [node for node in nodes if isinstance(node, ast.Call) and called(node.func) in CALLS]


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


def _said(nodes: Sequence[ast.AST]) -> dict[str, tuple[float, ...]]:
    """Fact → the numbers that the program writes for it: in calls, flags, defaults of arguments, and constants."""
    keywords = [(k.arg, k.value) for node in nodes if isinstance(node, ast.Call) for k in node.keywords]
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
                defaults = [*(k.value for k in options if k.arg == "default"), *more[:1]]
                pairs = [(option.lstrip("-").replace("-", "_"), default) for default in defaults[:1]]
        constants |= {name: known for name, held in pairs if (known := number(held)) is not None}
    wanted = {word: fact for fact, words in _NAMES.items() for word in words} | {"target_epsilon": "epsilon"}
    found: dict[str, dict[float, None]] = {}
    for word, said in (*((name, number(held)) for name, held in keywords), *constants.items()):
        if word in wanted and said is not None:
            found.setdefault(wanted[word], {})[said] = None
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
