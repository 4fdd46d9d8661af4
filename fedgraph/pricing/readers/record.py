"""The record of a run (``recorder``): what was noised, what was not, and what a record cannot see.

Sums on the same rows compose. Rows that are never in the same sums pay side by side, the dearest part: parts of one data set
are told apart by their indices. Whether two data sets hold the same people no record shows: it is asked, and taken as yes.
"""

import fcntl
import itertools
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document, Said
from fedgraph.pricing.readings import TO_RECIPIENT, TO_SERVER, WITH_MODELS, Claim, Reading, Row, Sums
from fedgraph.pricing.recorder import MOST_ROWS, Record
from fedgraph.privacy import PureDP

_Part = tuple[int, int]  # the process, and its number of a data set
_MOST_CELLS = 64  # combinations of parts of several data sets that are priced one by one
_MOST_NOISES = 20  # noises of one cell that are composed one by one; of more, each counts as the least of its group
_LARGEST = 1e60  # numbers that are priced, and one over it
_PERSON = "examples of one person"
_NOTHING = "nothing private was seen: no noised sum of Opacus, no filter of Flower or FLARE, no step"


def replayed(path: Path, until: float) -> Record:
    """The record that a process left, whether it ended or was killed.

    Args:
        path: The file of the process.
        until: The time of ``time.monotonic`` until which a process is waited for that still runs.

    Returns:
        As ``Recording.record``. Where more may have happened than the file says, its ``doubt`` says why.
    """
    with path.open("rb") as file:
        ended = False
        while not ended:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                ended = True
            except BlockingIOError:
                if time.monotonic() > until:
                    break
                time.sleep(0.05)
        *lines, torn = file.read().split(b"\n")
    events: dict[int, Said] = {}
    unused: dict[int | None, tuple[int | None, str]] = {}
    try:
        for line in lines:
            held = json.loads(line)
            if not isinstance(held, int):
                events[held["number"]] = SimpleNamespace(**held, count=0)
            event = events[held if isinstance(held, int) else held["number"]]
            event.count += 1
            if event.event == "gradients":
                unused[event.number] = event.data, event.where
            elif event.event in ("sum", "clear"):
                unused.clear()
        found = Record(list(events.values()), unused.values(), "" if ended else "a process ran on when the command had ended")
        _together([found])
    except (ValueError, LookupError, TypeError, AttributeError):
        return Record(doubt="the record of a process holds a line that is none")
    return replace(found, doubt="the record of a process ends in the middle of a line") if torn else found


def read(document: Document) -> Reading:
    """The rows of a run; in clear, with the reason, where a record or an answer does not rule that out."""
    seen = _together(document.records)
    if not (seen.sums or seen.clear or seen.messages or seen.doubts):
        raise PricingError(f"{document.path}: {_NOTHING}")
    for each in (*seen.sums, *seen.messages):
        for name in {"noise", "epsilon", "clip", "rate"} & vars(each).keys():
            value = float(vars(each)[name])
            if not (value in (0, math.inf) or 1 / _LARGEST <= value <= _LARGEST) or (name == "rate" and value > 1):
                raise PricingError(f"{document.path}: {name}: found {value}; allowed: a number ≥ 0, of a rate in [0, 1]")
    document.known("delta")  # given to every record, needed by none that is in pure ε alone
    delta = document.ask("delta") if seen.sums or any(m.noise for m in seen.messages) else 0.0
    claims = tuple(Claim(e, d, "total", words) for (d, words), e in seen.claims.items())
    unprotected = (
        "outside its sight: rows that were made of other people's rows (neighbours, means, class weights, statistics)",
        f"steps in clear on the same data: {sum(c.count for c in seen.clear):,} optimizer steps outside a mechanism were seen; "
        "what learns without torch is outside its sight",
        f"weights that came from files: {', '.join(seen.weights) or 'none were seen'}",
        "outside its sight: files of weights and numbers that torch.load did not read, and who knows the seed of the noise",
        readings.SELECTED,
    )
    reasons = list(_reasons(document, seen))
    clients = seen.messages and not (seen.sums or seen.clear)
    unit, viewer = ("client", TO_SERVER) if clients else ("example", TO_RECIPIENT)
    if reasons or not (seen.sums or seen.messages):
        rows = tuple(readings.in_clear(unit, viewer, why, delta=delta) for why in reasons or ("no sum was noised",))
        return Reading(rows, claims, unprotected, order=("What happens in clear is priced first.",))
    rows, settings = _of_clients(document, seen.messages, delta), None
    if seen.sums:
        rows = (*_of_examples(document, seen, delta), *rows)
        noises = {s.noise for s in seen.sums}
        settings = {"noise_multiplier": noises.pop() * document.louder} if len(noises) == 1 else None
    rows = rows or (readings.in_clear(unit, viewer, "no message was noised", delta=delta),)
    how = [readings.COMPOSED, readings.SECRET] if seen.sums else ["Messages compose adaptively; pure ε adds up."]
    if any(s.by.startswith("Opacus") for s in seen.sums):
        how.append(document.words["divides"])
    by = ", ".join(sorted({*(s.by for s in seen.sums), *(m.by for m in seen.messages)}))
    people = min((n for s in seen.sums if (n := seen.data[s.data].rows)), default=None)
    claims = claims or readings.without_claim("the run stated no ε")
    return Reading(rows, claims, unprotected, (), (f"Noise as it was added, by {by}.", *how), settings, people=people)


