"""The privacy sheet: one page about one row, for whoever has to sign it, and the same as a draft for the public registry.

    fedgraph sheet RUN [ROW] [--out DIR]

The order is that of the pyramid of NIST SP 800-226: ε and the unit of privacy on top; mechanisms, utility, implementation and
side channels below; data and trust at the ground, since each layer holds only as well as those under it. What a simulation
cannot know stays a marked blank.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from fedgraph.cells.store import write_atomically
from fedgraph.errors import DataError
from fedgraph.report import answer, deployment_record, page
from fedgraph.report.report_rows import Row
from fedgraph.report.saved_run import SavedRun, load_run
from fedgraph.report.scores import row_anchor
from fedgraph.report.sheet_price import require_price
from fedgraph.report.sheet_words import Block, blocks, deployment, verdict


@dataclass(frozen=True)
class Sheet:
    """html: the page. record: the draft for the registry; None where nothing is guaranteed, so there is nothing to register."""

    anchor: str
    html: str
    record: deployment_record.Record | None


def sheet(run: SavedRun, row: Row | None = None) -> Sheet:
    """The sheet of ``row``; without one, of the row that is the answer at the least ε and the least trust that has one."""
    chosen = _answer(run) if row is None else row
    if chosen.head.protection is None:
        raise DataError(f"{run.folder}: {row_anchor(chosen)} states no protection, so there is nothing to sign")
    require_price(run.folder, chosen)
    found = blocks(run, chosen)
    made = deployment_record.record(deployment(run, chosen)) if _guarantees(chosen) else None
    return Sheet(row_anchor(chosen), _html(run, chosen, found), made)


def write(made: Sheet, out: Path, force: bool = False) -> list[Path]:
    """Write ``privacy_sheet_….html`` and, for a row with a guarantee, ``deployment_….yaml``; the files.

    ``DataError`` where one is already there with another content, unless ``force``. Nothing is left half-written.
    """
    stem = made.anchor.replace("-", "_")
    files = {out / f"privacy_sheet_{stem}.html": made.html}
    if made.record is not None:
        files[out / f"deployment_{stem}.yaml"] = deployment_record.as_yaml(made.record)
    for file, content in files.items():
        if not force and file.exists() and file.read_text(encoding="utf-8") != content:
            raise DataError(f"{file}: already there with another content; give --force to replace it, or another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            write_atomically(file, content.encode())
    except OSError as error:
        raise DataError(f"{out}: cannot be written: {error.strerror or error}") from error
    return list(files)


def _answer(run: SavedRun) -> Row:
    found = [b for b in answer.find_answer(run.rows).best if b.score is not None and b.score.private]
    if not found:
        raise DataError(f"{run.folder}: no row keeps a finite ε, so none is the answer; name a ROW, as results link to it")
    least = min(found, key=lambda b: (b.budget, b.trust.rank)).score
    assert least is not None
    return least.row


def _guarantees(row: Row) -> bool:
    return math.isfinite(row.provable)


def _html(run: SavedRun, row: Row, found: Sequence[Block]) -> str:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    protection = row.protection
    return environment.from_string(page.read_asset("templates/sheet.html")).render(
        title=run.title,
        row=f"{row.head.method} · {row.head.variant} · {row.head.world.words}",
        anchor=row_anchor(row),
        verdict=verdict(row, protection),
        holds=_guarantees(row),
        blocks=found,
        blank=deployment_record.BLANK,
        notice=run.notice,
    )


def command(options: argparse.Namespace) -> int:
    """Write both files and name them; ``FedgraphError`` where something is wrong."""
    run = load_run(options.run)
    made = sheet(run, None if options.row is None else run.find(options.row))
    for file in write(made, options.out or options.run, options.force):
        print(file)
    if made.record is None:
        print("Nothing is guaranteed for this row (ε = ∞): the sheet says so, and no record for the registry was written.")
    return 0
