"""The README's promises that a machine can check without doing them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [b.strip() for b in re.findall(r"```bash\n(.*?)```", README, re.S)]


def test_the_first_two_commands_are_one_line_each_and_self_contained() -> None:
    run, test = BLOCKS[:2]
    for command in (run, test):
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && ")
        assert "-c constraints.txt" in command
    assert run.endswith("-m fedgraph.run scenarios/citeseer.yaml")
    assert test.endswith("-m pytest")


def test_ci_runs_the_readmes_second_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in script
    assert 'if "pytest" in b' in script
    assert next(b for b in BLOCKS if "pytest" in b) == BLOCKS[1]


def test_files_named_in_the_readme_exist() -> None:
    for name in re.findall(r"\]\(([^)#]+)\)", README) + re.findall(
        r"(scenarios/\w+\.yaml|fedgraph/\w+\.py|ray_cluster\.yaml)", README
    ):
        assert (ROOT / name).exists(), name
