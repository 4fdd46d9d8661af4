"""Scripts and settings of single papers on graphs with privacy."""

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.options import Options
from fedgraph.pricing.readings import PRICE_TO_RECIPIENT, PRICE_TO_WORLD, PublishedReading, Reading, ReadingRow, row_in_clear
from fedgraph.privacy import events
from fedgraph.privacy.accounting.accountant import AccountantEpsilon
from fedgraph.privacy.claims import dpar, gcon, sage
from fedgraph.privacy.events import Composed, FixedSizeGaussian, Gaussian, Repeated, SampledOnce

_PROMISED = "replace, promised degree"


def read_blink_paper(document: PricedDocument) -> Reading:
    """Blink (Zhu, Tan & Xiao, CCS 2023): ``python run_blink.py hard cora gcn --eps 4`` or {variant, dataset, model, eps}.

    Every node sends its degree with Laplace noise (share δ of ε) and its list of neighbours by randomised response (the rest):
    pure ε for one bit of one node's list. An undirected edge stands in the lists of both its ends, which both send: 2ε.
    """
    options, words, variants = Options(document), document.bare_words, ("hard", "soft", "hybrid")
    variant = words[0] if words else options.choice("variant", variants)
    if variant not in variants:
        raise PricingError(f"{document.path}:1: variant: found {variant!r}; allowed: {', '.join(variants)}")
    epsilon = options.need("eps", above=True)
    options.finish()
    spent = epsilon / document.louder
    both, one = "both ends of the edge send it: ε each", "degree and bits of one list add up to ε"
    rows = (
        ReadingRow("edge", "edge-undirected", PRICE_TO_WORLD, costs.cost_of_pure(2 * spent), 1, 0.0, both),
        ReadingRow("edge", "one bit of a list", PRICE_TO_WORLD, costs.cost_of_pure(spent), 1, 0.0, one),
    )
    searched = ("the grid search, which is not counted",) if document.data.get("grid_search") else ()
    unprotected = ("features and labels", "a whole node: its list has as many bits as there are nodes", *searched)
    claim = PublishedReading(epsilon, 0.0, "total", f"eps = {epsilon:g}, link-level local privacy")
    return Reading(rows, (claim,), unprotected, order=(document.words["order"],), settings={"eps": spent})


def read_lpgnn_paper(document: PricedDocument) -> Reading:
    """LPGNN (Sajadmanesh & Gatica-Perez, CCS 2021): ``python main.py -m mbm -ex 3 -ey 1 …`` or its saved namespace.

    Every node perturbs its own features (budget x_eps) and its label (y_eps, k-ary randomised response) once: pure ε = x_eps +
    y_eps for features and label together, edges public. mbm: m bits at x_eps/m. 1bm: all bits. lpm: Laplace. agm: analytic
    Gaussian at δ = 1e-10. An infinite budget (the default) sends in clear.
    """
    options, louder, relation = Options(document), document.louder, "replace, edges public"
    x = options.number("x_eps", options.number("ex", math.inf))
    y = options.number("y_eps", options.number("ey", math.inf))
    name = options.choice("mechanism" if "mechanism" in document.data else "m", ("mbm", "1bm", "lpm", "agm", "mpm"), "mbm")
    repeats = options.count("repeats", options.count("r", 1))
    options.finish()
    if x is None or y is None:
        raise options.error("x_eps", "budgets are numbers, or inf")
    delta, settings = 1e-10 if name == "agm" and math.isfinite(x) else 0.0, None
    if math.isinf(x + y):
        what = " and ".join(w for w, e in (("features", x), ("labels", y)) if math.isinf(e))
        row = row_in_clear("node", relation, PRICE_TO_WORLD, f"{what} are sent in clear (budget inf)")
    else:
        settings = {"x_eps": x / louder, "y_eps": y / louder}
        features = events.ApproxDP(x / louder, delta) if delta else events.PureDP(x / louder)
        both = costs.cost_of_events(Composed((features, events.RandomizedResponse(y / louder, 2))))
        why = f"features by {name} at ε = {x / louder:g}, the label by randomised response at {y / louder:g}; they add up"
        why += f"; {repeats} repetitions perturb the same data afresh" if repeats > 1 else ""
        row = ReadingRow("node", relation, PRICE_TO_WORLD, both, repeats, delta * repeats, why)
    claim = PublishedReading(x + y if math.isfinite(x + y) else None, delta, "total", f"x_eps = {x:g} and y_eps = {y:g}")
    order = (document.words["order"],)
    return Reading((row,), (claim,), ("edges",), order=order, settings=settings, no_fix="set finite budgets first")


