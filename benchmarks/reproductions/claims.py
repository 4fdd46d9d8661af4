"""What published ε are worth: the noise of each paper, priced as published, as provable, and from below.

    python -m benchmarks.reproductions.claims [PAPER …]

No data, no learning, only accounting. PAPER: beginnings of the papers' names, e.g. DPAR; a name that no paper has is an error.
``docs/data/published_claims.txt`` is what this prints. The formulas stand beside their methods (``dpar``, ``sage_node`` and
``local_dp``, ``privacy/mechanisms/objective_perturbation.py``); those of GAP, which no method reads, stand here.

GAP (Sajadmanesh et al., slides 2022 and released code): aggregation perturbation, edge and node level.

Published, edge level, sensitivity 1 per hop:  slides ε = K/(2σ²) + √(2K ln(1/δ))/σ; code: exact Gaussian, μ = √K/σ.
Provable: an undirected edge changes two rows, so Δ₂ = √2 per hop and μ = √(2K)/σ.

Published, node level, promised degree D (slides): min over α of

    2T(N/B)·1/(α−1)·ln{(1−q)^{α−1}(αq − q + 1) + Σ_{l=2}^α C(α,l)(1−q)^{α−l} q^l e^{(l−1)l C²/(2σ²)}}
        + DKα/(2σ²) + ln(1/δ)/(α − 1),        q = B/N.

Provable: the same mechanisms, composed as loss distributions, Δ₂ = √D per hop (zero-out), under
``promised-degree`` and ``rows-never-released``: row j of the aggregate feeds only j's own messages and
clipped sample. Releasing the rows costs √(D + D²) per hop, replacing a node 2√D; neighbours above D that
refill a slot change further rows (``gap_refill_sensitivity``, a diagnostic).

**Edge cases.** Arguments must be finite and > 0 (``PrivacyError``).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from fedgraph.methods import dpar, local_dp, sage_node
from fedgraph.privacy import events
from fedgraph.privacy.accounting import calibrate, rdp
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.aggregation_noise import NodeAggregation
from fedgraph.privacy.accounting.amplification import amplified_epsilon
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, MultiBit, PureDP, Repeated, Unprotected
from fedgraph.privacy.fields import require_positive
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing
from fedgraph_zoo import dpdgc_claim

_DPAR, _GAP, _SAGE = "DPAR (WWW 2024)", "GAP (slides 2022)", "SAGE-NDP (Daigavane et al. 2021)"
_DPDGC = "DPDGC (Chien et al. 2023)"
_GCON, _LDP_GW, _LPGNN = "GCON", "LDP-GW (Jin & Chen)", "LPGNN (Sajadmanesh & Gatica-Perez 2021)"
_EXACT = "the exact worst case, to one part in 10³"

# The one calibration of PRIVACY §4 (Cora-ML).
_DELTA, _SAMPLED, _SOURCES, _TOP, _STEPS, _EPOCHS, _BATCH, _ROWS = 2e-3, 0.09, 70, 2, 800, 200, 60, 210
_RATE = _BATCH / _ROWS


@dataclass(frozen=True)
class Claim:
    """One line: noise as published, and three ε for it.

    Attributes:
        paper: where it was published.
        mechanism: what is priced.
        epsilon_claimed: the budget that the noise was chosen for.
        delta: δ of all three.
        explanation: why they differ.
        inputs: every number that went in.
        epsilon_published: the paper's formula on its own assumptions; None where there is none.
        epsilon_provable: ours; ∞ where nothing is guaranteed, None where there is none.
        epsilon_lower_bound: no analysis can show less (worst-case data, a viewer of every step); None where there is none.
    """

    paper: str
    mechanism: str
    epsilon_claimed: float
    delta: float
    explanation: str
    inputs: Mapping[str, float | str] = field(default_factory=dict)
    epsilon_published: float | None = None
    epsilon_provable: float | None = None
    epsilon_lower_bound: float | None = None


@cache
def rows() -> tuple[Claim, ...]:
    """Every claim, in the order of PRIVACY §4-§8, from our own accountants."""
    return (*dpar_rows(), *gap_rows(), *sage_rows(), *dpdgc_rows(), *gcon_rows(), *local_rows())


def of_papers(papers: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of papers whose names begin so; all claims where none is named.

    Raises:
        ValueError: No paper's name begins so; the line lists all of them.
    """
    there = dict.fromkeys(claim.paper for claim in rows())
    if unknown := [name for name in papers if not any(paper.startswith(name) for paper in there)]:
        raise ValueError(f"no paper's name begins with {unknown[0]!r}; allowed: {', '.join(there)}")
    return tuple(claim for claim in rows() if not papers or claim.paper.startswith(tuple(papers)))


