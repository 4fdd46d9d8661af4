"""The section, the letters to owners, and the rows of results.csv, for a federation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from fedgraph.cells import task_facts
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import ClientResultCellFacts, ParticipationCellFacts
from fedgraph.federation import ALONE_WORLD, LeftOutOfWorld, World, WorldKind, world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report.sections import participation
from fedgraph.report.sections.base import SectionRecords

SUMS = world_of_trust(Trust.SUMS)

ACCOUNTS = {"alerts": 0.1, "called": ("account", "accounts")}


def record(kind: str, client: str, value: float, epsilon: float) -> dict[str, Any]:
    return {
        "participation": kind, "client": client, "nodes": 100, "tested": 25, "metrics": {"accuracy": value}, "epsilon": epsilon,
        "toward": "the server",
    }  # fmt: skip


def entry(world: World, epsilon: float, records: list[dict[str, Any]], method: str = "features") -> dict[str, Any]:
    return {"world": world, "epsilon": epsilon, "method": method, "seed": 0, "protection": None, "records": records}


def entries() -> list[dict[str, Any]]:
    def of_all(kind: str, epsilon: float, *values: float) -> list[dict[str, Any]]:
        return [record(kind, client, value, epsilon) for client, value in zip(("all", "a", "b"), values, strict=True)]

    return [
        entry(ALONE_WORLD, math.inf, of_all("alone", math.inf, 0.55, 0.5, 0.6)),
        entry(ALONE_WORLD, 4.0, of_all("alone", 4.0, 0.35, 0.3, 0.4)),
        entry(SUMS, 4.0, of_all("federated", 3.9, 0.65, 0.7, 0.55) + of_all("personalised", 3.9, 0.7, 0.72, 0.61)),
        entry(World(WorldKind.TOGETHER, Trust.SUMS, LeftOutOfWorld(0, "a")), 4.0, [record("left-out", "a", 0.45, 0.0)]),
        entry(SUMS, 4.0, of_all("federated", math.inf, 0.99, 0.99, 0.99), method="leaky"),
    ]


def seeded(given: list[dict[str, Any]], seeds: int = 3) -> list[dict[str, Any]]:
    """The same in several repetitions."""
    return [one | {"seed": seed} for seed in range(seeds) for one in given]


def of(given: list[dict[str, Any]], params: dict[str, Any] | None = None, short: bool = False) -> SectionRecords:
    return SectionRecords("participation", "t", "d", params or {}, tuple(finished(e) for e in given), short=short)


def finished(given: dict[str, Any]) -> Result:
    results = tuple(ClientResultCellFacts(**r) for r in given["records"])
    facts = ParticipationCellFacts(results=results, protocol="inductive", public="test-graph", clients=2, cut_edges=0)
    own = {key: value for key, value in given.items() if key != "records"}
    return replace(Result("t", "d", "", "default", SUMS, 0.0, "provable", 0, delta=1e-4, facts=facts), **own)


def test_the_letter_says_what_the_owner_asked() -> None:
    section = participation.build(of(seeded(entries())))
    assert section.first[0].startswith("Is it worth joining (t): at ε = 4, 1 of 2 gain (a +22), none loses.")
    letter = section.letters[0]
    assert letter.answer.startswith("In short: joining helps you with every ε that was tried; at ε = 4 you get 22 more of 100")
    assert (letter.client, letter.rows[0][-1]) == ("a", "joining helps")
    text = " ".join(letter.sentences)
    for part in (
        "You are a, and you bring 100 people of d", "counted on 25 people", "a model that you keep to yourself: 50 of 100",
        "Joined at ε = 4, when the server sees only sums: 70 of 100 (20 more than alone)", "keep that to yourself: 72 of 100",
        "98.1 of 100 times", "use the model of the others (ε = 4): 45 of 100",
    ):  # fmt: skip
        assert part in text
    assert "If nothing were protected" not in text, "no joined row was run without protection"


def test_a_difference_that_chance_may_make_is_none() -> None:
    """25 tested nodes three times: two standard errors of two shares near .6 are 16 of 100."""
    letter = participation.write_letters(participation.read(of(seeded(entries()))), "d")[1]
    assert "Differences below 16 may be chance." in letter.sentences[0]
    assert "joining brings you nothing that can be told from chance. With ε = 4 it is about as good" in letter.answer
    assert "55 of 100 (5 fewer than alone, which may be chance)" in " ".join(letter.sentences)
    assert letter.rows[0][-1] == "no difference"
    found = participation.read(of(entries()))
    assert found.best(4.0, tuple(participation.JOINED)) == ("features", "joined, sums only"), "the ε of leaky is infinite"
    for tested in (1, 2, 3, 8, 50, 400):  # one node of a few makes no difference
        found.tested["a"] = tested
        assert found.alike("a", 1.0 - 1 / tested, 1.0)
        assert found.alike("a", 1 / tested, 0.0)
        assert found.chance("a", 1.0) <= 1.0


@pytest.mark.parametrize("tested", [10, 25, 100, 400])
def test_of_two_that_are_equally_good_few_are_called_different(tested: int) -> None:
    """Exactly: both are binomial, and each pair of counts is judged."""
    found = participation.read(of(entries()))
    found.tested["a"] = tested
    counts = np.arange(tested + 1)
    widths = [found.chance("a", count / tested) for count in counts]
    differ = np.abs(counts[:, None] - counts) / tested > np.array(widths)
    for good in (0.002, 0.01, 0.02, 0.1, 0.5, 0.8, 0.95, 0.99):
        likely = binom.pmf(counts, tested, good)
        assert likely @ differ @ likely < 0.1


@pytest.mark.parametrize(
    ("seeds", "short", "answer"), [(2, False, "No advice: the run was repeated 2"), (3, True, "This was a short")]
)
def test_a_short_run_and_fewer_than_three_seeds_give_no_advice(seeds: int, short: bool, answer: str) -> None:
    section = participation.build(of(seeded(entries(), seeds), short=short))
    (said,) = section.first
    assert said.startswith(f"Is it worth joining (t): not decided by {'a short run of ' if short else ''}{seeds} seeds")
    assert said.endswith("Right answers of 100, over everybody's test nodes: alone 55; joined, sums only: 65 at ε = 4.")
    assert all(letter.answer.startswith(answer) for letter in section.letters)
    assert not any("joining helps" in cell for letter in section.letters for row in letter.rows for cell in row)


def right(shift: int, of: int = 60) -> str:
    """Answers of 100 people, of whom ``of`` are answered rightly; ``shift`` moves whom."""
    return task_facts.pack_answers(np.roll(np.arange(100) < of, shift))


@pytest.mark.parametrize(("shift", "gains"), [(0, True), (3, False), (40, False)])
def test_answers_are_compared_person_by_person(shift: int, gains: bool) -> None:
    """Eight more of 100: where it is the same 60 and eight more, that is no chance; where it is other people, it may be.

    Of three others, 2.2 standard errors are enough for one comparison, and not for the best of four.
    """
    given = entries()[:3]
    for one, of_100, moved in ((given[0], 60, 0), (given[1], 50, 0), (given[2], 68, shift)):
        for found in one["records"]:
            found |= {"tested": 100, "metrics": {"accuracy": of_100 / 100}, "right": right(moved, of_100)}
    gain = participation.read(of(seeded(given))).gain("a", 4.0)
    assert gain == pytest.approx(0.08 if gains else 0.0)


def test_differences_are_those_of_one_seed_where_a_cell_failed() -> None:
    """Seeds differ by 0.3 and more, and joining gains 0.01 in each: that is so whichever cells failed."""
    given = []
    for seed, level in enumerate((0.3, 0.9, 0.6)):
        alone, joined = entries()[0] | {"seed": seed}, entries()[2] | {"seed": seed}
        for one, value in ((alone, level), (joined, level + 0.01)):
            for found in one["records"]:
                found |= {"tested": 100, "metrics": {"accuracy": value}, "right": right(0, round(100 * value))}
        given += [joined] if seed == 0 else [alone, joined]
    found = participation.read(of(given))
    alone_key = ("features", math.inf, participation.ALONE, "a")
    joined_key = ("features", 4.0, participation.join(Trust.SUMS), "a")
    assert found.error(joined_key, alone_key) == pytest.approx(math.sqrt(0.01 * 0.99 / 100))
    assert found.mean(joined_key) < found.mean(alone_key)
    assert found.difference(joined_key, alone_key) == pytest.approx(0.01)


def sought(given: list[dict[str, Any]], tested: int, of_class: int, found: int) -> None:
    """Every record: ``of_class`` of ``tested`` nodes are looked for, and the one alert in ten finds ``found`` of them."""
    for one in given:
        for record in one["records"]:
            alerts = max(1, round(0.1 * tested))
            record |= {"tested": tested, "sought": of_class, "metrics": {"accuracy": 0.9}}
            if of_class:
                record["metrics"] |= {"recall_at_alerts": found / of_class, "precision_at_alerts": found / alerts}


def test_alerts_that_find_nothing_were_measured() -> None:
    """Ten alerts, twenty that are looked for, none found: that is a result, and chance has its width there."""
    given = entries()
    sought(given, 100, 20, 0)
    found = participation.read(of(given, ACCOUNTS))
    assert (found.tested["a"], found.reachable["a"]) == (20, 0.5)
    letter = participation.write_letters(found, "d")[0]
    assert not any("Nothing was measured" in s for s in letter.sentences)
    for record in (r for one in given for r in one["records"] if r["client"] == "a"):
        record |= {"sought": 0, "metrics": {"accuracy": 0.9}}
    (silent, _) = participation.write_letters(participation.read(of(given, ACCOUNTS)), "d")
    assert "none of your accounts that were tested is of the kind that is looked for" in " ".join(silent.sentences)


def test_what_a_perfect_list_finds_is_a_mean_over_seeds() -> None:
    """One alert: of one account it finds all, of two half. Alone finds .75 of them, and no page says that none can."""
    one, two = entries(), [one | {"seed": 1} for one in entries()]
    sought(one, 5, 1, 1)
    sought(two, 5, 2, 1)
    found = participation.read(of([*one, *two], ACCOUNTS))
    assert (found.tested["a"], found.reachable["a"]) == (3, 0.75)
    text = " ".join(participation.write_letters(found, "d")[0].sentences)
    assert "No model can find more than 75 of 100" in text
    assert "Alone, with a model that you keep to yourself: 75 of 100" in text


def test_a_model_that_is_kept_may_be_of_any_budget_and_limits_are_told() -> None:
    given = entries()
    given[1]["records"] = [record("alone", c, v, 4.0) for c, v in (("all", 0.6), ("a", 0.65), ("b", 0.55))]
    given[2]["protection"] = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.FEATURES_FROM_EDGES,))
    found = participation.read(of(given))
    assert found.inside() == ("features", 4.0, participation.ALONE)
    letter = participation.write_letters(found, "d")[0]
    assert "keep to yourself: 65 of 100" in " ".join(letter.sentences)
    assert any("What the rows of others say of this person" in s for s in letter.last)


@pytest.mark.parametrize(
    ("most", "says"), [(0.88, "costs you 18 of 100"), (0.7, "costs you nothing"), (0.6, "costs you nothing")]
)
def test_the_letter_says_what_protection_costs(most: float, says: str) -> None:
    free = entry(SUMS, math.inf, [record("federated", c, most, math.inf) for c in ("all", "a", "b")], method="nonprivate")
    letter = participation.write_letters(participation.read(of(seeded([*entries(), free]))), "d")[0]
    assert f"If nothing were protected, joining would give {100 * most:.0f} of 100: at ε = 4 protection {says}" in " ".join(
        letter.sentences
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
def test_what_an_attacker_reaches_is_randomised_response(epsilon: float) -> None:
    """Randomised response is ε-DP, and the best guess from it is right with probability e^ε / (1 + e^ε): the bound is tight."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert participation.right_at_most(epsilon, 0.0) == pytest.approx(right)
    assert participation.right_at_most(epsilon, 0.01) > right
    assert participation.right_at_most(math.inf, 0.0) == 1.0
