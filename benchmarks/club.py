"""The club of the tutorial: a spreadsheet of generated members, and who plays with whom.

    python -m benchmarks.club docs/club

Nobody in it is real. A member's section follows age, town and who they play with; numbers are drawn from one seed.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

_SECTIONS = ("rowing", "chess", "hiking", "dance")
_TOWNS = ("Gent", "Graz", "Lund", "Brno")
_NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dov",
    "Eva",
    "Finn",
    "Gita",
    "Hugo",
    "Ines",
    "Jan",
    "Kira",
    "Leo",
    "Mona",
    "Nils",
    "Olga",
    "Paul",
)
_MEMBERS, _GAMES, _ALIKE = 1200, 4200, 0.75  # share of games within a section


def write(folder: Path, seed: int = 7) -> None:
    """Writes ``members.csv`` and ``games.csv``."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    section = rng.choice(4, _MEMBERS, p=(0.3, 0.25, 0.25, 0.2))
    age = np.clip(rng.normal(np.array([34, 52, 46, 28])[section], 13), 16, 85).astype(int)
    near = rng.random(_MEMBERS) < 0.45
    town = np.where(near, section, rng.integers(0, 4, _MEMBERS))
    joined = 2025 - np.minimum(rng.geometric(0.12, _MEMBERS), age - 14)
    known = rng.random(_MEMBERS) < 0.9
    with (folder / "members.csv").open("w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(("member", "name", "age", "town", "joined", "pays monthly", "section"))
        for i in range(_MEMBERS):
            name, monthly = f"{_NAMES[rng.integers(16)]} {chr(65 + rng.integers(26))}.", ("yes", "no")[rng.integers(2)]
            lines.writerow(
                (f"M{i:04d}", name, age[i], _TOWNS[town[i]], joined[i], monthly, _SECTIONS[section[i]] if known[i] else "")
            )
    games: set[tuple[int, int]] = set()
    while len(games) < _GAMES:
        one = int(rng.integers(_MEMBERS))
        others = np.flatnonzero(section == section[one]) if rng.random() < _ALIKE else np.arange(_MEMBERS)
        two = int(rng.choice(others))
        if one != two:
            games.add((min(one, two), max(one, two)))
    with (folder / "games.csv").open("w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(("player 1", "player 2"))
        lines.writerows((f"M{one:04d}", f"M{two:04d}") for one, two in sorted(games))


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/club"))
