"""OpenFGL: a command line or namespace with ``dp_mech`` gaussian or laplace.

Code: gradients of nodes clipped to C, averaged over n; after local training every tensor gets noise for sensitivity 2·lr·C/n at
ε/(rounds·fraction) and δ likewise. What is proven: with one epoch of plain SGD a node that enters the loss of k nodes moves an
upload by at most 2·lr·C·k/n (all tensors together). With momentum, Adam (the default) or several epochs later gradients differ
too, and 2·lr·C/n bounds nothing. A message of one round moves by k times what the code counts; the degree is not in the code.
"""

from __future__ import annotations

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import SERVER, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options

SYSTEM = "OpenFGL"
VERSION = "openfgl 0.0.1, November 2024"
SOURCE = "xkLi-Allen/OpenFGL at 5483768 (2024-11-27): openfgl/config.py, openfgl/utils/privacy_utils.py; read 2026-11-21"
SAID = (
    "The appendix of its paper (arXiv 2408.16288) states node-level Rényi privacy with Δ = 2(d_max + 1)C for one layer "
    "and reports "
    "significant degradation. Its options dp_eps and dp_delta are read but not declared in config.py."
)
READ = ("dp_mech", "dp_eps", "dp_delta", "num_rounds", "client_frac", "grad_clip", "lr", "optim", "num_epochs")


def recognises(document: Document) -> bool:
    return document.kind in ("command", "namespace", "json", "yaml") and "dp_mech" in document.data


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    mechanism = options.choice("dp_mech", ("gaussian", "laplace", "no_dp"))
    rounds, fraction = options.whole("num_rounds", 100, 0) or 0, options.number("client_frac", 1.0, above=True) or 1.0
    optimiser, epochs = str(options.raw("optim") or "adam"), options.whole("num_epochs", 3, 0)
    epsilon, delta = options.number("dp_eps", None, above=True), options.delta("dp_delta")
    options.without_price(["grad_clip", "lr"])
    rest = tuple(options.rest)
    stuck = optimiser != "sgd" or epochs != 1
    if mechanism == "no_dp" or stuck:
        reason = "dp_mech no_dp: updates are sent in clear" if mechanism == "no_dp" else (
            f"optim = {optimiser}, num_epochs = {epochs}: later steps differ in every gradient, so 2·lr·C/n bounds nothing"
        )  # fmt: skip
        return _clear(reason, rounds, epsilon, delta, rest)
    if epsilon is None or (mechanism == "gaussian" and not delta):
        raise options.error(
            "dp_eps", "missing options dp_eps and dp_delta; OpenFGL reads them without declaring them, and stops"
        )
    times = rounds * fraction
    each, each_delta = epsilon / times, (delta or 0.0) / times

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        reach, at = facts["nodes that a node reaches"], delta or 0.0
        if mechanism == "gaussian":
            cost = costs.gaussian(math.sqrt(2 * math.log(1.25 / each_delta)) / each * factor / reach)
        else:
            cost = costs.pure(each * reach / factor)
        why = (
            f"a node enters the clipped gradients of {reach:g} nodes; ε/{times:g} and δ/{times:g} are spent per round by "
            "the code"
        )
        return (Row("node", "replace", SERVER, cost, math.ceil(times), at, why),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"dp_eps": epsilon / factor}

    question = "How many nodes' gradients can one node enter: 1 + its degree for one layer, its neighbourhood for more?"
    asked = (Unknown("nodes that a node reaches", question, (1000.0, 100.0, 10.0, 1.0)),)
    claim = (Published(epsilon, delta, "total", "dp_eps over all rounds"),)
    return Reading(rows, claim, asked, ("edges between nodes beyond that reach", "sizes and metrics"), rest,
                   (("Gradients clipped per node, averaged, one "
"step, noise on the weights; rounds compose."),), settings)  # fmt: skip


def _clear(reason: str, rounds: int, epsilon: float | None, delta: float | None, rest: tuple[str, ...]) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("node", "replace", SERVER, costs.unprotected(reason), max(rounds, 1), 0.0, reason),)

    claim = (Published(epsilon, delta, "total", "dp_eps over all rounds"),)
    return Reading(
        rows, claim, (), ("every upload",), rest, no_fix="set optim = sgd and num_epochs = 1 first, and a bound on degrees"
    )
