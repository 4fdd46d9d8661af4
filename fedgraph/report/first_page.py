"""What stands in ``report.html`` before the first page of results: a run that is killed early leaves it."""

import html
from importlib import resources
from pathlib import Path

SAID = (
    "UNFINISHED RUN: this page was written when the run began. While it goes on, and after it was broken off, "
    "“fedgraph show {0}” prints what the finished cells say. The same command with “--resume {0}” (without --out) computes the "
    "others. When the run ends, its results stand here."
)


def first_page(title: str, folder: Path) -> str:
    """The page. title: of the run, or its name. folder: where its results are."""
    style = resources.files(__package__).joinpath("templates", "page.css").read_text(encoding="utf-8")
    said = html.escape(SAID.format(folder), quote=False)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>{style}</style>\n</head>\n<body>\n<header>\n"
        f'<p class="notice" role="alert">{said}</p>\n<h1>{html.escape(title)}</h1>\n</header>\n</body>\n</html>\n'
    )
