"""The commented scenario of one's own federation: is it worth joining, for whom, and what do the clients see of each other?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedgraph.scenario import draft_rows

LEFT_OUT = 3  # clients that are left out in turn, from the smallest to the largest


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
        draft_rows.as_yaml(draft_rows.offered("federation", unit, crossing), settings[0]),
    ]  # fmt: skip
    return "\n".join(lines).replace("SOME", str(min(LEFT_OUT, num_clients)))


def quick(unit: str, trust: Sequence[str], epsilons: Sequence[float], task: str, crossing: int) -> str:
    """The lines below ``quick:``: one seed, one budget and no privacy, one level of trust, one client left out, few steps.

    task: as ``task`` wrote it.
    """
    finite = [e for e in epsilons if math.isfinite(e)]
    budgets = [f"{max(finite):g}"] * bool(finite) + ["inf"] * (len(finite) < len(epsilons) or unit == "node")
    settings = _settings(trust)[0]
    rows = enumerate(draft_rows.offered("federation", unit, crossing))
    lines = [
        "  seeds: 1",
        f"  tasks.0.epsilons: [{', '.join(budgets)}]",
        f"  tasks.0.settings: [{settings}]",
        *(["  tasks.0.left_out: 1"] if "left_out:" in task else []),
        *(f"  tasks.0.methods.{place}.{key}: {fewer}" for place, (_, d) in rows for key, fewer in d.quick.items()),
    ]
    return "\n".join(lines)


def _settings(trust: Sequence[str]) -> list[str]:
    return [{"sums": "secure", "nobody": "local"}[t] for t in trust if t != "curator"] or ["secure"]


def _crossing(edge: bool, crossing: int) -> list[str]:
    """What happens to edges between clients, where there are any."""
    if not crossing:
        return []
    if not edge:
        return [f"    # {crossing} edges between clients are not used: at node level a method reads edges inside a client"]
    return [f"    cut_edges: protected         # {crossing} edges between clients: used and protected at both; or: dropped"]
