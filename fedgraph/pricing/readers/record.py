"""The record of a run (``recorder``): what was noised, what was not, and what a record cannot see.

Sums on the same rows compose. Rows that are never in the same sums pay side by side, the dearest part: parts of one data set
are told apart by their indices. Whether two data sets hold the same people no record shows: it is asked, and taken as yes.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import Table, Tree
from fedgraph.pricing.readings import TO_RECIPIENT, TO_SERVER, WITH_MODELS, Claim, Reading, Row, Sums

_MOST_CELLS = 64  # combinations of parts of several data sets that are priced one by one
_PERSON = "examples of one person"
_SIGHT = (
    "outside its sight: rows that were made of other people's rows (neighbours, means, class weights, statistics)",
    "outside its sight: files of weights and numbers that torch.load did not read",
)


def read(document: Document) -> Reading:
    """The rows of a run; in clear, with the reason, where a record or an answer does not rule that out."""
    runs = [run for run in _listed(document.data, "runs") if isinstance(run, dict)]
    if any(run.get("fedgraph_record") != 1 for run in runs) or not runs:
        raise PricingError(f"{document.path}:1: fedgraph_record is another version than 1; record the run again")
    data, sums, clear, cells, messages = _merged(runs)
    claims = tuple(
        Claim(_number(c, "epsilon"), _number(c, "delta"), "total", str(c["words"]))
        for run in runs for c in _each(run, "claims")
    ) or readings.without_claim("the run stated no ε")  # fmt: skip
    if not sums and not clear and not messages:
        raise PricingError(
            f"{document.path}: nothing private was seen: no noised sum of Opacus, no filter of Flower or FLARE, no step"
        )
    steps = sum(int(_number(c, "count")) for c in clear)
    seen = f"steps in clear on the same data: {steps:,} optimizer steps outside a mechanism were seen"
    files = sorted({str(path) for run in runs for path in _listed(run, "weights")})
    loaded = f"weights that came from files: {', '.join(files) if files else 'none were seen'}"
    unprotected = (_SIGHT[0], seen, loaded, _SIGHT[1], readings.SELECTED)
    file, _, line = str((clear or sums or [{"where": ""}])[0]["where"]).rpartition(":")
    document.facts.place = (Path(file), int(line)) if file and line.isdigit() else None
    document.facts.known("delta")  # given to every record, needed by none that is in pure ε alone
    delta = document.ask("delta") if sums or any(_number(m, "noise") for m in messages) else 0.0
    viewer = TO_RECIPIENT if sums or clear else TO_SERVER
    unit = "example" if sums or clear else "client"
    reasons = list(_reasons(document, runs, data, sums, clear, files))
    if reasons or not (sums or messages):
        rows = tuple(
            readings.row_in_clear(unit, "zero-out", viewer, why, 1, delta) for why in reasons or ("no sum was noised",)
        )
        return Reading(
            rows, claims, unprotected, order=("What happens in clear is priced first.",), no_fix="mend what is in clear first"
        )
    rows, settings, people = _of_clients(document, messages, delta), None, None
    if sums:
        rows = (*_of_examples(document, data, sums, cells, delta), *rows)
        noises = {_number(s, "noise") for s in sums}
        settings = {"noise_multiplier": noises.pop() * document.louder} if len(noises) == 1 else None
        people = min((n for s in sums if (n := _number(data[int(_number(s, "data"))], "rows"))), default=None)
    order = (readings.COMPOSED, readings.SECRET) if sums else ("Messages compose adaptively; pure ε adds up.",)
    if any(str(s["by"]).startswith("Opacus") for s in sums):
        order = (*order, document.words["divides"])
    by = ", ".join(sorted({str(each["by"]) for each in (*sums, *messages)}))
    no_fix = "there are several noises; set each and record the run again"
    return Reading(rows, claims, unprotected, (), (f"Noise as it was added, by {by}.", *order), settings, no_fix, people=people)


def _merged(runs: Sequence[Table]) -> tuple[list[Table], list[Table], list[Table], list[list[list[int]]], list[Table]]:
    """(data sets, sums, steps in clear, per base the parts that one row may be in, messages) of all processes."""
    data: list[Table] = []
    sums: list[Table] = []
    clear: list[Table] = []
    bases: dict[tuple[int, int], list[list[int]]] = {}
    messages = []
    for number, run in enumerate(runs):
        first = len(data)
        data += [{**held, "base": f"{number}.{held['base']}"} for held in _each(run, "data")]
        moved = [{**s, "data": first + int(_number(s, "data"))} for s in _each(run, "sums")]
        sums += moved
        for step in _each(run, "clear"):
            clear.append({**step, "data": None if step["data"] is None else first + int(_number(step, "data"))})
        for cell in _listed(run, "cells"):
            parts = [first + int(i) for i in cell if isinstance(i, int)] if isinstance(cell, list) else []
            bases.setdefault((number, int(str(data[parts[0]]["base"]).split(".")[1])), []).append(parts)
        messages += _each(run, "messages")
    return data, sums, clear, list(bases.values()), messages


def _reasons(
    document: Document, runs: Sequence[Table], data: list[Table], sums: list[Table], clear: list[Table], files: list[str]
) -> Iterator[str]:
    """Why the data may have been used in clear: what was seen, unless an answer takes it back."""
    whether = document.facts.whether
    if not all(run.get("complete") for run in runs):
        yield "a process was killed before it wrote all that it did: let the run end, and record it again"
    private = {str(data[int(_number(s, "data"))]["base"]) for s in sums}
    for step in clear:
        count, where, index = int(_number(step, "count")), str(step["where"]), step["data"]
        held = data[int(index)] if isinstance(index, int) else None
        if held is None:
            asked = f"{count:,} optimizer steps at {where} follow no batch that was seen: do they use no private rows?"
            if not whether(f"steps at {where} use no private rows", asked):
                yield f"{count:,} optimizer steps in clear at {where}, on data that no loader gave"
        elif str(held["base"]) in private or not sums:
            asked = (
                f"{count:,} optimizer steps at {where} go without noise while {held['name']} are walked: do they use no row?"
            )
            if not whether(f"steps at {where} use no private rows", asked):
                yield f"{count:,} optimizer steps in clear at {where}, on the same data ({held['name']})"
        elif not whether(f"data of {where} are public", f"{held['name']} are trained on in clear at {where}: are they public?"):
            yield f"{count:,} optimizer steps in clear at {where}, on {held['name']}"
    if files and not whether("weights are public", f"Weights were loaded from {', '.join(files)}: from public data alone?"):
        yield f"weights were loaded from {', '.join(files)}, and what they learned from is not known"
    for index in dict.fromkeys(int(_number(s, "data")) for s in sums):
        if data[index].get("standardised"):
            asked = f"The columns of {data[index]['name']} have mean 0 and deviation 1 over these very rows: were both public?"
            if not whether("means and deviations are public", asked):
                yield f"the rows of {data[index]['name']} are standardised by their own mean and deviation, without noise"
                break
    for how in sorted({str(s["sampling"]) for s in sums} - {"poisson", "fixed", "shuffled", "none"}):
        if not whether(
            "examples once an epoch", f"Batches are drawn by {how}: is every example in one batch of a pass at most?"
        ):
            yield f"batches are drawn by {how}"


def _of_examples(
    document: Document, data: list[Table], sums: list[Table], cells: list[list[list[int]]], delta: float
) -> tuple[Row, ...]:
    held: dict[int, list[Sums]] = {}
    for s in sums:
        kind, noise = str(s["sampling"]), _number(s, "noise") * document.louder
        count = int(_number(s, "count" if kind in ("poisson", "fixed", "none") else "passes"))
        kind = kind if kind in ("poisson", "fixed") else "none"
        held.setdefault(int(_number(s, "data")), []).append(
            Sums(noise, count, kind, _number(s, "rate"), int(_number(s, "draws")))
        )
    apart = len(cells) > 1 and document.facts.whether(
        "data sets hold different people",
        f"{len(cells)} data sets or processes were trained on: does nobody stand in two of them?",
    )
    used = [cell for base in cells for cell in base]
    if not apart and len(cells) > 1:
        few = 1
        for base in cells:
            few *= len(base)
        together = itertools.product(*cells) if few <= _MOST_CELLS else [tuple(used)]
        used = [sorted({index for cell in each for index in cell}) for each in together]
    kinds = [tuple(part for index in cell for part in held.get(index, ())) for cell in used]
    priced = list(dict.fromkeys(_folded(kind) for kind in kinds if kind))
    why = next((str(d["graph"]) for i, d in enumerate(data) if d.get("graph") and i in held), "")
    records = document.facts.known(_PERSON)
    if why and records is None:
        question = f"In how many examples is one person? {why}: a person is in the examples of its neighbours, too."
        records = document.facts.ask(_PERSON, question, (1000.0, 100.0, 10.0, 1.0))
    rows = readings.rows_of_sums(
        priced, "example", TO_RECIPIENT, delta, people=(int(records),) if records else readings.SEVERAL
    )
    if records is not None:  # a person is the unit; one example alone stands below
        rows = (rows[2], *rows[:2])
    return rows


def _folded(kind: Sequence[Sums]) -> tuple[Sums, ...]:
    """Sums of the same kind, counted together."""
    counts: dict[tuple[float, str, float, int], int] = {}
    for s in kind:
        key = s.multiplier, s.sampling, s.rate, s.draws
        counts[key] = counts.get(key, 0) + s.count
    return tuple(Sums(m, n, sampling, rate, draws) for (m, sampling, rate, draws), n in sorted(counts.items()))


def _of_clients(document: Document, messages: list[Table], delta: float) -> tuple[Row, ...]:
    """Per filter, the client that sent most."""
    rows = []
    for by, viewer in sorted({(str(m["by"]), str(m["viewer"])) for m in messages}):
        mine = [m for m in messages if (m["by"], m["viewer"]) == (by, viewer)]
        inner = by.partition("(")[2].rstrip(")")
        if inner and inner not in ("FedAvg", "FedProx"):
            asked = (
                f"{by.partition('(')[0]} noises what {inner} returns: is everything that {inner} keeps between rounds noised?"
            )
            if not document.facts.whether(f"state of {inner} is noised", asked):
                rows.append(readings.row_in_clear("client", "zero-out", WITH_MODELS, f"{inner} keeps what is not noised"))
                continue
        asked = "Does every client clip its update (fixedclipping_mod or adaptiveclipping_mod)?"
        if "ClientSide" in by and not document.facts.whether("clients clip", asked):
            rows.append(
                readings.row_in_clear("client", "zero-out", WITH_MODELS, "no record of the server shows that clients clip")
            )
            continue
        cells: dict[str, list[Table]] = {}
        for m in mine:
            cells.setdefault(str(m["who"]), []).append(m)
        total = max(int(sum(_number(m, "count") for m in cell)) for cell in cells.values())
        to = WITH_MODELS if viewer == "models" else TO_SERVER
        why = f"{by}: {len(cells)} senders, at most {total:,} messages of one"
        if any(_number(m, "noise") for m in mine):
            parts = [
                [Sums(_number(m, "noise") * document.louder, int(_number(m, "count")), "none") for m in cell]
                for cell in cells.values()
            ]
            folded = list(dict.fromkeys(_folded(part) for part in parts))
            made = readings.rows_of_sums(folded, "client", to, delta)
            rows += [Row(r.unit, r.relation, r.viewer, r.cost, r.rounds, r.delta, f"{why}; {r.why}") for r in made]
        else:
            spent = max(sum(_number(m, "epsilon") * _number(m, "count") for m in cell) for cell in cells.values())
            cost = costs.cost_of_pure(spent / document.louder)
            rows.append(Row("client", "replace", to, cost, 1, 0.0, why))
    return tuple(rows)


def _number(held: Table, key: str) -> float:
    value = held.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        if value is None and key == "rows":
            return 0.0
        raise PricingError(f"the record holds {key} = {value!r}; record the run again")
    return float(value)


def _listed(held: Table, key: str) -> list[Tree]:
    value = held.get(key)
    return value if isinstance(value, list) else []


def _each(held: Table, key: str) -> list[Table]:
    return [each for each in _listed(held, key) if isinstance(each, dict)]
