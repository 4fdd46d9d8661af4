"""The page and the table: complete, self-contained, and the committed table is what the command prints."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from benchmarks import deployed_noise
from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.pricing import quotes
from tests.pricing import truths

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parent / "files"


def test_the_page_is_self_contained_and_shows_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    files = [str(FILES / name) for name in ("blink.yaml", "neutral.yaml", "nvflare_svt.json")]
    assert cli.main(["price", *files, "--fix", "1", "--html", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|<script|https?://(?!www)", text)
    assert "prefers-color-scheme:dark" in text
    assert "width=device-width" in text
    for path in files:
        for priced in pricing.price(path).rows:
            assert priced.row.relation in text
    assert "What this privacy buys" in text
    assert "noise_multiplier = " in capsys.readouterr().out


def test_what_a_file_says_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "<b>.yaml"
    path.write_text("mechanism: gaussian\nunit: client\nnoise_multiplier: 1\nrounds: 1\ndelta: 1e-5\n", encoding="utf-8")
    assert "<b>.yaml" not in quotes.html([pricing.price(path)])


def test_where_the_total_is_open_the_theorem_beside_the_rounds_is_said_to_price_one(tmp_path: Path) -> None:
    described = tmp_path / "open.yaml"
    described.write_text(
        "mechanism: gaussian\nunit: client\nnoise_multiplier: 1\nrounds: 100\ndelta: 1e-5\nsampling: {kind: fixed}\n",
        encoding="utf-8",
    )
    open_, closed = pricing.price(described), pricing.price(described, given={"sampling rate": 0.5})
    assert open_.headline.total is not None, "the worst rate bounds every other"
    svt, answered = (
        pricing.price(FILES / "nvflare_svt.json"),
        pricing.price(FILES / "nvflare_svt.json", given={"parameters": 9, "rounds": 4}),
    )
    assert svt.headline.total is None
    assert "one of" in quotes.text(svt)
    assert "one of" in quotes.html([svt])
    assert "one of" not in quotes.text(answered)
    assert "one of" not in quotes.text(closed)
    described = tmp_path / "one.yaml"
    described.write_text("mechanism: gaussian\nunit: client\nclip: 1\nnoise_std: 1\nrounds: 1\ndelta: 1e-5\n", encoding="utf-8")
    assert "1 round, δ" in quotes.html([pricing.price(described)])


def test_a_batch_share_of_federatedscope_is_taken_as_the_one_that_protects_least() -> None:
    quote = pricing.price(FILES / "federatedscope_sgdmf.yaml", fix=8.0)
    ((_, *others),) = (tuple(epsilon for _, epsilon in asked.answers) for asked in quote.asked)
    assert quote.headline.per_round.epsilon > max(others)
    assert quote.fix is not None
    assert quote.fix.why.endswith("if batch share = 0.001")


def test_shown_bounds_are_never_below() -> None:
    for value in (1.23441, 9.9999, 0.0123451, 12345.6, 8.0, 1e-9, 213_000_000.4):
        assert float(quotes.readable(value)) >= value * (1 - 1e-12)
    assert quotes.readable(8.0) == "8"
    assert quotes.readable(float("inf")) == "∞"


@pytest.mark.slow
def test_the_committed_table_is_what_the_command_prints() -> None:
    committed = (ROOT / "docs" / "data" / "deployed_noise.csv").read_text(encoding="utf-8")
    made = deployed_noise.table(FILES, "python -m benchmarks.deployed_noise tests/pricing/files")
    assert made == committed
    page = (ROOT / "docs" / "what_deployed_noise_buys.md").read_text(encoding="utf-8")
    shown = [line.strip("| ").split(" | ")[-1] for line in page.splitlines() if line.startswith("|")][2:]
    assert all(worth in made for worth in shown)


def test_claims_of_repositories_are_priced() -> None:
    """What their public settings are worth; truths by hand and by dp_accounting."""
    totals = {
        name: pricing.price(FILES / f"claim_{name}").headline.total for name in ("fedlap.yaml", "hogs.yaml", "upgnet.yaml")
    }
    assert {name: total.epsilon for name, total in totals.items() if total} == {
        "fedlap.yaml": math.inf, "hogs.yaml": 6.0, "upgnet.yaml": math.inf,
    }  # fmt: skip
    total = pricing.price(FILES / "claim_advsgm.yaml").headline.total
    assert total is not None
    assert total.epsilon == pytest.approx(truths.poisson(5.0, 128 * 5 / 4039, 750, 1e-5), rel=6e-3)
