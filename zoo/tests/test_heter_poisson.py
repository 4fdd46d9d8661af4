"""HeterPoisson: what a node moves a step by, what that costs, and what one W for all coordinates tells."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy.stats import binom, kstest, norm

from fedgraph.learning import example_gradients
from fedgraph.methods.base import Plan, PlanStreams
from fedgraph.privacy.accounting import calibrate, gaussian, pld
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.events import Gaussian, MentionedGaussian, PoissonGaussian, Repeated
from fedgraph.types import Graph
from fedgraph_zoo import heter_poisson_claim as published
from fedgraph_zoo.methods import heter_poisson
from tests.graphs import zeroed
from tests.trainings import made

planned = functools.partial(made, heter_poisson, protocol="inductive", steps=3, projection=16)


def test_a_node_moves_a_step_by_its_own_row_or_by_its_mentions(library: Graph) -> None:
    """The same coins in both worlds: at most C where it was drawn, 2C for each row that mentions it where it was not."""
    plan, partition, _ = planned(library, np.inf, sampling_rate=0.4, mentions=60.0)
    (subgraph,), largest = partition.subgraphs, 0.0
    model = heter_poisson.start(plan, np.random.default_rng(0)).model
    loud = {"parameters": np.random.default_rng(1).standard_normal(model["parameters"].size).astype(np.float32)}

    def released(graph: Graph, streams: PlanStreams) -> np.ndarray:
        work = heter_poisson.prepare(plan, dataclasses.replace(subgraph, graph=graph))
        desk = Desk("c", 0, 0, plan.schedule.releases, np.random.default_rng(0))
        return heter_poisson.client(plan, work, loud, 0, streams, desk)["gradient"].value

    for node in range(0, subgraph.graph.num_nodes, 18):
        streams = PlanStreams(node, ("c", "client", 0, "round", 0))
        moved = float(np.linalg.norm(released(subgraph.graph, streams) - released(zeroed(subgraph.graph, node), streams)))
        ids, own = subgraph.nodes, np.flatnonzero(subgraph.graph.adjacency[[node]].toarray()[0])
        drawn = streams.drawn("batch", ids, 0.4)
        pairs = np.stack([ids[own], np.full(own.size, ids[node])], axis=1)
        mentions = int((drawn[own] & streams.drawn("mentions", pairs, plan.made.rules[0].rate)).sum())
        allowed = 1.0 if drawn[node] else 2.0 * mentions
        assert moved / plan.params.clip <= allowed + 1e-4
        largest = max(largest, moved / plan.params.clip)
    assert largest > 0.9


@pytest.mark.parametrize(("rate", "mention", "others"), [(0.3, 0.5, 1), (0.2, 0.3, 4), (0.5, 1.0, 3)])
def test_one_step_costs_what_integration_says(rate: float, mention: float, others: int) -> None:
    sigma, delta, x = 2.0, 1e-2, np.linspace(-25, 35, 200_001)
    found = price(MentionedGaussian(sigma, rate, mention, others, heavy=False), delta).epsilon
    q, total = norm.pdf(x, 0, sigma), 0.0
    for k in range(others + 1):
        p = rate * norm.pdf(x, 1, sigma)
        p = p + sum((1 - rate) * binom.pmf(j, k, mention) * norm.pdf(x, 2 * j, sigma) for j in range(k + 1))
        total += binom.pmf(k, others, rate) * np.trapezoid(np.maximum(p - math.exp(found) * q, 0), x)
    assert 0.5 * delta < total <= delta


def test_simple_cases_are_those_of_one_row_and_more_mentions_cost_more() -> None:
    assert price(MentionedGaussian(2.0, 0.2, 0.0, 9, heavy=False), 1e-4) == price(PoissonGaussian(2.0, 0.2, 1, False), 1e-4)
    assert price(MentionedGaussian(2.0, 1.0, 0.3, 9, heavy=False), 1e-4) == price(Gaussian(2.0), 1e-4)
    costs = [
        price(Repeated(MentionedGaussian(4.0, 0.2, p, m, False), 20), 1e-4).epsilon for p, m in ((0.1, 5), (0.2, 5), (0.2, 9))
    ]
    assert costs == sorted(costs)
    two_sided = price(Repeated(PoissonGaussian(4.0, 0.2, 6, False), 20), 1e-4).epsilon
    assert price(Repeated(MentionedGaussian(4.0, 0.2, 0.5, 5, False), 20), 1e-4).epsilon < two_sided


def test_noise_of_one_w_tells_more_than_laplace_noise_on_a_line() -> None:
    """One row, two hundred dimensions. On a line every loss is at most √2/σ; here an event shows more than that, and less than
    the price."""
    sigma, dimensions, runs, rng = 5.0, 200, 200_000, np.random.default_rng(0)
    w = rng.exponential(size=runs)
    along, across = rng.standard_normal(runs), rng.chisquare(dimensions - 1, runs) / (dimensions - 1)
    quiet = w * across < 4e-3
    hits = [float(np.mean(quiet & (shift + sigma * np.sqrt(w) * along > 0.5))) for shift in (1.0, 0.0)]
    assert hits[0] > 3e-3
    assert math.log(hits[0] / max(hits[1], 1e-9)) > 3 * math.sqrt(2) / sigma
    event = MentionedGaussian(sigma, 1.0, 0.0, 0, heavy=True)
    allowed = pld.curves(event, 1e-9)[0].deltas(np.array([1.0]))[0]
    assert hits[0] - math.e * hits[1] < allowed < 0.1
    exact = np.mean([gaussian.deltas(np.array([1.0]), 1 / (sigma * math.sqrt(one)))[0] for one in w[:20_000]])
    assert allowed == pytest.approx(exact, rel=0.2)


def test_what_is_published_for_laplace_noise_is_not_what_is_proven(library: Graph) -> None:
    claimed, _, _ = planned(library, 8.0, reading="published", noise="laplace")
    assert claimed.epsilon_published == pytest.approx(8.0, rel=1e-3)
    assert claimed.provable().epsilon > 20
    normal, _, _ = planned(library, 8.0, reading="published")
    assert normal.provable().epsilon < 8.0, "Gaussian noise of that size costs less than is claimed for the other"
    units, rate, steps = 15774, 4096 / 15774, 34  # PubMed as released: batches of 4,096, nine epochs, one neighbour
    sigma = calibrate.published(lambda m: published.epsilon(m, rate, 1, units, steps, 1e-5), 8.0)
    events = (Repeated(MentionedGaussian(sigma, rate, 1 / units, units, heavy), steps) for heavy in (True, False))
    released, same = (price(event, 1e-5).epsilon for event in events)
    assert released == math.inf
    assert 2 < same < 4


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_noise_is_the_planned_one(noise: str, library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 releases of one gradient, which is computed twice: the same streams give the same."""
    plan, partition, _ = planned(library, 4.0, noise=noise, sampling_rate=0.3)
    clear, _, _ = planned(library, np.inf, sampling_rate=0.3)
    subgraph, model = partition.subgraphs[0], heter_poisson.start(plan, np.random.default_rng(0)).model
    work = heter_poisson.prepare(plan, subgraph)

    def released(which: Plan, draw: int) -> np.ndarray:
        desk = Desk("c", 0, 0, which.schedule.releases, np.random.default_rng(draw))
        return heter_poisson.client(which, work, model, 0, PlanStreams(0, ("c", "client", 0, "round", 0)), desk)[
            "gradient"
        ].value

    exact = released(clear, 0)
    assert np.array_equal(released(clear, 1), exact), "without noise only the batch and the mentions decide"
    monkeypatch.setattr(example_gradients, "clipped_sum", lambda *_: exact)
    std = plan.schedule.releases[0].mechanism.std  # type: ignore[attr-defined]
    draws = np.array([(released(plan, draw) - exact)[7] for draw in range(600)]) / std
    law = "norm" if noise == "gaussian" else "laplace"
    draws = draws if noise == "gaussian" else draws * math.sqrt(2)  # one coordinate is Laplace of variance std²
    assert kstest(draws, law).pvalue > 1e-3
    assert kstest(draws * 3 / 2, law).pvalue < 1e-3, "two thirds of the noise must be told apart"


def test_a_promised_degree_is_stated_and_cut_to(library: Graph) -> None:
    promised, partition, _ = planned(library, 4.0, cap="promised", degree=2)
    assert promised.guarantee.protection.promised_degree == 2
    work = heter_poisson.prepare(promised, partition.subgraphs[0])
    assert np.diff(work.adjacency.indptr).max() <= 2
