"""Files with one value exchanged for something odd: a price or one line, whatever stands there."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.errors import PricingError

FILES = Path(__file__).parent / "files"
ODD = (
    "-1", "0", "1e400", "nan", "inf", "true", "null", "None", "[]", "{}", '"x"', "1e-400", "99999999999999999999", "0.5",
    "1e308", "5e-324", "[1,2]", "{a: 1}", '""',
)  # fmt: skip
VALUE = re.compile(r'(?<![\w.])-?\d+\.?\d*(e-?\d+)?(?![\w.])|true|\[[^\]]*\]|"[^"\n]*"')
QUICK = [p for p in sorted(FILES.rglob("*")) if p.is_file() and not re.search("dpar|pfl|opacus_train|gap_ndp|dpdgc", p.name)]


@pytest.mark.slow
@pytest.mark.parametrize("path", QUICK, ids=lambda p: str(p.relative_to(FILES)))
def test_an_odd_value_is_priced_or_refused_in_one_line(tmp_path: Path, path: Path) -> None:
    chosen = random.Random(path.name)
    shutil.copytree(FILES, tmp_path / "copy")
    changed = tmp_path / "copy" / path.relative_to(FILES)
    priced = changed if path.parent == FILES or path.name == "pyproject.toml" else changed.parents[1] / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    places = list(VALUE.finditer(text))
    for _ in range(12 if places else 0):
        place = chosen.choice(places)
        changed.write_text(text[: place.start()] + chosen.choice(ODD) + text[place.end() :], encoding="utf-8")
        refused = _refusal(priced)
        assert refused is None or "\n" not in refused


def _refusal(path: Path) -> str | None:
    """The one line that refuses the file, or None where it was priced and printed."""
    try:
        quote = pricing.price(path)
    except PricingError as error:
        return str(error)
    assert quote.rows
    assert quote.to_dict(details=True)
    return None