def dpar_rows() -> list[Claim]:
    """The table of PRIVACY §4, both columns under the one calibration, then EM0 and EM1."""
    return [*_dpar_table(1.0), *_dpar_table(8.0)]


def _dpar_table(claimed: float) -> list[Claim]:
    half, half_delta = claimed / _SAMPLED / 2, 1e-3 / _SAMPLED
    sigma = dpar.claimed_sgd_multiplier(half, _RATE, _STEPS, half_delta)
    pr = dpar.claimed_gm_multiplier(half, half_delta, _SOURCES)
    inputs = _dpar_inputs(half, half_delta, sigma, pr)
    steps = _dpar_steps(sigma)

    def line(mechanism: str, kind: str, epsilon: float, explanation: str) -> Claim:
        return Claim(_DPAR, mechanism, claimed, _DELTA, explanation, inputs, **{kind: epsilon})

    def once(vectors: events.Event, training: events.Event) -> float:
        return price(events.SampledOnce(events.Composed((vectors, training)), _SAMPLED), _DELTA).epsilon

    def alone(training: events.Event) -> float:
        return price(events.SampledOnce(training, _SAMPLED), _DELTA).epsilon

    published, provable, lower = "epsilon_published", "epsilon_provable", "epsilon_lower_bound"
    paper, sound = events.Repeated(events.Gaussian(pr), _SOURCES), events.Repeated(events.Gaussian(pr / math.sqrt(2)), _SOURCES)
    inner = half + dpar.claimed_sgd_epsilon(sigma, _RATE, _STEPS, half_delta)
    revealed = ((events.PoissonGaussian(sigma, _RATE, 4, True), _STEPS), (events.Gaussian(pr / math.sqrt(2)), _SOURCES))
    elementary = amplified_epsilon(rdp.epsilon(revealed, _DELTA / _SAMPLED)[0], _SAMPLED)
    same = amplified_epsilon(inner, _SAMPLED)
    poisson, fixed = alone(steps["poisson"]), alone(steps["fixed"])
    return [
        line("GM: q'(ε_pr + ε_sgd)", published, _SAMPLED * inner, "the published total; q'·ε is not an upper bound"),
        line("GM: inner ε before q'", published, inner, "ε_pr + ε_sgd on the sampled graph"),
        line("GM: same blocks, correct amplification", published, same, "ln(1 + q'(e^ε − 1)), once"),
        line("GM: tight accounting, paper's own sensitivities", published, once(paper, steps["poisson"]), "C1, C, Poisson"),
        line("SGD alone, Poisson, sensitivity C", lower, poisson, f"zero-out, worst data, every step seen; {_EXACT}"),
        line("SGD alone, as coded (fixed batches), own row only", lower, fixed, f"one visit per epoch, μ = √200/σ; {_EXACT}"),
        line("GM: zero-out, √2·C1, B' = 1, Poisson", provable, once(sound, steps["poisson"]), "needs B' = 1 enforced"),
        line("GM: zero-out, √2·C1, B' = 2, Poisson", provable, once(sound, steps["zero-out 2"]), "needs B' ≤ 2 enforced"),
        line("GM: replace, √2·C1, B' = 1, Poisson", provable, once(sound, steps["replace 1"]), "one row moves by 2C"),
        line("GM: replace, B' = 4, mixture pair", provable, once(sound, steps["replace 4"]), "the pair of pld.py"),
        line("GM: replace, B' = 4, elementary", provable, elementary, "coins revealed, Rényi"),
        line("GM: as coded (fixed batches), B' = 4", provable, once(sound, steps["fixed 4"]), "μ = 2·4·√200/σ, one batch"),
        *_dpar_exponential(claimed, half, half_delta, sigma, once),
    ]


def _dpar_inputs(half: float, half_delta: float, sigma: float, pr: float) -> dict[str, float | str]:
    return {
        "accountant of the authors": "Rényi, orders 1.1-10.9 and 12-63, ε = RDP + ln(1/δ)/(α−1)", "delta": _DELTA,
        "delta_sgd": half_delta, "delta_pr": half_delta, "epsilon_sgd": half, "epsilon_pr": half, "q'": _SAMPLED, "N'": _ROWS,
        "B": _BATCH, "q": _RATE, "T": _STEPS, "M": _SOURCES, "K": _TOP, "sigma_sgd / C": sigma, "sigma_pr / C1": pr,
    }  # fmt: skip


