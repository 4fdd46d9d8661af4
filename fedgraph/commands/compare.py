"""``fedgraph compare RUN RUN…``: several finished runs in one table and one page.

    fedgraph compare runs/a runs/b --csv both.csv --html both.html

The answer and its tables are printed. Every file is checked to be free before the first is written.
"""

import argparse
from pathlib import Path

from fedgraph.commands import show
from fedgraph.commands.base import require_free_file, write_file
from fedgraph.errors import ScenarioError

HELP = "compare finished runs: one answer, one table, one page"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of finished runs")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="write a self-contained page")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--force", action="store_true", help="replace PAGE and FILE where they exist")


def run(options: argparse.Namespace) -> int:
    from fedgraph.report import table as tables
    from fedgraph.runs import run as runs

    targets = [path for path in (options.csv, options.html) if path]
    if len({path.resolve() for path in targets}) < len(targets):
        raise ScenarioError(f"{options.csv}: --csv and --html name one file; allowed: two")
    for path in targets:  # all of them before anything is written
        require_free_file(path, options.force)
    found = runs.open_run(*options.runs)
    table = tables.to_text(found.table(per="row")).encode() if options.csv else b""
    page = b""
    if options.html:
        from fedgraph.report import page as report_page

        page = report_page.render_page_of_runs(found.rows, found.names, found.notice).encode()
    for path, content in ((options.csv, table), (options.html, page)):
        if path:
            write_file(path, content, options.force)
    print(show.text_of(found))
    for path in targets:
        print(f"written: {path}")
    return 0
