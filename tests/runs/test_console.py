"""Progress: bars on a terminal, plain lines elsewhere, nothing where quiet is asked."""

from __future__ import annotations

import pytest

from fedgraph.runs.console import Console


def test_names_with_brackets_and_colons_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console, name = Console(), "[red]age, [/]city, :bank:"
    console.say(name)
    console.print(name)
    console.table(f"{name}!", [f"{name}?"], [[name]])
    out = capsys.readouterr()
    assert out.err == f"{name}\n"
    assert out.out.count(name) == 4
