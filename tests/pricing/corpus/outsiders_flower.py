# ruff: noqa: E501  (one configuration or one edit a line)
"""Configurations that are wrong in one place each, as somebody who wants a low price would write them: Flower."""

from __future__ import annotations

from tests.pricing.corpus import truths
from tests.pricing.corpus.cases import CENTRAL, CLIENT, EQUAL, MEAN, PLAIN_CLIENT, SERVER, Case, Edits, app, changed, edited
from tests.pricing.corpus.truths import INF

C: list[Case] = []


def ap(name: str, truth: float, given: dict[str, float] | None = None, client: str = CLIENT, server: str = SERVER) -> None:
    C.append(app(f"outside flower {name}", 1, truth, client, server, exact=False, given=given))


leak = "def leak(message, context, call_next):\n    reply = call_next(message, context)\n    reply.content['raw'] = context.state['raw']\n    return reply\n"
ap("mod outside noise", INF, client=changed(CLIENT, "mods = [dp]", leak + "mods = [leak, dp]"))
clipc = (
    CLIENT.replace("LocalDpMod", "fixedclipping_mod")
    .replace("dp = fixedclipping_mod(1.0, 1.0, 2.0, 1e-5)\n", "")
    .replace("[dp]", "[fixedclipping_mod]")
)
scale = leak.replace("reply.content['raw'] = context.state['raw']", "reply.content['arrays'] = grow(reply)")
ap(
    "mod outside clip",
    INF,
    given=EQUAL,
    client=changed(clipc, "mods = [", scale + "mods = [leak, "),
    server=CENTRAL.replace("ServerSideFixed", "ClientSideFixed"),
)
ap(
    "rounds twice",
    truths.local(1.0, 1.0, 2.0, 1e-5, 8),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    strategy.start(grid=grid, num_rounds=4)\n    strategy.start(grid=grid, num_rounds=4)\n",
    ),
)
ap(
    "rounds loop",
    truths.local(1.0, 1.0, 2.0, 1e-5, 20),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    for i in range(5):\n        strategy.start(grid=grid, num_rounds=4)\n",
    ),
)
ap(
    "own grid loop",
    truths.local(1.0, 1.0, 2.0, 1e-5, 400),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    for i in range(400):\n        grid.send_and_receive(messages)\n",
    ),
)
ap(
    "grid beside",
    truths.local(1.0, 1.0, 2.0, 1e-5, 404),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    strategy.start(grid=grid, num_rounds=4)\n    for i in range(400):\n        grid.send_and_receive(messages)\n",
    ),
)
ap(
    "noise by subclass",
    INF,
    client=changed(
        CLIENT,
        "dp = LocalDpMod(",
        "class Quiet(LocalDpMod):\n    def __call__(self, message, context, call_next):\n        return call_next(message, context)\ndp = Quiet(",
    ),
)
ap("sensitivity", truths.local(1.0, 0.1, 2.0, 1e-5, 4), client=changed(CLIENT, "LocalDpMod(1.0, 1.0,", "LocalDpMod(1.0, 0.1,"))
ap(
    "clip raised",
    truths.local(10.0, 1.0, 2.0, 1e-5, 4),
    client=changed(CLIENT, "LocalDpMod(1.0, 1.0,", "LocalDpMod(10.0, 1.0,"),
)
ap(
    "train replaced",
    INF,
    client=changed(
        CLIENT, "@app.evaluate()", "@app.train('more')\ndef more(message, context):\n    return message\n@app.evaluate()"
    )
    .replace("ClientApp(mods=mods)", "ClientApp()")
    .replace("@app.train()", "@app.train(mods=mods)"),
)
ap(
    "fraction",
    truths.gaussian(4 / 1.5, 1e-5),
    given={"delta": 1e-5},
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "fraction_train=1.0", "fraction_train=0.1"),
)
ap(
    "accepts failures",
    truths.gaussian(2 * 20 / 1.5, 1e-5),
    given={"delta": 1e-5},
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "min_train_nodes=2", "min_train_nodes=2, weighted_by_key='w'"),
)
ap(
    "sampled fewer",
    truths.gaussian(2 * 2 / 1.5, 1e-5),
    given={"delta": 1e-5},
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "num_sampled_clients=20", "num_sampled_clients=40"),
)
ap(
    "patched",
    INF,
    given=EQUAL,
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "    strategy.start", "    strategy.aggregate_train = inner.aggregate_train\n    strategy.start"),
)
ap(
    "own wrapped",
    INF,
    given=EQUAL,
    client=PLAIN_CLIENT,
    server=changed(
        CENTRAL,
        "app = ServerApp()",
        "class Loud(Wrapped):\n    def aggregate_train(self, r, replies):\n        return self.strategy.aggregate_train(r, replies)\napp = ServerApp()",
    ).replace("strategy = Wrapped(", "strategy = Loud("),
)
OLD = """import flwr as fl
from flwr.server.strategy import FedAvg, DifferentialPrivacyServerSideFixedClipping
class C(fl.client.NumPyClient):
    def fit(self, parameters, config):
        return parameters, 1, {}
strategy = FedAvg(fraction_fit=1.0, min_fit_clients=20)
private = DifferentialPrivacyServerSideFixedClipping(strategy, 1.5, 1.0, 20)
fl.simulation.start_simulation(client_fn=lambda c: C(), num_clients=20, config=fl.server.ServerConfig(num_rounds=4), strategy=private)
"""


def old(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = OLD
) -> None:
    C.append(
        Case(f"outside old flower {name}", 2, {"sim.py": edited(base, edits)}, truth, exact, EQUAL if given is None else given)
    )


old("right", [], MEAN, exact=True)
old("raw strategy", [("strategy=private", "strategy=strategy")], INF)
old("rounds", [("num_rounds=4", "num_rounds=16")], truths.gaussian(4 / 1.5, 1e-5))
old(
    "server keyword twice",
    [
        (
            "fl.simulation.start",
            "fl.server.start_server(config=fl.server.ServerConfig(num_rounds=12), strategy=private)\nfl.simulation.start",
        )
    ],
    truths.gaussian(4 / 1.5, 1e-5),
)
old(
    "config later",
    [("fl.simulation.start", "private.noise_multiplier = 0.5\nfl.simulation.start")],
    truths.gaussian(2 / 0.5, 1e-5),
)
old(
    "shared noise",
    [
        (
            "private = Diff",
            "class S(FedAvg):\n    def aggregate_fit(self, r, results, failures):\n        self.last = results\n        return super().aggregate_fit(r, results, failures)\nstrategy = S()\nprivate = Diff",
        )
    ],
    INF,
)
