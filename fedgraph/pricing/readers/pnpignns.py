"""PNPiGNNs / HeterPoisson (Xiang, Wang & Wang, IEEE S&P 2024): ``python main.py --expected_batchsize … --priv_epsilon …``.

Clipped gradients of sampled subgraphs get symmetric multivariate Laplace noise, std·√W·N(0, I) with one W ~ Exp(1) per step;
std comes from a Rényi bound over orders up to 10 at δ = 1e-5 (their Theorem 2), computed in one dimension.

Nothing is proven here beyond that: in two or more dimensions this noise has an unbounded density at its centre, so that Rényi
divergences between shifted copies are infinite from order d/(d − 2) on, and a bound computed on a line does not carry over by
itself. We hold no proof for it, and give ∞; another reading of the theorem may close this.
"""

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options


def read(document: Document) -> Reading:
    options = Options(document, system="pnpignns")
    epsilon = options.need("priv_epsilon", above=True)
    for name in ("expected_batchsize", "epoch", "K", "num_neighbors"):
        options.whole(name, 1, 0)
    options.finish()
    reason = "no proof is held here for multivariate Laplace noise in many dimensions (see the reader's text)"
    row = Row("node", "replace", RECIPIENT, costs.unprotected(reason), 1, 1e-5, reason)
    claim = Published(epsilon, 1e-5, "total", f"--priv_epsilon {epsilon:g} by their Theorem 2")
    none = "the price is open here at any --priv_epsilon; Gaussian noise in its place could be priced"
    return Reading((row,), (claim,), ("the reduced features, trained with DP-SGD of their own",), no_fix=none)