def _dpar_steps(sigma: float) -> dict[str, events.Event]:
    return {
        "poisson": events.Repeated(events.PoissonGaussian(sigma, _RATE, touched_rows=1, replaced=False), _STEPS),
        "zero-out 2": events.Repeated(events.PoissonGaussian(sigma, _RATE, 2, replaced=False), _STEPS),
        "replace 1": events.Repeated(events.PoissonGaussian(sigma, _RATE, 1, True), _STEPS),
        "replace 4": events.Repeated(events.PoissonGaussian(sigma, _RATE, 4, True), _STEPS),
        "fixed": events.Repeated(events.Gaussian(sigma), _EPOCHS),
        "fixed 4": events.Repeated(events.Gaussian(sigma / 8), _EPOCHS),
    }


def _dpar_exponential(
    claimed: float, half: float, half_delta: float, sigma: float, once: Callable[[events.Event, events.Event], float]
) -> list[Claim]:
    """EM0 and EM1: scale Δ/base is 2Δ/ε₀ with ε₀ = 2·base, so each pick is 2·base-bounded-range."""
    each, each_delta = dpar.claimed_vector_budget(half, half_delta, _SOURCES)
    training = events.Repeated(events.PoissonGaussian(sigma, _RATE, 1, True), _STEPS)
    out = []
    for name, share in (("EM0", 1.0), ("EM1", 0.5)):
        base = dpar.claimed_em_base(each * share, _TOP, each_delta)
        picks = events.Repeated(events.BoundedRange(2 * base), _SOURCES * _TOP)
        values = events.Repeated(events.PureDP(each * (1 - share) / _TOP), _SOURCES * _TOP)
        inputs = _dpar_inputs(half, half_delta, sigma, math.nan)
        del inputs["sigma_pr / C1"]
        inputs |= {"epsilon_v": each, "Gumbel scale / C2": 1 / base}
        if share < 1:
            inputs["Laplace scale / C2"] = _TOP / (each * (1 - share))
        words = "published: the corollary outside its range and q'·ε; provable: bounded range per pick"
        words += ", Laplace values as pure ε" if share < 1 else ""
        provable = once(events.Composed((picks, values)), training)
        out.append(Claim(_DPAR, f"{name}: replace, B' = 1, Poisson", claimed, _DELTA, words, inputs, claimed, provable))
    return out


def claimed_gap_edge_std(epsilon: float, hops: int, delta: float) -> float:
    """The σ at which the slides' formula gives ``epsilon``: with x = √K/σ, x²/2 + x√(2 ln 1/δ) = ε."""
    require_positive("epsilon", epsilon)
    root = math.sqrt(2 * math.log(1 / delta))
    return math.sqrt(hops) * (root + math.sqrt(root**2 + 2 * epsilon)) / (2 * epsilon)


def _gap_edge_event(noise_std: float, hops: int) -> Event:
    """Provable: K Gaussians of sensitivity √2."""
    return Repeated(Gaussian(noise_std / math.sqrt(2)), hops)


def claimed_gap_node_epsilon(
    noise_std: float, num_nodes: int, batch_size: int, epochs: int, clip: float, hops: int, degree: int, delta: float
) -> float:
    """The slides' node-level formula at whole orders 2-256.

    Args:
        noise_std: σ > 0, of both stages.
        num_nodes: N.
        batch_size: B ≤ N.
        epochs: T, of each of the two stages.
        clip: C.
        hops: K.
        degree: D.
        delta: δ in (0, 1).

    Raises:
        PrivacyError: σ is not finite and > 0.
    """
    require_positive("noise_std", noise_std)
    orders = np.arange(2.0, 257.0)
    steps = 2 * epochs * num_nodes / batch_size
    training = steps * rdp.of_poisson_row(noise_std / clip, batch_size / num_nodes, orders)
    aggregation = degree * hops * orders / (2 * noise_std**2)
    return float(np.min(training + aggregation + math.log(1 / delta) / (orders - 1)))


