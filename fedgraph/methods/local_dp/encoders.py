"""The encoders that a client applies to its embeddings before it sends them, and the event of each.

For a graph of n nodes with an embedding in [0, 1]^(n×h), and ε_n = ε, or ε/n where the rule is "1/n" (the paper's default is
ε = 1/|V|, that is this rule at ε = 1):

    multi-bit          m bits of every row at ε_n/(m·n) each: ε_n per graph (Jin & Chen, Algorithm 1 as its proof counts)
    multi-bit-total    m bits of the whole matrix at ε_n/(m·n) each (Algorithm 1 read literally): ε_n/n per graph
    multi-bit-node     m bits of every row at ε_n/m each (LPGNN's reading): n·ε_n per graph
    gaussian-as-coded  H + N(0, ε_n²), the released code: no ε-LDP; (ε, δ) with Δ₂ = √(2n) (softmax rows) or √(n·h)
    none               in clear: ε = ∞

**One vector per graph** (``PooledEncoder``) is a histogram of classes: the mean of the embedding's rows (``release: mean``), or
how the known node labels divide (``release: labels``; no model is needed). Replacing the graph may make it any point of it.

    gaussian    + N(0, s²), Δ₂ = √2 (``SimplexRows(1)``)                                        the multiplier is s/√2
    multi-bit   m of the c entries, one bit each at ε/m (``MultiBitEncoder`` on one row)         pure ε
    response    the largest class alone, through c-ary randomised response                      pure ε

Its guarantee: one release of the unit ``graph``; for the unit ``node``, each client that holds the node is priced whole. ε =
∞ → in clear, ε = ∞. A graph without any known label sends the uniform vector (``labels``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedgraph.methods.local_dp.published import claimed_local_code_event, claimed_local_encoder_event, claimed_local_entries
from fedgraph.privacy import (
    Box,
    Disclose,
    Event,
    Gaussian,
    GaussianNoise,
    KaryResponse,
    MultiBit,
    MultiBitEncoder,
    NoiseMechanism,
    PerBlock,
    RandomizedResponse,
    Relation,
    SensitivityBound,
    SimplexRows,
    Unprotected,
    blocks,
    sensitivity,
)

EncoderReleaseKind = Literal["rows", "mean", "labels"]
PooledEncoderName = Literal["gaussian", "multi-bit", "response"]

_IN_CLEAR = Disclose("no noise: the graph's own vector")


@dataclass(frozen=True)
class PooledEncoder:
    """How one vector of a whole graph is sent."""

    by: PooledEncoderName  # the mechanism
    epsilon: float  # of one release; ∞: in clear
    mu: float  # what it may spend of μ, where it is Gaussian
    width: int  # c, entries of the vector
    bits: int | None = None  # m, entries that are sent; None: by the rule of LPGNN

    def of_client(self) -> tuple[SensitivityBound, NoiseMechanism, Event]:
        """Bound, mechanism and price of one graph's release."""
        simplex = SimplexRows(1)
        if math.isinf(self.epsilon):
            return simplex, _IN_CLEAR, Unprotected("the vector is sent without noise")
        if self.by == "gaussian":
            std = sensitivity.l2(simplex, Relation.GRAPH_REPLACE) / self.mu
            return simplex, GaussianNoise(std), Gaussian(1.0 / self.mu)
        if self.by == "response":
            return Box(0, self.width - 1), KaryResponse(self.epsilon, self.width), RandomizedResponse(self.epsilon, self.width)
        m = min(self.bits, self.width) if self.bits is not None else claimed_local_entries(self.epsilon, self.width)
        return simplex, MultiBitEncoder(self.epsilon / m, m), MultiBit(self.epsilon / m, m)

    def value(self, vector: np.ndarray) -> np.ndarray:
        """What is handed to the desk, of a vector float64 [c]: itself as one row, or its largest class."""
        if self.by == "response" and math.isfinite(self.epsilon):
            return np.array([int(vector.argmax())], dtype=np.int64)
        return np.asarray(vector, dtype=np.float64)[None, :]

    def read(self, received: np.ndarray) -> np.ndarray:
        """The server's estimate, float64 [1, c]: bits made unbiased, a response as one 1. Post-processing."""
        mechanism = self.of_client()[1]
        if isinstance(mechanism, MultiBitEncoder):
            return np.asarray(mechanism.rectify(received))
        if isinstance(mechanism, KaryResponse):
            return np.eye(self.width)[received]
        return np.asarray(received)


