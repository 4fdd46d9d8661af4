"""What stands in ``report.html`` before the first page of results: a run that is killed early leaves it."""

import html
from pathlib import Path

SAID = (
    "UNFINISHED RUN: this page was written when the run began. While it goes on, and after it was broken off, "
    "“fedgraph show {0}” prints what the finished cells say. The same command with “--resume {0}” (without --out) computes the "
    "others. When the run ends, its results stand here."
)
STYLE = "body{max-width:50rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}p{font-weight:600}"


def first_page(title: str, folder: Path) -> str:
    """The page; what draws and writes results is not loaded for it.

    Args:
        title: of the run, or its name.
        folder: where its results are.
    """
    said, title = html.escape(SAID.format(folder), quote=False), html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<style>{STYLE}</style>\n</head>\n'
        f'<body>\n<h1>{title}</h1>\n<p role="alert">{said}</p>\n</body>\n</html>\n'
    )
