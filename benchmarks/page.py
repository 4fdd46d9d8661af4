"""How heavy a report is: its bytes, its words before anything is unfolded, and the words of its first part.

    python -m benchmarks.page [SCENARIO] [--all]     runs a scenario with --quick (default: the main job; --all: as it is)
    python -m benchmarks.page RUN                    measures the report of a run that is there

Goals: 2 MB, of which the scripts that draw are 0.9, and 2,000 words.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path


class Unfolded(HTMLParser):
    """words: what a reader sees of a page as it opens: nothing inside a folded part but its summary, no script, no style."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("details", "summary", "script", "style") and not (tag == "details" and ("open", None) in attrs):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside or (self._inside[-1] == "summary" and self._inside.count("details") == 1):
            self.words += data.split()


def measure(page: str) -> tuple[int, int]:
    """(bytes, words before anything is unfolded) of a report's HTML."""
    reader = Unfolded()
    reader.feed(page)
    return len(page.encode()), len(reader.words)


def main() -> None:
    parser = argparse.ArgumentParser(description="How heavy a report is.")
    parser.add_argument("what", nargs="?", default="citeseer")
    parser.add_argument("--all", action="store_true", help="run the scenario as it is, without --quick")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(options.what)
        if not (out / "report.html").is_file():
            out = Path(folder) / "run"
            words = [sys.executable, "-m", "fedgraph.run", options.what, "--out", str(out)]
            subprocess.run([*words, *([] if options.all else ["--quick"])], check=True, stdout=subprocess.DEVNULL)
        page = (out / "report.html").read_text(encoding="utf-8")
    size, words_before = measure(page)
    pictures = sum(map(len, re.findall(r"data:image/webp;base64,[^\"]*", page)))
    _, first = measure(page.partition('id="rows"')[0])
    print(f"{size / 1000:.0f} kB ({pictures / 1000:.0f} kB of them pictures), {words_before:,} words, {first:,} in the answer")


if __name__ == "__main__":
    main()
