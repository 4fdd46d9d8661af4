"""Our solver and POT on the same pairs: what is counted, and what starts do not explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedgraph.comparison import agreement, gromov
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solver_facts import SolverAgreement

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


def test_agreements_add_up() -> None:
    one = SolverAgreement(5, 3, 1, 1, 0.1, 0.2, 0, 1.0, 2.0)
    two = replace(one, most_lower=0.4, unexplained=1)
    assert agreement.add([one, two]) == SolverAgreement(10, 6, 2, 2, 0.4, 0.2, 1, 2.0, 4.0)


def test_solving_uses_one_thread(spaces: list[MetricSpace], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the process may use: small matrices on many threads cost processor time and save none."""
    seen: list[int] = []
    real = gromov.solve_by_pot

    def looks(*args: object, **more: object) -> object:
        seen.extend(pool["num_threads"] for pool in gromov._pools().info())
        return real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(gromov, "solve_by_pot", looks)
    with gromov._pools().limit(limits=2):
        gromov.solve_pairs(spaces, np.array([[0, 1]]), replace(PLAIN, solver="pot"))
        assert any(pool["num_threads"] == 2 for pool in gromov._pools().info()), "the caller's threads are as before"
    assert seen
    assert set(seen) == {1}
