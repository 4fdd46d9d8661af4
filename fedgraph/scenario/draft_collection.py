"""The commented scenario of many small graphs: which graphs are of which kind, with whole graphs private."""

import math

from fedgraph.methods.base import Draft
from fedgraph.scenario import draft_rows
from fedgraph.scenario.draft_graph import TRUSTED
from fedgraph.scenario.wanted import PROTOCOLS, Wanted

COMPARED = (400, 300, 200, 100, 60)  # graphs that are compared pair by pair, from the dearest draft to the cheapest
PAIRWISE = ("compared", "clusters")  # tasks whose work grows with the pairs
FOLDS = 5
WHOLE = "-whole"  # the end of the label of the data set whose graphs are read whole


def offered(wanted: Wanted) -> list[tuple[str, Draft]]:
    """Rows of one graph that read no edge, since a row has none."""
    every = draft_rows.offered("graph", "node", protocol=wanted.protocol)
    return [(name, draft) for name, draft in every if draft.edgeless]


def cost_of(cheaper: int, people: int) -> float:
    """Of comparing all pairs of so many graphs, in units of the cheapest draft's."""
    return (min(COMPARED[cheaper], people) / min(COMPARED[-1], people)) ** 2


def parts(wanted: Wanted) -> tuple[str, str]:
    """(the tasks as YAML, indented for ``tasks:``; the lines below ``quick:``)."""
    data, size = wanted.data, wanted.size
    trust = [t.value for t in wanted.trust[: size.trust]]
    finite = [f"{e:g}" for e in wanted.epsilons if math.isfinite(e)]
    budgets = ", ".join(finite + ["inf"] * (len(finite) < len(wanted.epsilons)))
    rows = [(draft_rows.entry_of(n, d, trust[0], size.cheaper), d.comment) for n, d in offered(wanted)]
    dealt = "natural" if data.owners else f"uniform, clients: {wanted.clients or 10}"
    whole, folds = draft_rows.as_line(f"{wanted.title}{WHOLE}"), max(2, min(FOLDS, data.least_class))
    most = COMPARED[size.cheaper]
    sample = f"\n    max_graphs: {most}              # of {data.people:,}: all pairs are compared" if data.people > most else ""
    task = f"""\
  - task: node_classification    # each graph is one row: size, degrees, means of its columns; here a "node" is a whole graph
    label: rows
    datasets: [{draft_rows.as_line(wanted.title)}]
    protocol: {wanted.protocol}         # {PROTOCOLS[wanted.protocol]}
    trust: [{", ".join(trust)}]   # {TRUSTED}
    partition: {{partition: {dealt}}}
    epsilons: [{budgets}]       # privacy budgets ε of a whole graph: the smaller, the more is protected; inf: nothing is
    {draft_rows.delta_line(data.people)}
    methods:
{draft_rows.as_yaml(rows)}
  - task: graph_clustering       # nobody is trusted: each graph sends an encoded embedding; no label is known: which are alike?
    label: clusters
    datasets: [{whole}]
    epsilons: [{budgets}]{sample}
    methods:
      - {{method: local_dp, training: none, compare: [mean]}}"""
    if size.spare:
        task += f"""
  - task: graph_classification   # the same releases, and labels are known
    label: compared
    datasets: [{whole}]
    partition: {{partition: {dealt}}}
    epsilons: [{budgets}]
    folds: {folds}                     # seed s tests part s{sample}
    baselines: ["shortest-path kernel"]   # on raw data, for comparison
    methods:
      - {{method: local_dp, label: encoded, training: none}}"""
    least = [(draft_rows.entry_of(n, d, trust[0], len(d.cheaper)) | dict(d.quick), d.comment) for n, d in offered(wanted)]
    one = max(finite, key=float) if finite else "inf"
    others = range(1, 3 if size.spare else 2)
    fewer = [f"  tasks.{number}.max_graphs: {COMPARED[-1]}" for number in others if data.people > COMPARED[-1]]
    quick = f"""\
  seeds: 1
  runtime.engine: serial
  tasks.0.trust: [{trust[0]}]
{chr(10).join([f"  tasks.{number}.epsilons: [{one}]" for number in (0, *others)] + fewer)}
  tasks.0.methods:
{draft_rows.as_yaml(least, 4)}"""
    return task, quick
