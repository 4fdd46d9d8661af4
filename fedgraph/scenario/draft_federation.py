"""The commented scenario of one's own federation: is it worth joining, for whom, and what do the clients see of each other?"""

import math
from collections.abc import Sequence

from fedgraph.privacy.trust import Trust
from fedgraph.scenario import draft_rows
from fedgraph.scenario.wanted import Wanted

LEFT_OUT = 3  # clients that are left out in turn, from the smallest to the largest


def parts(wanted: Wanted) -> tuple[str, str]:
    """(the task as YAML, indented for ``tasks:``; the lines below ``quick:``)."""
    written = _task(wanted)
    return written, _quick(wanted, written)


def _task(wanted: Wanted) -> str:
    data, unit, trust = wanted.data, wanted.unit, wanted.trust[: wanted.size.trust]
    crossing, num_clients, edge = data.crossing, data.clients, unit == "edge"
    joined = [t for t in trust if t is not Trust.CURATOR]
    choices = ["alone", *(["federated"] if joined else []), *(["curator"] if Trust.CURATOR in trust else [])]
    choices += ["personalised"] if joined else []
    enough = num_clients > (2 if Trust.SUMS in joined else 1)  # a sum hides nobody where one client is left
    choices += ["left-out"] if joined and not edge and enough else []
    trusted = _joined(trust)
    budgets = ", ".join("inf" if math.isinf(e) else f"{e:g}" for e in wanted.epsilons)
    lines = [
        "  - task: participation",
        f"    label: {unit}-level",
        "    partition: {partition: natural}   # each client of the folder is a client",
        "    protocol: transductive       # features and training labels are public, edges are private" if edge
        else "    protocol: asking             # all nodes are private; each client asks for its own test nodes",
        f"    participations: [{', '.join(choices)}]   # the choices that are compared, for every client",
        *(["    left_out: SOME                  # clients left out in turn"] if "left-out" in choices else []),
        f"    trust: [{', '.join(trusted)}]       # sums: all that the server sees; own-client: it sees each client's messages",
        *(["    split: public                # the masks that the clients brought"] if data.split else []),
        *_crossing(edge, crossing),
        f"    epsilons: [{budgets}]       # privacy budgets ε (no unit); inf: no privacy",
        f"    {draft_rows.delta_line(data.people)}",
        "    methods:",
        draft_rows.as_yaml(
            [(draft_rows.entry_of(n, d, trusted[0], 0), d.comment) for n, d in draft_rows.offered("federation", unit, crossing)]
        ),
    ]  # fmt: skip
    return "\n".join(lines).replace("SOME", str(min(LEFT_OUT, num_clients)))


def _quick(wanted: Wanted, task: str) -> str:
    """One seed, one budget and no privacy, one level of trust, one client left out, few steps. task: as it was written."""
    finite = [e for e in wanted.epsilons if math.isfinite(e)]
    budgets = [f"{max(finite):g}"] * bool(finite) + ["inf"] * (len(finite) < len(wanted.epsilons) or wanted.unit == "node")
    trusted = _joined(wanted.trust)[0]
    rows = enumerate(draft_rows.offered("federation", wanted.unit, wanted.data.crossing))
    lines = [
        "  seeds: 1",
        "  runtime.engine: serial",
        f"  tasks.0.epsilons: [{', '.join(budgets)}]",
        f"  tasks.0.trust: [{trusted}]",
        *(["  tasks.0.left_out: 1"] if "left_out:" in task else []),
        *(f"  tasks.0.methods.{place}.{key}: {fewer}" for place, (_, d) in rows for key, fewer in d.quick.items()),
    ]
    return "\n".join(lines)


def _joined(trust: Sequence[Trust]) -> list[str]:
    """The words of those levels of trust in which clients train together; sums where none was named."""
    return [t.value for t in trust if t is not Trust.CURATOR] or [Trust.SUMS.value]


def _crossing(edge: bool, crossing: int) -> list[str]:
    """What happens to edges between clients, where there are any."""
    if not crossing:
        return []
    if not edge:
        return [f"    # {crossing} edges between clients are not used: at node level a method reads edges inside a client"]
    return [f"    cut_edges: protected         # {crossing} edges between clients: used and protected at both; or: dropped"]
