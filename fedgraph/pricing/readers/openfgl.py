"""OpenFGL: a command line or namespace with ``dp_mech`` gaussian or laplace.

Code: gradients of nodes clipped to C, averaged over n; after local training every tensor gets noise for sensitivity 2·lr·C/n at
ε/(rounds·fraction) and δ likewise. What is proven: with one epoch of plain SGD a node that enters the loss of k nodes moves an
upload by at most 2·lr·C·k/n (all tensors together). With momentum, Adam (the default) or several epochs later gradients differ
too, and 2·lr·C/n bounds nothing. A message of one round moves by k times what the code counts; the degree is not in the code.
"""

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import SERVER, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options


def read(document: Document) -> Reading:
    options = Options(document)
    mechanism = options.choice("dp_mech", ("gaussian", "laplace", "no_dp"))
    rounds, fraction = options.whole("num_rounds", 100, 0) or 0, options.number("client_frac", 1.0, above=True) or 1.0
    optimiser, epochs = str(options.raw("optim") or "adam"), options.whole("num_epochs", 3, 0)
    epsilon, delta = options.number("dp_eps", None, above=True), options.delta("dp_delta")
    options.without_price(["grad_clip", "lr"])
    rest, claim = tuple(options.rest), (Published(epsilon, delta, "total", "dp_eps over all rounds"),)
    if mechanism == "no_dp" or optimiser != "sgd" or epochs != 1:
        reason = f"optim = {optimiser}, num_epochs = {epochs}: later steps differ in every gradient, so 2·lr·C/n bounds nothing"
        reason = "dp_mech no_dp: updates are sent in clear" if mechanism == "no_dp" else reason
        none = "set optim = sgd and num_epochs = 1 first, and a bound on degrees"
        return costs.in_clear("node", SERVER, reason, none, rounds, "replace", published=claim, not_priced=rest,
                              unprotected=("every upload",))  # fmt: skip
    if epsilon is None or (mechanism == "gaussian" and not delta):
        message = "missing options dp_eps and dp_delta; OpenFGL reads them without declaring them, and stops"
        raise options.error("dp_eps", message)
    times = rounds * fraction
    each, each_delta = epsilon / times, (delta or 0.0) / times
    question = "How many nodes' gradients can one node enter: 1 + its degree for one layer, its neighbourhood for more?"
    reach = document.answers.ask("nodes that a node reaches", question, (1000.0, 100.0, 10.0, 1.0))
    why = f"a node enters the clipped gradients of {reach:g} nodes; ε/{times:g} and δ/{times:g} are spent per round by the code"
    if mechanism == "gaussian":
        cost = costs.gaussian(costs.classic_std(1.0, each, each_delta) * document.louder / reach)
    else:
        cost = costs.pure(each * reach / document.louder)
    rows = (Row("node", "replace", SERVER, cost, math.ceil(times), delta or 0.0, why),)
    order = ("Gradients clipped per node, averaged, one step, noise on the weights; rounds compose.",)
    more = ("edges between nodes beyond that reach", "sizes and metrics")
    return Reading(rows, claim, more, rest, order, {"dp_eps": epsilon / document.louder})