def _gap_node_event(
    noise_std: float,
    num_nodes: int,
    batch_size: int,
    epochs: int,
    clip: float,
    hops: int,
    hop_sensitivity: float,
    replaced: bool,
) -> Event:
    """Provable: two Poisson DP-SGD stages and K Gaussians of ``hop_sensitivity`` (√D, √(D + D²), 2√D …)."""
    pipeline = NodeAggregation(math.ceil(2 * epochs * num_nodes / batch_size), batch_size / num_nodes, hops, replaced)
    return pipeline.event(noise_std / clip, noise_std / hop_sensitivity)


def gap_refill_sensitivity(degree: int, extra_rows: int) -> float:
    """√(Σ_rows (removed + added)²) when all ``degree`` rows refill and ``extra_rows`` more gain or lose one entry."""
    return math.sqrt(4 * degree + extra_rows)


def gap_rows() -> list[Claim]:
    """EDP at claimed 1, 4, 8 (K = 2, δ = 1e-7) from code and slides; NDP by the slides' formula."""
    out = []
    for claimed in (1.0, 4.0, 8.0):
        for source, std in (
            ("code", calibrate.gaussian_multiplier(2, claimed, 1e-7)),
            ("slides", claimed_gap_edge_std(claimed, 2, 1e-7)),
        ):
            words = "an undirected edge changes two rows: Δ₂ = √2 per hop, not 1"
            formula = "exact Gaussian" if source == "code" else "K/2σ² + √(2K ln 1/δ)/σ"
            inputs: dict[str, float | str] = {"K": 2, "sigma": std, "formula": formula}
            provable = price(_gap_edge_event(std, 2), 1e-7).epsilon
            out.append(Claim(_GAP, f"GAP-EDP, {source}", claimed, 1e-7, words, inputs, claimed, provable))
    return [*out, *_gap_node_rows()]


def _gap_node_rows() -> list[Claim]:
    nodes, batch, epochs, degree, std, delta = 19804, 2048, 10, 100, 12.0, 1e-7
    claimed = claimed_gap_node_epsilon(std, nodes, batch, epochs, 1.0, 2, degree, delta)
    cases = {
        "GAP-NDP, promised degree, rows never released": (math.sqrt(degree), False, "Δ₂ = √D per hop, on a promise"),
        "GAP-NDP, aggregated rows released": (math.sqrt(degree + degree**2), False, "Δ₂ = √(D + D²) per hop"),
        "GAP-NDP, replace": (2 * math.sqrt(degree), True, "Δ₂ = 2√D per hop, 2C per step"),
        "GAP-NDP, refill diagnostic, 42 extra rows": (
            gap_refill_sensitivity(degree, 42),
            False,
            "Δ₂ = 21.0 where slots refill",
        ),
    }
    inputs: dict[str, float | str] = {"N": nodes, "B": batch, "epochs": epochs, "C": 1.0, "K": 2, "D": degree, "sigma": std}
    found = []
    for name, (hop, replaced, words) in cases.items():
        provable = price(_gap_node_event(std, nodes, batch, epochs, 1.0, 2, hop, replaced), delta).epsilon
        found.append(Claim(_GAP, name, claimed, delta, words, inputs | {"Δ₂ per hop": hop}, claimed, provable))
    return found


def sage_rows() -> list[Claim]:
    """One node-level setting (10 neighbours, one layer) and the two edge-level mechanisms."""
    nodes, batch, steps, degree, sigma, delta = 90000, 10000, 100, 10, 60.0, 1e-5
    touched = sage_node.claimed_subgraphs(degree, 1)
    claimed = sage_node.claimed_epsilon(sigma, batch, nodes, touched, steps, delta)
    inputs: dict[str, float | str] = {"N": nodes, "B": batch, "T": steps, "K": degree, "layers": 1, "k": touched}
    inputs["sigma / C"] = sigma
    bounded = Repeated(FixedSizeGaussian(sigma, batch, nodes, touched, replaced=True), steps)
    released = sage_node.claimed_epsilon(sigma, batch, nodes, touched, steps, delta, replacement=True)
    node_level = (
        ("1 layer, without replacement as accounted", price(bounded, delta).epsilon,
         "holds under promised-degree only; provable is the same bound by loss distributions"),
        ("1 layer, with replacement as released", released, "the released batches repeat subgraphs: j ~ Bin(B, k/N)"),
    )  # fmt: skip
    edge_level = (
        ("upper triangle", 1, "one undirected cell, then post-processing"),
        ("both triangles", 2, "an undirected edge is two cells when they are perturbed separately"),
    )
    found = [Claim(_SAGE, name, claimed, delta, words, inputs, claimed, provable) for name, provable, words in node_level]
    for cells, count, words in edge_level:
        name, provable = f"EdgeRand / LapGraph, {cells}", price(Repeated(PureDP(1.0), count), 0.0).epsilon
        found.append(Claim("SAGE-EDP (Wu et al. 2021)", name, 1.0, 0.0, words, {"cells touched": count}, 1.0, provable))
    return found


