"""In how many examples of a step one node may occur, and what a step costs.

An example is a root, drawn by a secret coin of rate q, with the nodes around it that it reads (``learning.rooted``). A root
reads a node only if that node was not drawn itself and a secret coin of the pair, of rate p, says so. So a node is in its own
example, or in some of the examples of at most m other roots, never both. If roots also read nodes that were drawn
(``drawn_too``), it may be in both.

    cap: all        m = n − 1: every graph, no promise
    cap: limit      m follows from the largest number of neighbours that the platform enforces
    cap: promised   m follows from a promised degree, to which neighbourhoods are cut; if the data break it, ε = ∞

p = min(1, M / m), where M (``mentions``) is the mean number of other examples that a node is in, at most, if all roots are
drawn. With M = 0 roots read no other node, and each node is only in its own example.

**Price.** Zero-out: ``MentionedGaussian`` (own example, or Bin(m, qp) changed ones; ``privacy.accounting.pld``) or
``PoissonGaussian`` of m + 1 touched rows (``privacy.accounting.pld``), whichever needs less noise: both hold. Replace: the
node has other neighbours in the other graph, so 2m + 1 rows change. Under ``drawn_too`` only the second price holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fedgraph.learning import rooted
from fedgraph.privacy import Event, MentionedGaussian, PoissonGaussian, Repeated, calibrate


@dataclass(frozen=True)
class Occurrences:
    """The rule at one client."""

    others: int  # m, most other examples that a node may be in
    rate: float  # p, rate of a pair's coin, in [0, 1]
    sampling_rate: float  # q, rate of a root's coin
    replaced: bool  # whether a node is replaced, not zeroed
    num_rows: int  # n, nodes of the client
    drawn_too: bool = False  # whether a root reads nodes that were drawn themselves

    @property
    def most(self) -> int:
        """The largest number of examples of a step that one node changes."""
        alone = not (self.others and self.rate)
        return 1 if alone else min(self.num_rows, 1 + self.others * (2 if self.replaced else 1))

    def events(self, multiplier: float) -> tuple[Event, ...]:
        """The price of one step, in every way that holds. multiplier: standard deviation of the noise over the clip."""
        touched = PoissonGaussian(multiplier, self.sampling_rate, self.most, self.replaced)
        if self.most == 1 or self.replaced or self.drawn_too:
            return (touched,)
        return (MentionedGaussian(multiplier, self.sampling_rate, self.rate, self.others, False), touched)


def rule(
    cap: str,
    degree: int,
    mentions: float,
    hops: int,
    sampling_rate: float,
    replaced: bool,
    num_rows: int,
    drawn_too: bool = False,
) -> Occurrences:
    """The rule of a client of ``num_rows`` nodes. The other arguments are settings of the method; mentions: M, ∞ for p = 1."""
    others = max(num_rows - 1, 0) if cap == "all" else min(rooted.reach(degree, hops), max(num_rows - 1, 0))
    reads = hops > 0 and mentions > 0 and others > 0
    rate = min(1.0, mentions / others) if reads else 0.0
    return Occurrences(others if reads else 0, rate, sampling_rate, replaced, num_rows, drawn_too)


@lru_cache(maxsize=256)  # the same for every seed, and for clients of one size
def noise_multiplier(of: Occurrences, steps: int, epsilon: float, delta: float) -> tuple[float, int]:
    """(least σ / clip with which ``steps`` steps cost at most ε; the number of the price in ``Occurrences.events``)."""
    ways = range(len(of.events(1.0)))
    found = [calibrate.noise_multiplier_of(lambda m, i=i: Repeated(of.events(m)[i], steps), epsilon, delta) for i in ways]  # type: ignore[misc]
    best = min(ways, key=lambda i: found[i])
    return found[best], best