def read_daigavane_paper(document: PricedDocument) -> Reading:
    """Daigavane et al. (arXiv 2111.15521), JAX: a configuration ``config.name = value`` such as configs/dpgcn.py, or YAML.

    noise std = training_noise_multiplier·2k·clip, clip the root of the sum of squared clips of all tensors (as it must be),
    k = K + 1 (one message-passing step) or K² + K + 1 subgraphs that a node enters, K = max_degree; δ = 1/(10·N). Batches are
    accounted as drawn without replacement, and drawn with replacement. Clip thresholds are percentiles of private gradients,
    which is not counted; that a node enters only k subgraphs is a promise on degrees: the sampler's coins depend on others.
    """
    options = Options(document, document.configured)
    multiplier = options.need("training_noise_multiplier") * document.louder
    steps, degree = options.count("num_training_steps", 3000, 0), options.count("max_degree", 5)
    hops, batch = options.count("num_message_passing_steps", 1, 0), options.count("batch_size", 10000)
    options.finish()
    if hops not in (1, 2):
        raise options.error("num_message_passing_steps", f"num_message_passing_steps: found {hops}; allowed: 1, 2")
    touched, nodes = sage.claimed_sage_subgraphs(degree, hops), int(document.ask("training nodes"))
    at, size, sigma = 1 / (10 * nodes), min(batch, nodes), 2 * touched * multiplier  # sigma: in units of the clip
    bounded = costs.cost_of_events(FixedSizeGaussian(sigma, size, nodes, min(touched, nodes), replaced=True))
    why = f"std = {sigma:g}·clip, k = {touched} subgraphs, if no node has more than {degree}"
    reason = document.words["any degree"]

    def again(rounds: int, delta: float) -> AccountantEpsilon:
        epsilon = sage.claimed_sage_epsilon(sigma, size, nodes, touched, steps, at, True)
        return AccountantEpsilon(epsilon, at, "Rényi", "batches with replacement: Bin(B, k/N)")

    rows = (
        ReadingRow("node", _PROMISED, PRICE_TO_RECIPIENT, again, 1, at, f"{why}, batches with replacement"),
        ReadingRow("node", _PROMISED, PRICE_TO_RECIPIENT, bounded, steps, at, f"{why}, batches without replacement"),
        ReadingRow("node", "replace, any degree", PRICE_TO_RECIPIENT, costs.cost_of_unprotected(reason), 1, at, reason),
    )
    claim = PublishedReading(None, None, "total", "its accountant prints ε at run time, for batches without replacement")
    unprotected = ("clip thresholds, which are percentiles of private gradients", "what the best checkpoint was chosen by")
    settings = {"training_noise_multiplier": multiplier}
    return Reading(rows, (claim,), unprotected, order=(document.words["order"],), settings=settings)


def read_dpar_paper(document: PricedDocument) -> Reading:
    """DPAR (Zhang et al., WWW 2024), as its paper's settings in YAML or JSON: ``{system: dpar, epsilon, delta, …}``.

        epsilon, delta        the claimed total            sampled        q', the share of nodes sampled once (0.09)
        sources, top          M vectors, top K (70, 2)     steps, batch, rows     T, B, N' of its DP-SGD (800, 60, 210)

    Published: q'·(ε_pr + ε_sgd), each half. Noise is found as the authors do (``privacy.claims.dpar``). Proven: the same noise
    with amplification ln(1 + q'(e^ε − 1)), vectors that differ by √2·C1, batches that are fixed (cached) as in the code, and a
    node that enters B' rows, which the file does not say. The lower bound: own row alone, fixed batches, every step seen.
    """
    options, louder = Options(document), document.louder
    options.choice("mechanism", ("gm",), "gm")
    epsilon, delta = options.need("epsilon", above=True), options.delta("delta", dpar.DELTA) or dpar.DELTA
    sampled = options.positive("sampled", dpar.SAMPLED)
    defaults = (("sources", dpar.SOURCES), ("steps", dpar.STEPS), ("batch", dpar.BATCH), ("rows", dpar.ROWS))
    sources, steps, batch, length = (options.count(name, default) for name, default in defaults)
    options.finish()
    if sampled > 1 or batch > length:
        raise options.error("sampled", f"sampled = {sampled:g} and batch / rows = {batch}/{length}: both are shares ≤ 1")
    half, half_delta = epsilon / sampled / 2, delta / sampled / 2
    sigma = dpar.claimed_dpar_sgd_multiplier(half, batch / length, steps, half_delta) * louder
    vectors = dpar.claimed_dpar_gm_multiplier(half, half_delta, sources) * louder
    visits, entered = math.ceil(steps / math.ceil(length / batch)), document.ask("rows that a node enters")
    shown = Repeated(Gaussian(vectors / math.sqrt(2)), sources)
    everything = SampledOnce(Composed((Repeated(Gaussian(sigma / (2 * entered)), visits), shown)), sampled)
    own = SampledOnce(Composed((Repeated(Gaussian(sigma), visits),)), sampled)
    coded = f"as coded: {visits} visits of a fixed batch, B' = {entered:g}, Δ = 2·B'·clip; {sources} vectors with √2·C1; "
    lower = f"own row alone over {visits} visits of a fixed batch, worst data, every step seen: no proof can show less"
    rows = (
        ReadingRow("node", "replace", PRICE_TO_RECIPIENT, costs.cost_of_events(everything), 1, delta, f"{coded}sampled once"),
        ReadingRow("node", "zero-out", PRICE_TO_RECIPIENT, costs.cost_of_events(own), 1, delta, lower, "lower bound"),
    )
    claim = PublishedReading(epsilon, delta, "total", f"q'·(ε_pr + ε_sgd) with q' = {sampled:g}")
    more, words = ("the sample, against anyone who knows who was sampled",), document.words
    return Reading(rows, (claim,), more, order=(words["order"],), no_fix=words["no fix"])


