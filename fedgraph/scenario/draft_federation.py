"""The commented scenario of one's own federation: is it worth joining, for whom, and what do the clients see of each other?"""

from __future__ import annotations

import math
from collections.abc import Sequence

LEFT_OUT = 3  # clients that are left out in turn, from the smallest to the largest

NODE = """\
      - {method: features, label: Features}               # each node's own row
      - {method: label_hop, label: neighbours' labels}    # and what its neighbours answered
      - {method: nonprivate, model: mlp, label: MLP without privacy, settings: [SUMS], rounds: 20}
      - {method: nonprivate, model: gcn, label: GCN without privacy, settings: [SUMS], rounds: 20}"""
EDGE = """\
      - {method: gap_edge, label: GAP-EDP, folds: 2}      # noisy sums over neighbours
      - {method: gap_edge, label: no edges, hops: 0, folds: 2, settings: [SUMS]}   # a private one has to be better than this"""
GCN = """\
      - {method: nonprivate, model: gcn, label: GCN without privacy, settings: [SUMS], rounds: 20}"""


def task(unit: str, trust: Sequence[str], epsilons: Sequence[float], num_clients: int, split: bool, crossing: int) -> str:
    """The task as YAML, indented for ``tasks:``.

    trust: some of ``curator``, ``sums``, ``nobody``. split: the clients brought masks. crossing: edges between clients.
    """
    edge = unit == "edge"
    joined = [t for t in trust if t != "curator"]
    choices = ["alone", *(["federated"] if joined else []), *(["curator"] if "curator" in trust else [])]
    choices += ["personalised"] if joined else []
    enough = num_clients > (2 if "sums" in joined else 1)  # a sum hides nobody where one client is left
    choices += ["left-out"] if joined and not edge and enough else []
    settings = _settings(trust)
    budgets = ", ".join("inf" if math.isinf(e) else f"{e:g}" for e in epsilons)
    lines = [
        "  - task: participation",
        f"    label: {unit}-level",
        "    partition: {partition: natural}   # each client of the folder is a client",
        "    protocol: transductive       # features and training labels are public, edges are private" if edge
        else "    protocol: asking             # all nodes are private; each client asks for its own test nodes",
        f"    participations: [{', '.join(choices)}]   # the choices that are compared, for every client",
        *(["    left_out: SOME                  # clients left out in turn"] if "left-out" in choices else []),
        f"    settings: [{', '.join(settings)}]       # secure: the server sees sums; local: it sees each client's messages",
        *(["    split: public                # the masks that the clients brought"] if split else []),
        *_crossing(edge, crossing),
        f"    epsilons: [{budgets}]       # privacy budgets ε (no unit); inf: no privacy",
        "    delta: 1/n_train             # δ of every guarantee; 1/n_train: one over all training nodes of the federation",
        "    methods:",
        (_edge_rows(crossing) if edge else NODE).replace("SUMS", settings[0]),
    ]  # fmt: skip
    return "\n".join(lines).replace("SOME", str(min(LEFT_OUT, num_clients)))


def quick(unit: str, trust: Sequence[str], epsilons: Sequence[float], task: str) -> str:
    """The lines below ``quick:``: one seed, one budget and no privacy, one level of trust, one client left out, few steps.

    task: as ``task`` wrote it.
    """
    finite = [e for e in epsilons if math.isfinite(e)]
    budgets = [f"{max(finite):g}"] * bool(finite) + ["inf"] * (len(finite) < len(epsilons) or unit == "node")
    settings = _settings(trust)[0]
    steps = {"node": ("steps: 40", "steps: 40", "rounds: 3", "rounds: 3"), "edge": ("epochs: 30", "epochs: 30", "rounds: 3")}
    lines = [
        "  seeds: 1",
        f"  tasks.0.epsilons: [{', '.join(budgets)}]",
        f"  tasks.0.settings: [{settings}]",
        *(["  tasks.0.left_out: 1"] if "left_out:" in task else []),
        *(f"  tasks.0.methods.{place}.{fewer}" for place, fewer in enumerate(steps[unit][: task.count("{method:")])),
    ]
    return "\n".join(lines)


def _edge_rows(crossing: int) -> str:
    """The methods at edge level. A plain GCN has no way to an edge's other client, so it stands where no edge has one."""
    return f"{EDGE}\n{GCN}" if not crossing else EDGE


def _settings(trust: Sequence[str]) -> list[str]:
    return [{"sums": "secure", "nobody": "local"}[t] for t in trust if t != "curator"] or ["secure"]


def _crossing(edge: bool, crossing: int) -> list[str]:
    """What happens to edges between clients, where there are any."""
    if not crossing:
        return []
    if not edge:
        return [f"    # {crossing} edges between clients are not used: at node level a method reads edges inside a client"]
    return [f"    cut_edges: protected         # {crossing} edges between clients: used and protected at both; or: dropped"]