def dpdgc_rows() -> list[Claim]:
    """Edge level on Cora with the released script's batches, at claimed 1 and 8, and what its release is as run."""
    rows, batch, epochs, delta = 2031, 64, 100, 1e-5
    run, found = epochs * math.ceil(rows / batch), []
    for claimed in (1.0, 8.0):
        scale = dpdgc_claim.noise_scale(claimed, batch, rows, epochs * rows // batch, delta)
        inputs: dict[str, float | str] = {"n": rows, "B": batch, "T": run, "s": scale, "sigma / C": 2 * scale}
        cases: dict[str, tuple[Event, str]] = {}
        for touched, name in ((1, "one entry of one row"), (2, "an undirected edge")):
            step = FixedSizeGaussian(2 * scale, batch, rows, touched, replaced=True)
            whole = Composed((Repeated(step, run), Gaussian(scale / math.sqrt(touched))))
            cases[name] = (
                whole,
                "one row turns: 2C" if touched == 1 else "two rows turn: 4C, and √2 for the released rows",
            )
        cases["as run"] = Unprotected("unbounded rows"), "W is never brought to the length that the released rows' noise is for"
        found += [
            Claim(_DPDGC, name, claimed, delta, words, inputs, claimed, price(event, delta).epsilon)
            for name, (event, words) in cases.items()
        ]
    return found


def gcon_rows() -> list[Claim]:
    """One setting (Cora-like) at ε = 4: provable equals published, on conditions."""
    steps, restart = (2.0,), 0.6
    sensitivity, bounds = perturbing.psi(steps, restart), perturbing.LossBounds.soft_margin(7)
    given = perturbing.Situation(4.0, 1e-4, 0.9, bounds, sensitivity, 7, 16, 140, per_end=False)
    made = perturbing.gamma_noise(given, 1.0)
    inputs: dict[str, float | str] = {
        "restart": restart, "m": 2, "p": 0.5, "Psi": sensitivity, "c": 7, "d": 16, "n1": 140, "omega": 0.9, "Lambda": 1.0,
        "c_sf": given.c_sf, "c_theta": made.c_theta, "eps_Lambda": made.log_determinant, "Lambda'": made.regulariser - 1.0,
        "beta": made.rate,
    }  # fmt: skip
    words = "holds for the exact minimiser, features and labels public; hyper-parameter search is not counted"
    return [Claim(_GCON, "objective perturbation", 4.0, 1e-4, words, inputs, epsilon_published=4.0, epsilon_provable=4.0)]


def local_rows() -> list[Claim]:
    """MUTAG-sized graphs (n = 18, h = 16) at the default ε = 1/n, LPGNN at ε = 1, and the model path."""
    n, h, delta = 18, 16, 1e-5
    epsilon = 1 / n
    kinds = (("multi-bit-total", True), ("multi-bit", True), ("gaussian-as-coded", True), ("gaussian-as-coded", False))
    encoders = [local_dp.EncoderSettings(kind, epsilon, "epsilon", h, simplex) for kind, simplex in kinds]  # type: ignore[arg-type]
    literal, per_row, softmax, box = (encoder.of_graph(n)[1] for encoder in encoders)
    inputs: dict[str, float | str] = {"n": n, "h": h, "m": 1, "epsilon": epsilon}  # one bit, since ε < 2.18
    cases: tuple[tuple[str, Event, float, float | None, str], ...] = (
        ("Algorithm 1, m bits of the matrix", literal, 0.0, epsilon, "read literally the loss is ε/n"),
        ("Algorithm 1, m bits of each row", per_row, 0.0, epsilon, "m·n bits of ε/(mn) each"),
        (
            "released code N(0, ε²), as ε-LDP",
            softmax,
            0.0,
            epsilon,
            "the code reads ε as a standard deviation: no ε-LDP at all",
        ),
        ("released code N(0, ε²), softmax rows", softmax, delta, epsilon, "a Gaussian mechanism with Δ₂ = √(2n)"),
        ("released code N(0, ε²), entries in [0, 1]", box, delta, epsilon, "a Gaussian mechanism with Δ₂ = √(n·h)"),
        ("FedAvg updates of the shared model", Unprotected("in clear"), 0.0, None, "the paper does not protect the model path"),
    )
    graphs = [
        Claim(_LDP_GW, mechanism, epsilon, at, words, inputs, published, price(event, at).epsilon)
        for mechanism, event, at, published, words in cases
    ]
    one_node: dict[str, float | str] = {"d": 1433, "m": 1, "epsilon": 1.0}
    provable = price(MultiBit(1.0, 1), 0.0).epsilon
    return [
        *graphs,
        Claim(_LPGNN, "multi-bit, m of d features", 1.0, 0.0, "m bits of ε/m each, one node", one_node, 1.0, provable),
    ]


def as_text(found: Sequence[Claim]) -> str:
    """Claims as text of at most 150 columns: the DPAR table with both columns, then one line per claim."""
    ours = [c for c in found if c.paper == _DPAR]
    rest = [c for c in found if c.paper != _DPAR]
    lines = _dpar_lines(ours) if ours else []
    paper = ""
    for claim in rest:
        if claim.paper != paper:
            paper = claim.paper
            lines += ["", paper, f"  {'':<50} {'claimed':>9} {'published':>10} {'provable':>10} {'lower':>8} {'delta':>8}"]
        lines.append(
            f"  {claim.mechanism:<50} {_as_number(claim.epsilon_claimed):>9} {_as_number(claim.epsilon_published):>10} "
            f"{_as_number(claim.epsilon_provable):>10} {_as_number(claim.epsilon_lower_bound):>8} {claim.delta:>8.3g}"
        )
        lines.append(f"      {claim.explanation}")
        lines.append(f"      with {_inputs(claim)}")
    return "\n".join(lines)


def _as_number(value: float | None) -> str:
    """Four digits; a dash for none, ∞ for infinity."""
    if value is None:
        return "–"
    return "∞" if math.isinf(value) else f"{value:.4g}"


def _dpar_lines(claims: list[Claim]) -> list[str]:
    budgets = sorted({c.epsilon_claimed for c in claims})
    lines = [f"{_DPAR}, Cora-ML, δ = {claims[0].delta:g}: what its noise is worth", ""]
    lines.append(f"  {'':<52} {'kind':<12}" + "".join(f"{'claimed ' + _as_number(b):>12}" for b in budgets))
    for mechanism in dict.fromkeys(c.mechanism for c in claims):
        same = {c.epsilon_claimed: c for c in claims if c.mechanism == mechanism}
        kind, _ = _shown(same[budgets[0]])
        lines.append(f"  {mechanism:<52} {kind:<12}" + "".join(f"{_as_number(_shown(same[b])[1]):>12}" for b in budgets))
        lines.append(f"      {same[budgets[0]].explanation}")
    lines += ["", "  inputs (one calibration for both columns)"]
    first = {b: next(c for c in claims if c.epsilon_claimed == b).inputs for b in budgets}
    for name in first[budgets[0]]:
        values = [first[b][name] for b in budgets]
        shown = [v if isinstance(v, str) else f"{v:.6g}" for v in dict.fromkeys(values)]
        lines.append(f"    {name:<26} {' | '.join(shown)}")
    lines.append(
        "  lower bounds: worst-case data, a viewer of every step; for a final model alone they bound the accounting only"
    )
    return lines


def _shown(claim: Claim) -> tuple[str, float | None]:
    if claim.epsilon_lower_bound is not None:
        return "lower bound", claim.epsilon_lower_bound
    if claim.epsilon_provable is not None:
        return "provable", claim.epsilon_provable
    return "published", claim.epsilon_published


def _inputs(claim: Claim) -> str:
    return ", ".join(f"{k} = {v if isinstance(v, str) else format(v, '.6g')}" for k, v in claim.inputs.items())


def page() -> str:
    """``docs/data/published_claims.txt``."""
    return f"{as_text(rows())}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when the table was printed; 2, with one line on stderr, for a paper that does not exist."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproductions.claims", description="What published ε are worth."
    )
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="beginnings of papers' names; default: all")
    parser.add_argument("--page", action="store_true", help="print docs/data/published_claims.txt")
    options = parser.parse_args(arguments)
    try:
        print(page() if options.page else as_text(of_papers(options.papers)), end="" if options.page else "\n")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