def read_gcon_paper(document: PricedDocument) -> Reading:
    """GCON-style objective perturbation (edge level), as settings in YAML or JSON: ``{system: gcon, epsilon, delta, …}``.

        restart, steps, cap        a, the m_i of each concatenated power, p ≤ ½           share       ω
        regulariser                Λ                 classes, features, labelled          c, d, n₁
        loss                       soft-margin or pseudo-huber

    The noise (β) follows from ε by the paper's constants, whose proof we derived again (``privacy.claims.gcon``): (ε, δ) for
    one undirected edge, features and labels public, for the **exact** minimiser. An approximate one is another output: its
    distance has to be noised and charged, and the file says nothing of the gradient it stops at.
    """
    options = Options(document)
    epsilon, delta = options.need("epsilon", above=True), options.delta("delta")
    if not delta:
        raise options.error("delta", "missing option 'delta'; it is needed to price this file")
    defaults = (("restart", 0.4), ("cap", 0.5), ("share", 0.9), ("width", 0.1))
    restart, cap, share, width = (options.positive(name, default) for name, default in defaults)
    regulariser = options.need("regulariser", above=True)
    classes, features, labelled = (int(options.need(n, 1)) for n in ("classes", "features", "labelled"))
    loss, listed = options.choice("loss", ("soft-margin", "pseudo-huber"), "soft-margin"), options.raw("steps")
    powers = [float(s) for s in listed if isinstance(s, (int, float))] if isinstance(listed, list) else [float("inf")]
    options.finish()
    bounds = gcon.gcon_soft_margin(classes) if loss == "soft-margin" else gcon.gcon_pseudo_huber(classes, width)
    moved = gcon.claimed_gcon_psi(powers, restart, cap)
    given = gcon.Situation(epsilon, delta, share, bounds, moved, classes, features, labelled, per_end=False)
    made = gcon.gcon_perturbation(given, regulariser)
    exact = document.ask("solved exactly (1) or not (0)") == 1
    why = f"noise β = {made.beta:.4g}, Ψ = {moved:.4g}: the paper's constants, which hold for the exact minimiser"
    spent, reason = epsilon / document.louder, "an approximate minimiser without its own noise"
    cost = costs.cost_of_approximate(spent, delta) if exact else costs.cost_of_unprotected(reason)
    unprotected = ("features and labels, which are public here", "tuning; a node's own edges, against that node")
    row, claim = ReadingRow("edge", "edge-undirected", PRICE_TO_RECIPIENT, cost, 1, delta, why), "objective perturbation"
    return Reading((row,), (PublishedReading(epsilon, delta, "total", claim),), unprotected, order=(document.words["order"],),
                   settings={"epsilon": spent})  # fmt: skip


def read_pnpignns_paper(document: PricedDocument) -> Reading:
    """PNPiGNNs / HeterPoisson (Xiang, Wang & Wang, IEEE S&P 2024): ``python main.py --expected_batchsize … --priv_epsilon …``.

    Clipped gradients of sampled subgraphs get symmetric multivariate Laplace noise, std·√W·N(0, I) with one W ~ Exp(1) per
    step; std comes from a Rényi bound over orders up to 10 at δ = 1e-5 (their Theorem 2), computed in one dimension.

    Nothing is proven here beyond that: in two or more dimensions this noise has an unbounded density at its centre, so that
    Rényi divergences between shifted copies are infinite from order d/(d − 2) on, and a bound computed on a line does not carry
    over by itself. We hold no proof for it, and give ∞; another reading of the theorem may close this.
    """
    options = Options(document)
    epsilon = options.need("priv_epsilon", above=True)
    for name in ("expected_batchsize", "epoch", "K", "num_neighbors"):
        options.count(name, 1, 0)
    options.finish()
    reason = "no proof is held here for multivariate Laplace noise in many dimensions (see the reader's text)"
    row = row_in_clear("node", "replace", PRICE_TO_RECIPIENT, reason, 1, 1e-5)
    claim = PublishedReading(epsilon, 1e-5, "total", f"--priv_epsilon {epsilon:g} by their Theorem 2")
    open_ = ("the reduced features, trained with DP-SGD of their own",)
    return Reading((row,), (claim,), open_, no_fix=document.words["no fix"])
