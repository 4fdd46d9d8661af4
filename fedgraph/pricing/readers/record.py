"""The record of a run (``recorder``): what was noised, what was not, and what a record cannot see.

Sums on the same rows compose. Rows that are never in the same sums pay side by side, the dearest part: parts of one data set
are told apart by their indices. Whether two data sets hold the same people no record shows: it is asked, and taken as yes.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from fedgraph.errors import PricingError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import Amount, Count, Delta, Keys, Share, TimesOrNone
from fedgraph.pricing.readings import TO_RECIPIENT, TO_SERVER, WITH_MODELS, Claim, Reading, Row, Sums
from fedgraph.privacy import PureDP

_MOST_CELLS = 64  # combinations of parts of several data sets that are priced one by one
_MOST_NOISES = 20  # noises of one cell that are composed one by one; of more, each counts as the least of its group
_PERSON = "examples of one person"
_NOTHING = "nothing private was seen: no noised sum of Opacus, no filter of Flower or FLARE, no step"


class _Data(Keys):
    name: str
    rows: TimesOrNone
    base: int
    graph: str
    standardised: bool


class _Sum(Keys):
    data: int
    noise: Amount
    clip: Amount
    sampling: str
    rate: Share
    draws: Count
    by: str
    where: str
    count: Count
    passes: Count


class _Clear(Keys):
    data: int | None
    where: str
    count: Count


class _Message(Keys):
    by: str
    who: str
    viewer: Literal["server", "models"]
    noise: Amount
    epsilon: Amount
    said: str
    count: Count


class _Claim(Keys):
    epsilon: Amount
    delta: Delta
    words: str


class _Run(Keys):
    """The record of one process."""

    fedgraph_record: Literal[2]
    doubt: str
    data: list[_Data]
    cells: list[list[int]]
    sums: list[_Sum]
    clear: list[_Clear]
    messages: list[_Message]
    weights: list[str]
    claims: list[_Claim]


class _Record(Keys):
    runs: list[_Run]


@dataclass
class _Seen:
    """What all processes did together; data sets are numbered through."""

    data: list[_Data] = field(default_factory=list)
    base: list[tuple[int, int]] = field(default_factory=list)  # of each data set: process, and base in it
    sums: list[_Sum] = field(default_factory=list)
    clear: list[_Clear] = field(default_factory=list)
    cells: dict[tuple[int, int], list[list[int]]] = field(default_factory=dict)  # base → parts that one row may be in
    messages: list[_Message] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)


def read(document: Document) -> Reading:
    """The rows of a run; in clear, with the reason, where a record or an answer does not rule that out."""
    runs, seen = [r for r in document.checked(_Record).runs if r.sums or r.clear or r.messages or r.doubt], _Seen()
    for number, run in enumerate(runs):
        first = len(seen.data)
        seen.data += run.data
        seen.base += [(number, held.base) for held in run.data]
        seen.sums += [s.model_copy(update={"data": first + s.data}) for s in run.sums]
        seen.clear += [c if c.data is None else c.model_copy(update={"data": first + c.data}) for c in run.clear]
        for cell in run.cells:
            seen.cells.setdefault(seen.base[first + cell[0]], []).append([first + part for part in cell])
        seen.messages += run.messages
        seen.weights += run.weights
    if not seen.sums and not seen.clear and not seen.messages:
        raise PricingError(f"{document.path}: {_NOTHING}")
    file, _, line = (seen.clear or seen.sums or [_Clear(data=None, where="", count=1)])[0].where.rpartition(":")
    document.facts.place = (Path(file), int(line)) if file and line.isdigit() else None
    document.facts.known("delta")  # given to every record, needed by none that is in pure ε alone
    delta = document.ask("delta") if seen.sums or any(m.noise for m in seen.messages) else 0.0
    claims = tuple(Claim(c.epsilon, c.delta, "total", c.words) for run in runs for c in run.claims)
    files = sorted(set(seen.weights))
    unprotected = (
        "outside its sight: rows that were made of other people's rows (neighbours, means, class weights, statistics)",
        f"steps in clear on the same data: {sum(c.count for c in seen.clear):,} optimizer steps outside a mechanism were seen; "
        "what learns without torch is outside its sight",
        f"weights that came from files: {', '.join(files) if files else 'none were seen'}",
        "outside its sight: files of weights and numbers that torch.load did not read, and who knows the seed of the noise",
        readings.SELECTED,
    )
    reasons = list(_reasons(document, runs, seen, files))
    unit, viewer = ("example", TO_RECIPIENT) if seen.sums or seen.clear else ("client", TO_SERVER)
    if reasons or not (seen.sums or seen.messages):
        rows = tuple(readings.in_clear(unit, viewer, why, delta=delta) for why in reasons or ("no sum was noised",))
        order = ("What happens in clear is priced first.",)
        return Reading(rows, claims, unprotected, order=order, no_fix="mend what is in clear first")
    rows, settings = _of_clients(document, seen.messages, delta), None
    if seen.sums:
        rows = (*_of_examples(document, seen, delta), *rows)
        noises = {s.noise for s in seen.sums}
        settings = {"noise_multiplier": noises.pop() * document.louder} if len(noises) == 1 else None
    how = [readings.COMPOSED, readings.SECRET] if seen.sums else ["Messages compose adaptively; pure ε adds up."]
    if any(s.by.startswith("Opacus") for s in seen.sums):
        how.append(document.words["divides"])
    by = ", ".join(sorted({*(s.by for s in seen.sums), *(m.by for m in seen.messages)}))
    people = min((n for s in seen.sums if (n := seen.data[s.data].rows)), default=None)
    no_fix = "there are several noises; set each and record the run again"
    claims = claims or readings.without_claim("the run stated no ε")
    return Reading(rows, claims, unprotected, (), (f"Noise as it was added, by {by}.", *how), settings, no_fix, people=people)


def _reasons(document: Document, runs: Sequence[_Run], seen: _Seen, files: list[str]) -> Iterator[str]:
    """Why the data may have been used in clear: what was seen, unless an answer takes it back."""
    whether = document.facts.whether
    for doubt in sorted({run.doubt for run in runs if run.doubt}):
        yield f"{doubt}: let the run end, and record it again"
    private = {seen.base[s.data] for s in seen.sums}
    for step in seen.clear:
        steps = f"{step.count:,} optimizer steps at {step.where}"
        if seen.messages and not seen.sums:
            name, asked = (
                f"steps at {step.where} leave by messages alone",
                "does what they learn leave a client by noised messages alone?",
            )
            where = "and nobody says that what they learn is noised before it leaves"
        elif step.data is None:
            name, asked = (
                f"steps at {step.where} use no private rows",
                "follow no batch that was seen: do they use no private rows?",
            )
            where = "on data that no loader gave"
        elif seen.base[step.data] in private or not seen.sums:
            held = seen.data[step.data].name
            name, asked = (
                f"steps at {step.where} use no private rows",
                f"go without noise while {held} are walked: do they use no row?",
            )
            where = f"on the same data ({held})"
        else:
            name, asked = f"data of {step.where} are public", f"are in clear on {seen.data[step.data].name}: are these public?"
            where = f"on {seen.data[step.data].name}"
        if not whether(name, f"{steps}: {asked}" if asked.startswith("does") else f"{steps} {asked}"):
            yield f"{steps} in clear, {where}"
    if files and not whether("weights are public", f"Weights were loaded from {', '.join(files)}: from public data alone?"):
        yield f"weights were loaded from {', '.join(files)}, and what they learned from is not known"
    made = next((seen.data[s.data].name for s in seen.sums if seen.data[s.data].standardised), None)
    asked = f"The columns of {made} have mean 0 and deviation 1 over these very rows: were both public?"
    if made and not whether("means and deviations are public", asked):
        yield f"the rows of {made} are standardised by their own mean and deviation, without noise"
    for how in sorted({s.sampling for s in seen.sums} - {"poisson", "fixed", "shuffled", "none"}):
        if not whether(
            "examples once an epoch", f"Batches are drawn by {how}: is every example in one batch of a pass at most?"
        ):
            yield f"batches are drawn by {how}"


def _of_examples(document: Document, seen: _Seen, delta: float) -> tuple[Row, ...]:
    held: dict[int, list[Sums]] = {}
    for s in seen.sums:
        kind = s.sampling if s.sampling in ("poisson", "fixed") else "none"
        count, draws = (s.count, s.draws) if s.sampling in ("poisson", "fixed", "none") else (s.passes, 1)
        held.setdefault(s.data, []).append(
            Sums(s.noise * document.louder, count, kind, s.rate, draws, int(seen.data[s.data].rows or 0) or None)
        )
    cells = list(seen.cells.values())
    apart = len(cells) > 1 and document.facts.whether(
        "data sets hold different people",
        f"{len(cells)} data sets or processes were trained on: does nobody stand in two of them?",
    )
    used = [cell for base in cells for cell in base]
    if not apart and len(cells) > 1:
        few = math.prod(map(len, cells)) <= _MOST_CELLS
        together = itertools.product(*cells) if few else [tuple(used)]
        used = [sorted({index for cell in each for index in cell}) for each in together]
    kinds = [[part for index in cell for part in held.get(index, ())] for cell in used]
    priced = list(dict.fromkeys(_folded(kind) for kind in kinds if kind))
    graph = next((d.graph for i, d in enumerate(seen.data) if d.graph and i in held), "")
    records = document.facts.known(_PERSON)
    if graph and records is None:
        question = f"In how many examples is one person? {graph}: a person is in the examples of its neighbours, too."
        records = document.facts.ask(_PERSON, question, (1000.0, 100.0, 10.0, 1.0))
    people = (max(int(records), 1),) if records is not None else readings.SEVERAL
    rows = readings.rows_of_sums(priced, "example", TO_RECIPIENT, delta, people=people)
    return rows if records is None else (rows[2], *rows[:2])  # a person is the unit; one example alone stands below


def _folded(kind: Sequence[Sums]) -> tuple[Sums, ...]:
    """Sums of the same kind, counted together; of a long schedule of noises, those of a group as its least."""
    noises = sorted({s.multiplier for s in kind if s.sampling != "none" and 0 < s.multiplier < math.inf})
    if len(noises) > _MOST_NOISES:
        width = math.log(noises[-1] / noises[0]) / _MOST_NOISES
        least: dict[int, float] = {}
        group = {noise: int(math.log(noise / noises[0]) / width) for noise in noises}
        for noise in noises:
            least.setdefault(group[noise], noise)
        kind = [replace(s, multiplier=least[group[s.multiplier]]) if s.multiplier in group else s for s in kind]
    counts = Counter[Sums]()
    for s in kind:
        counts[replace(s, count=1)] += s.count
    return tuple(replace(s, count=n) for s, n in sorted(counts.items(), key=repr))


def _of_clients(document: Document, messages: list[_Message], delta: float) -> tuple[Row, ...]:
    """Per filter, the client that sent most; what left without one comes first."""
    rows: list[Row] = []
    whether = document.facts.whether
    plain = sum(m.count for m in messages if not m.noise and not m.epsilon)
    asked = f"{plain:,} replies of training or queries left clients without noise: were they thrown away?"
    if plain and not whether("replies without noise are unused", asked):
        rows.append(readings.in_clear("client", TO_SERVER, f"{plain:,} replies left clients without noise", delta=delta))
    messages = [m for m in messages if m.noise or m.epsilon]
    for by, viewer in sorted({(m.by, m.viewer) for m in messages}):
        mine = [m for m in messages if (m.by, m.viewer) == (by, viewer)]
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
        cells: dict[str, list[_Message]] = {}
        for m in mine:
            cells.setdefault(m.who, []).append(m)
        to = WITH_MODELS if viewer == "models" else TO_SERVER
        most = max(sum(m.count for m in cell) for cell in cells.values())
        why = f"{by}: {len(cells)} senders, at most {most:,} messages of one"
        if any(m.noise for m in mine):
            kinds = [_folded([Sums(m.noise * document.louder, m.count) for m in cell]) for cell in cells.values()]
            made = readings.rows_of_sums(list(dict.fromkeys(kinds)), "client", to, delta)
            rows += [replace(row, why=f"{why}; {row.why}") for row in made]
        else:
            spent = max(sum(m.epsilon * m.count for m in cell) for cell in cells.values())
            rows.append(Row("client", "replace", to, PureDP(spent / document.louder), 1, 0.0, why))
    return tuple(rows)
