"""Writes 600 made-up people into a new folder ``people``: what a table knows of them, their class, and who pays whom."""

import csv
import random
from pathlib import Path

random.seed(1)
place, words = Path("people"), ("low", "mid", "high")
place.mkdir()
kinds = [random.randrange(3) for _ in range(600)]
rows = [[f"p{k}", round(min(max(random.gauss(35 + 12 * kind, 12), 0), 100), 1), int(random.random() < 0.3 + 0.2 * kind)]
        for k, kind in enumerate(kinds)]  # fmt: skip
alike = [[k for k, kind in enumerate(kinds) if kind == one] for one in range(3)]
paid = [random.choice(alike[kinds[k // 3]]) if random.random() < 0.5 else random.randrange(600) for k in range(3 * 600)]
for name, header, lines in (
    ("features", ["id", "age", "member"], rows),
    ("labels", ["id", "label"], [[f"p{k}", words[kind]] for k, kind in enumerate(kinds)]),
    ("edges", ["source", "target"], [[f"p{k // 3}", f"p{other}"] for k, other in enumerate(paid) if other != k // 3]),
):
    with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *lines])