def histogram(labels: np.ndarray, width: int) -> np.ndarray:
    """float64 [c]: shares of the classes among labels int64 [n], −1 where unknown; uniform where none is known."""
    counts = np.bincount(labels[labels >= 0], minlength=width).astype(np.float64)
    return counts / counts.sum() if counts.sum() else np.full(width, 1.0 / width)


LocalEncoderName = Literal["multi-bit", "multi-bit-total", "multi-bit-node", "gaussian-as-coded", "none"]
EncoderRule = Literal["epsilon", "1/n"]

_NO_ENCODING = Disclose("no encoding: the embedding itself")


@dataclass(frozen=True)
class EncoderSettings:
    """How the embedding of every node is sent."""

    encoder: LocalEncoderName  # one of the table above
    epsilon: float  # ε of one release of a graph, before ``rule``
    rule: EncoderRule  # ``epsilon``, or ``1/n`` of it for a graph of n nodes
    width: int  # h, numbers per node
    softmax: bool  # rows are probability vectors
    bits: int | None = None  # m, entries that are sent; None: by the rule of LPGNN

    def epsilon_of(self, num_nodes: int) -> float:
        """ε_n of a graph of this size."""
        return self.epsilon / num_nodes if self.rule == "1/n" else self.epsilon

    def of_graph(self, num_nodes: int) -> tuple[NoiseMechanism, Event]:
        """One graph's mechanism, and what it costs the protected unit."""
        if self.encoder == "none" or math.isinf(self.epsilon):
            return _NO_ENCODING, Unprotected("the embedding is sent without encoding")
        epsilon = self.epsilon_of(num_nodes)
        if self.encoder == "gaussian-as-coded":
            return GaussianNoise(epsilon), claimed_local_code_event(epsilon, num_nodes, self.width, self.softmax)
        in_total = self.encoder == "multi-bit-total"
        available = num_nodes * self.width if in_total else self.width
        m = min(self.bits, available) if self.bits is not None else claimed_local_entries(epsilon, available)
        if self.encoder == "multi-bit-node":
            return MultiBitEncoder(epsilon / m, m), MultiBit(epsilon / m, m * num_nodes)
        event = claimed_local_encoder_event(epsilon, m, num_nodes, in_total)
        return MultiBitEncoder(epsilon / (m * num_nodes), m, in_total), event

    def of_client(self, sizes: Sequence[int]) -> tuple[SensitivityBound, NoiseMechanism, Event]:
        """Bound, mechanism and price of the release of a client that holds graphs of these sizes."""
        on_simplex = self.softmax and self.encoder == "gaussian-as-coded"
        bound: SensitivityBound = SimplexRows(sum(sizes)) if on_simplex else Box(0.0, 1.0)
        made = {n: self.of_graph(n) for n in sorted(set(sizes))}
        if len(sizes) == 1:
            return bound, *made[sizes[0]]
        return bound, PerBlock(tuple(made[n][0] for n in sizes), tuple(sizes)), _worst([event for _, event in made.values()])

    def pure_losses(self, sizes: Sequence[Sequence[int]], retrievals: Sequence[int]) -> list[list[float]]:
        """Per client and graph, the pure ε of all its retrievals together, of the whole graph whatever the unit of the price; ∞
        where there is none.
        """

        def of_all_bits(num_nodes: int) -> float:
            mechanism = self.of_graph(num_nodes)[0]
            if not isinstance(mechanism, MultiBitEncoder):
                return math.inf
            return mechanism.epsilon_per_bit * mechanism.num_sampled * (1 if mechanism.in_total else num_nodes)

        once = {n: of_all_bits(n) for n in {n for own in sizes for n in own}}
        return [[times * once[n] if times else 0.0 for n in own] for own, times in zip(sizes, retrievals, strict=True)]


def _worst(events: Sequence[Event]) -> Event:
    gaussian = [e.noise_multiplier for e in events if isinstance(e, Gaussian)]
    pure = [e.epsilon_per_bit * e.num_bits for e in events if isinstance(e, MultiBit)]
    if len(gaussian) == len(events):
        return blocks.worst_gaussian(gaussian)
    return blocks.worst_pure(pure) if len(pure) == len(events) else events[0]


def part_of(mechanism: NoiseMechanism, index: int) -> NoiseMechanism:
    """What graph ``index`` of the client goes through."""
    return mechanism.parts[index] if isinstance(mechanism, PerBlock) else mechanism
