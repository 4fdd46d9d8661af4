"""Numbers in the documents: every table has a record, and a number that is off, gone or without a record is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tables

RECORDS = tables.records()
RUN = [r for r in RECORDS if r.scenario]


def test_every_table_of_the_documents_has_a_record() -> None:
    assert tables.unrecorded(RECORDS) == [], "add a record to benchmarks/tables.yaml (or one that says why it is dear)"


def test_documents_still_say_what_is_recorded_of_one_source() -> None:
    assert [r.text for r in RECORDS if not r.still_stands] == []
    assert [r.text for r in RECORDS if sum(map(bool, (r.scenario, r.command, r.dear))) != 1] == []


def test_a_scenario_still_has_the_row() -> None:
    for record in RUN:
        made = tables.cut(record)
        (task,), data = made["tasks"], made["datasets"]  # type: ignore[misc]
        assert len(task["methods"]) == 1, record.text
        assert [d["name"] for d in data] == [record.dataset], record.text  # type: ignore[attr-defined]


def test_a_table_without_a_record_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text(
        "# A\n\n| row | ε = 1 |\n|---|---|\n| new | 0.51 |\n\n| words | only |\n|---|---|\n| a | b |\n"
    )
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "DOCUMENTS", ("a.md",))
    assert tables.unrecorded([]) == ["a.md: | row | ε = 1 |"]
    assert tables.unrecorded([replace(RECORDS[0], document="a.md", stands="| new | {{0.51}} |")]) == []


def test_a_number_that_is_off_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    record = next(r for r in RUN if r.seeds == 1)
    where = {"metric": "accuracy", **record.where}
    for value, right in ((record.printed + record.error, True), (record.printed + 2 * record.error, False)):
        monkeypatch.setattr(tables, "results", lambda asked, root, clients, value=value: [{**where, "value": str(value)}])
        assert tables.judged(record, True, None) is right
    assert [line[:3] for line in capsys.readouterr().out.splitlines()] == ["ok ", "OFF"]
    monkeypatch.setattr(tables, "results", lambda asked, root, clients: [])
    with pytest.raises(SystemExit, match="0 numbers were found; allowed: 1"):
        tables.judged(record, True, None)
    assert not tables.judged(replace(record, stands="nowhere {{0.5}}"), True, None)
