"""The privacy sheet: one page about one row, for whoever has to sign it, and the same as a draft for the public registry.

    fedgraph sheet RUN [ROW] [--out DIR]

The order is that of the pyramid of NIST SP 800-226: ε and the unit of privacy on top; mechanisms, utility, implementation and
side channels below; data and trust at the ground, since each layer holds only as well as those under it. The words stand in
``templates/sheet.html`` and ``templates/deployment.yaml`` (a record of opendp/deployments-registry-data). The price is computed
anew from the ledger lines in the row's cells: the sheet signs nothing that it only reads. What a simulation cannot know stays a
marked blank, never invented.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from fedgraph.cells import store
from fedgraph.errors import DataError, PrivacyError
from fedgraph.privacy import Assumption, LedgerAccount, LedgerLine, Protection, Trust, Viewer, explain, settle
from fedgraph.report import answer, attack_bounds, phrases, statement, table
from fedgraph.report.saved_run import SavedRun
from fedgraph.report.table import Line
from fedgraph.types import in_words_of

_Told: TypeAlias = dict[str, Any]  # what a template reads
_BLANK = "[BLANK: to be filled in by whoever publishes]"
_NO_DATE = "1900-01-01"  # the registry wants a date; its own template writes this one where none is known
_MOST_KINDS, _DIGITS = 8, 6  # of releases that are listed; significant ones of a registered ε
_MODELS = {Viewer.CURATOR_TRUSTED: "Central", Viewer.WORLD: "Local"}  # the registry's names; of all others: Federated
_STD = re.compile(r"standard deviation (\d[\d.e+-]*)")  # in the words of a mechanism


@dataclass(frozen=True)
class PrivacySheet:
    """The privacy sheet of one row."""

    anchor: str
    html: str
    record: str | None  # the draft for the registry, YAML; None where nothing is guaranteed, so there is nothing to register


def make_privacy_sheet(run: SavedRun, row: Line | None = None) -> PrivacySheet:
    """The sheet of one row; None: of the answer at the least ε and the least trust that has one.

    Raises:
        DataError: No row is the answer, the row states no protection, or a cell states another price than its ledger.
    """
    if row is None:
        questions = answer.ask(table.answering(run.rows))
        best = answer.least(questions)
        useless = [q.free for q in questions if q.free and (q.kept if best is None else best in q.rows and not q.repays(best))]
        if useless:
            said = f"no private row does better than {useless[0].name}, which releases nothing private"
            raise DataError(f"{run.folder}: {said}, so none is the answer; name a ROW, as results link to it")
        if best is None:
            raise DataError(f"{run.folder}: no row keeps a finite ε, so none is the answer; name a ROW, as results link to it")
        row = next(one for one in run.rows if one.row == best.row)
    if row.held is None:
        raise DataError(f"{run.folder}: {row.row} states no protection, so there is nothing to sign")
    _require_price(run, row)
    told = _told(run, row)
    made = _record(row, told) if math.isfinite(row.epsilon_provable) else None
    return PrivacySheet(row.anchor, phrases.template("sheet.html").render(told), made)


def make_model_sheet(
    name: str, what: str, sha256: str, account: LedgerAccount, lines: Sequence[LedgerLine], said: Sequence[str], software: str,
    one: str,
) -> PrivacySheet:  # fmt: skip
    """The sheet of a model or a deployment (``what``, and its file); its price is computed anew from its own ledger."""
    price, held = settle.of_account(account, lines), account.protection
    unit = in_words_of(one, held.unit.value)
    verdict = f"ε = {phrases.upper(price.epsilon, 4)}, δ = {account.delta:.3g}, for each {unit}"
    if math.isinf(price.epsilon):
        verdict = f"It protects nothing: ε = ∞ for each {unit}. It must not be published as private."
    told = {
        "title": f"Privacy sheet: {name}", "origin": f"{what} · SHA-256 {sha256}", "notice": None, "row": None, "one": one,
        "verdict": verdict, "proven": verdict, "holds": math.isfinite(price.epsilon), "held": held, "say": in_words_of,
        "releases": [f"{line.path}: {in_words_of(one, line.mechanism)}, {line.count:,} ×" for line in lines] or ["nothing"],
        "theorem": in_words_of(one, price.theorem) or "nothing is released", "software": software, "blank": _BLANK,
        "conditions": [in_words_of(one, held.sentence(a)) for a in held.assumptions],
        "statement": [in_words_of(one, sentence) for sentence in said],
    }  # fmt: skip
    anchor = f"{re.sub(r'[^A-Za-z0-9]+', '-', Path(what).stem).strip('-') or 'model'}-{sha256[:8]}"
    return PrivacySheet(anchor, phrases.template("sheet.html").render(told), None)


def write_privacy_sheet(made: PrivacySheet, out: Path, force: bool = False) -> list[Path]:
    """Write ``privacy_sheet_….html`` and, for a row with a guarantee, ``deployment_….yaml``: the files.

    Nothing is left half-written. ``DataError`` where a file is there with another content, unless with ``force``; ``OSError``
    where one cannot be written.
    """
    stem = made.anchor.replace("-", "_")
    files = {out / f"privacy_sheet_{stem}.html": made.html}
    if made.record is not None:
        files[out / f"deployment_{stem}.yaml"] = made.record
    for file, content in files.items():
        if not force and file.exists() and file.read_text(encoding="utf-8") != content:
            raise DataError(f"{file}: already there with another content; give --force to replace it, or another --out")
    out.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        store.write_atomically(file, content.encode())
    return list(files)


def _round_up(value: float) -> float:
    """A registered ε ≥ 0: six significant digits, never below the proven one. ``ValueError`` for ∞, which nobody registers."""
    if not math.isfinite(value):
        raise ValueError(f"ε = {value} is no finite ε, so there is no record of it")
    scale = 10.0 ** (_DIGITS - math.ceil(math.log10(value))) if value > 0 else 1.0
    rounded = math.ceil(value * scale) / scale
    return rounded if rounded >= value else math.nextafter(value, math.inf)


def _told(run: SavedRun, row: Line) -> _Told:
    held, head, environment, counts = row.held, row.head, run.environment, Counter[str]()
    unit, open_ = in_words_of(row.one, held.unit.value), math.isinf(row.epsilon_provable)
    verdict = f"ε = {phrases.upper(row.epsilon_provable, 4)}, δ = {head.delta:.3g}, for each {unit}, in one run"
    if open_:
        verdict = f"This row protects nothing: ε = ∞ for each {unit}. It must not be published as private."
    floating_point, by_seed, _ = statement.caveats(secret=False)
    seed = f"the run's seed is written ({environment.seed}): whoever knows it can subtract the noise. {by_seed.split(': ')[0]}."
    if str(environment.seed) == "secret":
        seed = "the seed came from the operating system and was not written"
    for line in head.releases:  # of the first seed's run
        counts[f"{line.path}: {in_words_of(row.one, line.mechanism)}"] += line.count
    found = [f"{what}, {count:,} ×" for what, count in counts.items()]
    left, digest = len(found) - _MOST_KINDS + 1, hashlib.sha256("\n".join(head.ledger).encode()).hexdigest()
    return {
        "run": run, "row": row, "one": row.one, "held": held, "verdict": verdict, "trust": row.trust, "holds": not open_,
        "title": f"Privacy sheet: {row.who} · {row.world}", "notice": run.notice, "conditions": (said := list(row.assumptions)),
        "origin": f"{run.title} · {row.row} · SHA-256 of its ledger {digest}",
        "theorem": in_words_of(row.one, head.theorem) or "nothing is released", "measured": _measured(row),
        "proven": f"{phrases.upper(row.epsilon_provable, 4)} at δ = {head.delta:.3g}, for one run", "upper": phrases.upper,
        "releases": (found if left < 2 else [*found[:-left], f"… and {left} more kinds (ledger.jsonl has all)"]),
        "shares": list(_shares(row, held)), "measures": list(dict.fromkeys(m for e in row.cells for m in e.metrics)),
        "top": table.best_without_privacy([s for s in run.rows if (s.task, s.dataset) == (row.task, row.dataset)]),
        "metrics": table.METRICS, "mean": table.format_row_mean, "withheld": statement.withheld(row.one, row.epsilon_provable),
        "unprotected": [sentence for sentence in said if "public" in sentence],
        "side_channels": [floating_point, seed, f"not protected here. In deployment: {_BLANK}"],
        "software": " ".join(v for v in (environment.versions.get("fedgraph-privacy"), environment.made.commit) if v),
        "source": next((f" ({d.source})" for d in environment.data if d.name == head.dataset), ""),
        "blank": _BLANK, "no_date": _NO_DATE, "inf": math.inf, "rounded": phrases.rounded, "say": in_words_of,
    }  # fmt: skip


def _require_price(run: SavedRun, row: Line) -> None:
    """``DataError`` in one line where a cell of the row states another ε, of everything or of a path, than its ledger costs."""
    for entry in row.cells:
        name = f"{run.folder}: the cell of {entry.method} · {entry.variant}, seed {entry.seed},"
        try:
            account, lines = entry.account, entry.releases
            if account is None:
                raise ValueError("it has no account")
            costs = {path: settle.of_account(account, lines, path or None).epsilon for path in ("", *entry.paths)}
        except (ValueError, KeyError, TypeError, PrivacyError) as error:
            raise DataError(f"{name} holds no ledger that can be priced ({' '.join(str(error).split())[:200]})") from error
        paths = {line.path for line in lines}
        if (account.protection, account.delta, paths) != (entry.protection, entry.delta, set(entry.paths)):
            raise DataError(f"{name} states another guarantee than its ledger; it was edited, and nothing was written")
        for path, cost in costs.items():
            stated = entry.paths[path] if path else entry.epsilon_provable
            if not math.isclose(stated, cost, rel_tol=1e-6):
                of = f" of the path {path!r}" if path else ""
                raise DataError(f"{name} states ε = {stated:.4g}{of}, and its ledger costs ε = {cost:.4g}; it was edited")


def _shares(row: Line, protection: Protection) -> Iterator[tuple[str, str]]:
    secure = protection.viewer is Viewer.SERVER_SECURE_AGGREGATION
    colluders = (protection.colluders or 1) if secure else 0
    for line in {(line.path, line.mechanism): line for line in row.head.releases}.values():
        found = _STD.search(line.mechanism)
        multiplier = vars(line.event).get("noise_multiplier")
        if found is None or not isinstance(multiplier, float) or not multiplier:
            priced = in_words_of(row.one, explain.event_words(line.event))
            yield f"Sensitivity on the path {line.path}", f"in the price: {priced}"
            continue
        share, clients = float(found[1]), row.facts.clients or 1
        hiding = clients - colluders if secure else 1
        total = share * math.sqrt(hiding)
        behind = f"; the shares of {hiding} of {clients} clients hide one person: {total:.4g}" if secure else ""
        noise = f"noise of standard deviation {share:.4g} at each client{behind}; noise / Δ₂ = {multiplier:.4g}"
        yield f"Sensitivity on the path {line.path}", f"Δ₂ = {total / multiplier:.4g}: {noise}"


def _measured(row: Line) -> str:
    found = attack_bounds.describe(row).removeprefix("measured by an attack").lstrip(" :")
    if row.canaries is None or row.canaries.one.estimator != "curve":
        return found
    plain = phrases.lower(row.canaries.epsilon(estimator="counting") or 0.0)
    only = (
        "This refutes curves of Gaussian noise only, which the ledger says it is; without that assumption the same guesses give"
    )
    return f"{found}. {only} ε ≥ {plain}"


def _number(value: float) -> str:
    """As YAML reads a number: 1.0e-05 is one, 1e-05 is a text."""
    return re.sub(r"^(\d+)e", r"\1.0e", repr(value))


def _record(row: Line, told: _Told) -> str:
    name = f"{row.method} ({row.variant}) on {row.dataset}, {in_words_of(row.one, row.unit)} level"
    more: _Told = {
        "name": name,
        "classifier": "accuracy" in row.head.metrics and row.trust is not Trust.NOBODY,
        "attacked": attack_bounds.describe(row) if row.epsilon_measured is not None else "No attack was run.",
        "model": _MODELS.get(row.held.viewer, "Federated"),
        "own_answers": Assumption.ANSWERS_PRIVATE in row.held.assumptions,
        "registered": _number(_round_up(row.epsilon_provable)),
        "delta": _number(row.delta),
        "dashed": lambda items: [f"- {item}" for item in items],
    }
    more["slug"] = "-".join(re.sub(r"\W+", "-", part.lower()).replace("_", "-") for part in (name, _BLANK, _NO_DATE[:4]))
    return phrases.template("deployment.yaml", escaped=False).render(told | more)
