"""Our solver and POT on the same pairs: what is counted, and what starts do not explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedgraph.comparison import agreement, gromov
from fedgraph.comparison.metric_space import MetricSpace

PLAIN = gromov.GromovOptions()


@pytest.fixture(scope="module")
def spaces() -> list[MetricSpace]:
    rng = np.random.default_rng(0)
    found = []
    for n in (4, 6, 7, 9):
        points = rng.standard_normal((n, 2))
        found.append(MetricSpace(np.linalg.norm(points[:, None] - points[None], axis=2), np.full(n, 1 / n)))
    return found


def test_plain_descents_agree_and_the_careful_search_is_never_higher(spaces: list[MetricSpace]) -> None:
    which = gromov.all_pairs(len(spaces))
    same = agreement.with_pot(which, spaces, PLAIN)
    assert (same.pairs, same.equal, same.unexplained) == (6, 6, 0)
    careful = agreement.with_pot(which, spaces, replace(PLAIN, restarts=8, kicks=40))
    assert careful.higher == 0
    assert careful.lower + careful.equal == 6
    assert careful.lower == 0 or careful.most_lower > 0
    assert agreement.with_pot(which, spaces, replace(PLAIN, solver="pot")).equal == 6


@pytest.mark.parametrize("wrong", ["stops early", "another value"])
def test_what_starts_do_not_explain_is_counted(wrong: str, spaces: list[MetricSpace], monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that stops at the product, or prints less than its coupling has: both are found."""
    honest = gromov.solve_couplings

    def broken(
        given: list[MetricSpace], which: np.ndarray, options: gromov.GromovOptions
    ) -> tuple[gromov.GromovResults, list[np.ndarray]]:
        if wrong == "another value":
            found, plans = honest(given, which, options)
            return replace(found, value=found.value * 0.5), plans
        plans = [np.outer(given[i].weights, given[j].weights) for i, j in which]
        values = [gromov.solve_by_pot(given[i], given[j], replace(options, max_iterations=1))[0] * 3 for i, j in which]
        return gromov.GromovResults(np.array(values), np.ones(len(which), bool), np.zeros(len(which), int)), plans

    monkeypatch.setattr(gromov, "solve_couplings", broken)
    found = agreement.with_pot(gromov.all_pairs(len(spaces)), spaces, PLAIN)
    assert found.unexplained == 6
    assert (found.lower if wrong == "another value" else found.higher) == 6


def test_barycentres_from_equal_starts(spaces: list[MetricSpace]) -> None:
    found = agreement.of_barycentres(spaces, 5)
    assert found[0] <= found[1] * 1.05
    assert found[1] <= found[0] * 1.25