def _together(records: Iterable[Record]) -> Said:
    """What all processes did. A data set is named by (process, number); steps that nothing used in sight are in clear."""
    told = defaultdict[str, list[Said]](list)
    doubts = set[str]()
    for process, record in enumerate(records):
        if not (record.doubt or record.unused or {e.event for e in record.events} & {"sum", "clear", "message"}):
            continue  # a process that did nothing but read
        steps = [SimpleNamespace(event="clear", data=data, where=where, count=1) for data, where in record.unused]
        for event in (*record.events, *steps):
            held = vars(event)
            named = {name: (process, held[name]) for name in ("data", "base", "of", "number") if held.get(name) is not None}
            told[event.event].append(SimpleNamespace(**{**held, **named}))
        doubts |= {record.doubt} - {""}
    clear, passes = Counter[tuple[_Part | None, str]](), Counter[_Part]()
    for step in told["clear"]:
        clear[step.data, step.where] += step.count
    for more in told["passes"]:
        passes[more.of] += more.count * more.more
    claims = defaultdict[tuple[float, str], float](float)
    for claim in told["claim"]:
        claims[claim.delta, claim.words] = max(claim.epsilon, claims[claim.delta, claim.words])
    reused, standardised = ({each.data for each in told[name]} for name in ("reused", "standardised"))
    graphs = {each.data: each.why for each in told["graph"]}
    data = {held.data: held for held in told["data"]}
    for key, held in data.items():
        held.graph, held.standardised = graphs.get(key, ""), key in standardised
    for one in told["sum"]:
        one.sampling, one.passes = "none" if one.data in reused else one.sampling, max(passes[one.number], 1)
    steps = [SimpleNamespace(data=key, where=where, count=count) for (key, where), count in clear.items()]
    return SimpleNamespace(
        data=data, cells=_cells(data, {s.data for s in told["sum"]}), sums=told["sum"], clear=steps, doubts=sorted(doubts),
        messages=told["message"], claims=claims, weights=sorted({each.file for each in told["weights"]}),
    )  # fmt: skip


def _cells(data: Mapping[_Part, Said], used: set[_Part]) -> list[list[list[_Part]]]:
    """Of each base, the sets of data that one row may be part of."""
    cells = []
    for base in dict.fromkeys(data[index].base for index in sorted(used)):
        parts = [index for index in sorted(used) if data[index].base == base]
        listed = {index: rows for index in parts if (rows := data[index].indices) is not None}
        held = defaultdict[int, list[_Part]](list)
        if any(listed.values()) and sum(map(len, listed.values())) <= MOST_ROWS:
            for index, rows in listed.items():
                for row in rows:
                    held[row].append(index)
        whole = [index for index in parts if index not in listed]
        each = [sorted([*whole, *cell]) for cell in dict.fromkeys(map(tuple, held.values()))]
        cells.append(each or [parts])
    return cells


def _reasons(document: Document, seen: Said) -> Iterator[str]:
    """Why the data may have been used in clear: what was seen, unless an answer takes it back."""
    whether = document.whether
    for doubt in seen.doubts:
        yield f"{doubt}: let the run end, and record it again"
    for where in dict.fromkeys(step.where for step in seen.clear):  # one question names all data of one line
        here = [step for step in seen.clear if step.where == where]
        rows = ["data that no loader gave" if step.data is None else seen.data[step.data].name for step in here]
        steps = f"{sum(step.count for step in here):,} optimizer steps at {where} in clear, on {' and '.join(rows)}"
        asked = f"{steps}: does nothing that they learn of private rows leave, but in noised messages?"
        if not whether(f"steps at {where} tell nobody", asked):
            yield steps
    files = ", ".join(seen.weights)
    if files and not whether("weights are public", f"Weights were loaded from {files}: from public data alone?"):
        yield f"weights were loaded from {files}, and what they learned from is not known"
    made = next((seen.data[s.data].name for s in seen.sums if seen.data[s.data].standardised), None)
    asked = f"The columns of {made} have mean 0 and deviation 1, or ends of 0 and 1, over these very rows: were these public?"
    if made and not whether("means and deviations are public", asked):
        yield f"the rows of {made} are scaled by their own numbers, without noise"
    for how in sorted({s.sampling for s in seen.sums} - {"poisson", "fixed", "shuffled", "none"}):
        asked = f"Batches are drawn by {how}: is every example in one batch of a pass at most?"
        if not whether("examples once an epoch", asked):
            yield f"batches are drawn by {how}"


