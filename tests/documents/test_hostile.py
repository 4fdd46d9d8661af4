"""Scenarios that are broken in every way somebody thought of: one line with its place, never a traceback, never accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from fedgraph.documents.settings import InfiniteSetting, Settings
from fedgraph.documents.sources import YamlSource
from fedgraph.errors import ScenarioError
from fedgraph.scenario import read
from tests import scenarios

GOOD = scenarios.GOOD + "        hidden: 8\n"


def refused(tmp_path: Path, text: str | bytes, changes: list[str] | None = None) -> str:
    """The one line; it begins with the file's name, or with the option that is wrong."""
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScenarioError) as caught:
        read.from_file(path, changes or [])
    message = str(caught.value)
    assert message.startswith((f"{path}:", "--set")), message
    assert "\n" not in message
    assert len(message) < 1000
    return message


FAULTS = [
    ("seeds: 2", "seeds: true", [":2: ", "true and false"]),
    ("seeds: 2", "seeds: 2\nseed: hidden", [":3: ", "seed"]),
    ("seeds: 2", "seeds: 1000000000", [":2: ", "at most 10,000"]),
    ("epsilons: [1, inf]", "epsilons: [.nan]", [":7: ", "found"]),
    ("epsilons: [1, inf]", "epsilons: [1e300]", [":7: ", "too large"]),
    ("epsilons: [1, inf]", "epsilons: [1, 1]", [":7: ", "twice"]),
    ("epsilons: [1, inf]", "epsilons: [1e-300]", [":7: ", "too small"]),
    ("delta: 1e-3", "delta: .nan", [":8: "]),
    ("trust: [curator]", "trust: [curator, curator]", [":9: ", "'curator' appears twice"]),
    ("hidden: 8", "epsilons: [true]", [":11: ", "epsilons of this row", "true and false"]),
    ("delta: 1e-3", "delta: {libary: 1e-5}", [":8: ", "unknown data set 'libary'", "allowed: embedded/library"]),
    ("hidden: 8", "hidden: 1000000", [":13: ", "too large", "16,384"]),
    ("hidden: 8", "clip: .inf", [":13: ", "infinite"]),
    ("hidden: 8", "learning_rate: .nan", [":13: ", "learning_rate"]),
    ("hidden: 8", "epsilons: []", [":11: ", "epsilons of this row"]),
    ("hidden: 8", "trust: []", [":11: ", "trust of this row"]),
    ("hidden: 8", "trust: [curater]", [":11: ", "trust of this row"]),
    ("delta: 1e-3", "attack: {epsilons: [3]}", [":6: ", "attack.epsilons", "no row runs"]),
    ("seeds: 2", "seeds: 1:30", [":2: ", "base 60"]),
    ("name: embedded/library", "name: embedded/library\n    label: '..'", [":5: ", "no name of a file"]),
    ("name: embedded/library", 'name: embedded/library\n    label: "a\\u202eb"', [":5: ", "printable"]),
    ("  - task: node", "  - label: [1]\n    task: node", [":6: ", "not text"]),
    ("  - task: node", f"  - label: {'x' * 300}\n    task: node", [":6: ", "1 to 80"]),
    ("embedded/library", "embedded/libary", [":4: ", "did you mean 'embedded/library'"]),
    ("name: embedded/library", "name: embedded/library\n    parameters: {a: 1}", [":5: ", "takes neither"]),
    ("name: embedded/library", "name: own/csv", ["path", ":4: "]),
    ("name: embedded/library", "name: synthetic/block_model\n    parameters: {nodes: .inf}", [":5: ", "nodes"]),
    ("name: tiny", "name: 2024-13-45", [":1: ", "cannot be read"]),
    ("seeds: 2", "seeds: " + "9" * 5000, [":2: ", "cannot be read"]),
    ("seeds: 2", "seeds: !!python/object/apply:os.system ['true']", [":2: ", "tag"]),
    ("seeds: 2", "1: 2", [":2: ", "key '1' is not text"]),
    ("seeds: 2", "? [a, b]\n: 2", [":2: ", "key a list or mapping is not text"]),
    ("seeds: 2", "seeds: &a [*a]", [":2: ", "contains itself"]),
    ("seeds: 2", "seeds: " + "[" * 40 + "]" * 40, [":2: ", "inside each other"]),
    ("seeds: 2", "seeds: " + "{a: " * 100_000, [":2: ", "inside each other"]),
    ("seeds: 2", "seeds: 2\nquick: [1]", [":3: ", "quick"]),
    ("seeds: 2", "seeds: 2\nquick:\n  tasks.0.epsilon: [1]", [":4: ", "did you mean 'epsilons'"]),
    ("seeds: 2", "seeds: 2\nquick:\n  tasks.7.epsilons: [1]", [":3: ", "there is no '7'"]),
    ("seeds: 2", "seeds: 2\n---\nname: two", ["not YAML"]),
    ("seeds: 2", "seeds: 2\n<<: 3", [":3: ", "merges mappings"]),
]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
DEEP = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 32))
NO_TEXT = (b"\xff\xfe\x00", "name: tiny".encode("utf-16"), b"name: caf\xe9", b"\x00\x01", b"x" * 1_000_001)
OPTIONS = [
    ("seeds=[", "not YAML"),
    ("seeds=", "seeds"),
    ("seeds=: :", "--set"),
    ("seeds=!!python/name:os.system", "tag"),
    ("=3", "dotted key"),
    ("a..b=3", "dotted key"),
    ("tasks.0.epsilons.99999999999999999999=3", "not a position"),
    ("tasks.0.epsilons=[true]", "true and false"),
    ("tasks.0.methods.0.hidden=.inf", "hidden"),
    ("tasks.²=3", "tasks"),
    ("name=\udce9", "--set"),  # half a letter of a terminal
]


