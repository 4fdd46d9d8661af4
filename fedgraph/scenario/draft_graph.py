"""The task of one graph that is dealt to clients: which method, whom to trust, at what cost?"""

import math

from fedgraph.scenario import draft_rows
from fedgraph.scenario.wanted import PROTOCOLS, Wanted

TRUSTED = "curator: one party holds all; sums: a server sees sums of clients; own-client: it sees each client's message"


def parts(wanted: Wanted) -> tuple[str, str]:
    """(the task as YAML, indented for ``tasks:``; the lines below ``quick:``)."""
    trust = [t.value for t in wanted.trust[: wanted.size.trust]]
    budgets = ["inf" if math.isinf(e) else f"{e:g}" for e in wanted.epsilons]
    offered = draft_rows.offered("graph", wanted.unit, protocol=wanted.protocol)
    rows = [(n, d) for n, d in offered if wanted.size.spare or not d.spare]
    entries = [(draft_rows.entry_of(n, d, trust[0], wanted.size.cheaper), d.comment) for n, d in rows]
    split = "\n    split: public                # the masks that came with the data" if wanted.data.split else ""
    task = f"""\
  - task: node_classification
    label: {wanted.unit}-level
    protocol: {wanted.protocol}         # {PROTOCOLS[wanted.protocol]}
    trust: [{", ".join(trust)}]   # {TRUSTED}
    partition: {{partition: louvain, clients: {wanted.clients or 10}}}   # which client holds whom: or uniform, dirichlet{split}
    epsilons: [{", ".join(budgets)}]       # privacy budgets ε: the smaller, the more is protected; inf: nothing is
    {draft_rows.delta_line(wanted.data.people)}
    methods:
{draft_rows.as_yaml(entries)}"""
    least = [(draft_rows.entry_of(n, d, trust[0], len(d.cheaper)) | dict(d.quick), d.comment) for n, d in rows if not d.spare]
    finite = [e for e in wanted.epsilons if math.isfinite(e)]
    quick = f"""\
  seeds: 1
  runtime.engine: serial
  tasks.0.trust: [{trust[0]}]
  tasks.0.epsilons: [{f"{max(finite):g}" if finite else "inf"}]
  tasks.0.methods:
{draft_rows.as_yaml(least, 4)}"""
    return task, quick