def _of_examples(document: Document, seen: Said, delta: float) -> tuple[Row, ...]:
    held = defaultdict[_Part, list[Sums]](list)
    for s in seen.sums:
        kind = s.sampling if s.sampling in ("poisson", "fixed") else "none"
        count, draws = (s.count, s.draws) if s.sampling in ("poisson", "fixed", "none") else (s.passes, 1)
        units = int(seen.data[s.data].rows or 0) or None
        held[s.data].append(Sums(s.noise * document.louder, count, kind, s.rate, draws, units))
    cells = seen.cells
    apart = len(cells) > 1 and document.whether(
        "data sets hold different people",
        f"{len(cells)} data sets or processes were trained on: does nobody stand in two of them?",
    )
    used = [cell for base in cells for cell in base]
    if not apart and len(cells) > 1:
        few = math.prod(map(len, cells)) <= _MOST_CELLS
        used = [list(itertools.chain(*each)) for each in (itertools.product(*cells) if few else [used])]
    kinds = [[part for index in dict.fromkeys(cell) for part in held.get(index, ())] for cell in used]
    priced = list(dict.fromkeys(_folded(kind) for kind in kinds if kind))
    graph = next((seen.data[index].graph for index in held if seen.data[index].graph), "")
    records = document.known(_PERSON)
    if graph and records is None:
        question = f"In how many examples is one person? {graph}: a person is in the examples of its neighbours, too."
        records = document.ask(_PERSON, None, question, (1000.0, 100.0, 10.0, 1.0))
    people = (max(int(records), 1),) if records is not None else readings.SEVERAL
    rows = readings.rows_of_sums(priced, "example", TO_RECIPIENT, delta, people=people)
    return rows if records is None else (rows[2], *rows[:2])  # a person is the unit; one example alone stands below


def _folded(kind: Sequence[Sums]) -> tuple[Sums, ...]:
    """Sums of the same kind, counted together; of a long schedule of noises, those of a group as its least."""
    noises = sorted({s.multiplier for s in kind if s.sampling != "none" and 0 < s.multiplier < math.inf})
    if len(noises) > _MOST_NOISES:
        width = math.log(noises[-1] / noises[0]) / _MOST_NOISES
        group = {noise: int(math.log(noise / noises[0]) / width) for noise in noises}
        least = {group[noise]: noise for noise in reversed(noises)}
        kind = [replace(s, multiplier=least[group[s.multiplier]]) if s.multiplier in group else s for s in kind]
    counts = Counter[Sums]()
    for s in kind:
        counts[replace(s, count=1)] += s.count
    return tuple(replace(s, count=n) for s, n in sorted(counts.items(), key=repr))


def _of_clients(document: Document, messages: Sequence[Said], delta: float) -> tuple[Row, ...]:
    """Per filter, the client that sent most; what left without one comes first."""
    rows: list[Row] = []
    whether = document.whether
    plain = sum(m.count for m in messages if not m.noise and not m.epsilon)
    asked = f"{plain:,} replies of training or queries left clients without noise (mods of flwr.client.mod are not counted): "
    asked += "were they thrown away?"
    if plain and not whether("replies without noise are unused", asked):
        rows.append(readings.in_clear("client", TO_SERVER, f"{plain:,} replies left clients without noise", delta=delta))
    filters: dict[tuple[str, str], dict[str, list[Said]]] = {}
    for m in messages:
        if m.noise or m.epsilon:
            filters.setdefault((m.by, m.viewer), {}).setdefault(m.who, []).append(m)
    for (by, viewer), cells in sorted(filters.items()):
        outer, _, inner = by.rstrip(")").partition("(")
        asked = f"{outer} noises what {inner} returns: is everything that {inner} keeps between rounds noised?"
        if inner not in ("", "FedAvg", "FedProx") and not whether(f"state of {inner} is noised", asked):
            rows.append(readings.in_clear("client", WITH_MODELS, f"{inner} keeps what is not noised", delta=delta))
            continue
        asked = "Does every client clip its update (fixedclipping_mod or adaptiveclipping_mod)?"
        if "ClientSide" in by and not whether("clients clip", asked):
            reason = "no record of the server shows that clients clip"
            rows.append(readings.in_clear("client", WITH_MODELS, reason, delta=delta))
            continue
        to = WITH_MODELS if viewer == "models" else TO_SERVER
        most = max(sum(m.count for m in cell) for cell in cells.values())
        why = f"{by}: {len(cells)} senders, at most {most:,} messages of one"
        if any(m.noise for cell in cells.values() for m in cell):
            kinds = [_folded([Sums(m.noise * document.louder, m.count) for m in cell]) for cell in cells.values()]
            made = readings.rows_of_sums(list(dict.fromkeys(kinds)), "client", to, delta)
            rows += [replace(row, why=f"{why}; {row.why}") for row in made]
        else:
            spent = max(sum(m.epsilon * m.count for m in cell) for cell in cells.values())
            rows.append(Row("client", "replace", to, PureDP(spent / document.louder), 1, 0.0, why))
    return tuple(rows)