def test_one_line_with_its_place(tmp_path: Path) -> None:
    for old, new, parts in FAULTS:
        message = refused(tmp_path, GOOD.replace(old, new))
        assert all(part in message for part in parts), (new[:60], message)
    assert "every alias is written out" in refused(tmp_path, BOMB), "ten to the ninth, had it been read"
    assert "inside each other" in refused(tmp_path, DEEP), "aliases add depth"
    for content in NO_TEXT:
        refused(tmp_path, content)


def test_an_option_is_named_and_not_the_file(tmp_path: Path) -> None:
    for change, part in OPTIONS:
        message = refused(tmp_path, GOOD, [change])
        assert message.startswith("--set "), message
        assert part in message, change
    (tmp_path / "x.yaml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"^--seeds 0: seeds: found 0"):
        read.from_file(tmp_path / "x.yaml", seeds=0)


def test_a_byte_order_mark_and_anchors_are_fine(tmp_path: Path) -> None:
    extra = "      - &first {method: features, label: one}\n      - {<<: *first, label: two}\n"
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbf" + (GOOD + extra).encode())
    methods = read.from_file(tmp_path / "x.yaml").tasks[0].params.methods
    assert [(m["method"], m.get("label")) for m in methods] == [("features", None), ("features", "one"), ("features", "two")]


class Example(Settings):
    count: int = 1
    rounds: int = 1
    share: float = 0.5
    budgets: Annotated[list[float], InfiniteSetting] = []  # noqa: RUF012
    yes: bool = True


def test_settings_say_what_their_numbers_may_be() -> None:
    assert Example(budgets=[1.0, float("inf")], yes=True).budgets[1] == float("inf")
    for wrong in (
        {"count": True}, {"count": 1_000_001}, {"rounds": 1_000_001}, {"share": float("inf")},
        {"share": float("nan")}, {"share": 1e13}, {"share": 1e-101}, {"budgets": [float("nan")]}, {"budgets": [float("-inf")]},
        {"budgets": [2.0, 2.0]}, {"budgets": [True]}, {"other": 1},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            Example(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "a: {b: 1e3, c: 0x1F, d: 012, e: 1_000, f: .inf, g: ~, h: yes}\n<<: {x: '1'}\n",
        "a: [1, 'é', \"\\t\", |\n  b]",
        "a: |\n  b\n\n c: 1",
        *("a: b: c", "a:\t1", "[a", "a: &x 1\nb: *y", "{a: 1}: 2", "a: \x07", "? a\n: 1\n"),
    ],
)
def test_it_is_read_the_same_whether_libyaml_is_there_or_not(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> object:
        try:
            read = YamlSource("x", text)
        except ScenarioError as error:
            return str(error)
        return repr(read.data), read.lines

    quick = found()
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    assert quick == found()
