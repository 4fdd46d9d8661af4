"""What is compared where nobody says more: the draft that ``fedgraph new --yes --no-probe`` writes, as a task.

``fedgraph.compare`` asks here, so that the same people give the same rows from Python and from the command line.
"""

from pathlib import Path
from typing import Any

import yaml

from fedgraph.privacy import Trust
from fedgraph.scenario import draft
from fedgraph.scenario.wanted import WANTED_TRUST, Wanted, WantedData
from fedgraph.types import Graph, GraphCollection

USUAL_BUDGETS = (1.0, 4.0, 8.0)


def node_task(graph: Graph, collection: GraphCollection | None = None, protocol: str = "auto") -> dict[str, Any]:
    """The task of a draft that gives nodes their classes.

    Args:
        graph: What is learned on.
        collection: Many small graphs, of which ``graph`` has a row each; None for one graph.
        protocol: ``transductive`` where only edges are private, ``inductive`` where the people who ask are public; else
            everybody is private.

    Returns:
        A task as a scenario writes it, with its methods, trust, budgets, δ, partition and split. It names no data set.
    """
    owners = collection is not None and collection.owner is not None
    data = WantedData(
        "own/object", None, "draft", "", split=bool(graph.masks), graph=graph, people=graph.num_nodes, collection=collection,
        owners=owners or graph.owner is not None,
    )  # fmt: skip
    unit, asked = "edge" if protocol == "transductive" else "node", "public" if protocol == "inductive" else "private"
    wanted = Wanted(data, unit, WANTED_TRUST, USUAL_BUDGETS, None, None, asked)
    task: dict[str, Any] = yaml.safe_load(draft.as_yaml(wanted, Path()))["tasks"][0]
    task.pop("datasets", None)
    if graph.owner is not None:
        task["partition"] = {"partition": "natural"}
    return task


def with_trust(task: dict[str, Any], trust: tuple[Trust, ...]) -> dict[str, Any]:
    """The task with other levels of trust. Rows that run at one level alone run at the first of these."""
    words = [level.value for level in trust]
    methods = [{**entry, "trust": words[:1]} if "trust" in entry else entry for entry in task["methods"]]
    return {**task, "trust": words, "methods": methods}
