"""What is promised for a run of ``local_dp``: the unit, who must not learn it, on which assumptions; and what to add."""

import numpy as np

from fedgraph.methods.base import PublicFacts, setting_assumptions
from fedgraph.methods.local_dp.params import Params
from fedgraph.privacy.units import Assumption, Protection, Relation


def protection(params: Params, facts: PublicFacts, promised_degree: int | None, whole: bool) -> Protection:
    relation = Relation.GRAPH_REPLACE if whole else Relation.NODE_REPLACE
    assumed = [Assumption.MODEL_GIVEN] if params.training == "fedavg" else []
    assumed += [Assumption.UNTUNED, *setting_assumptions(facts, relation)]
    if facts.sizes.graphs:
        assumed.append(Assumption.SIZES_PUBLIC)
    if params.protects and params.updates == "sum":
        assumed.append(Assumption.UPDATES_SUMMED)
    if facts.public.graph is not None and (params.training == "public" or params.projection is not None):
        assumed.append(Assumption.PUBLIC_NODES)
    if params.training == "public":
        assumed.append(Assumption.PUBLIC_LABELS)
    if promised_degree is not None:
        assumed.append(Assumption.PROMISED_DEGREE)
    return Protection(relation, facts.viewer, tuple(dict.fromkeys(assumed)), promised_degree)


def notes(params: Params, facts: PublicFacts, whole: bool) -> tuple[str, ...]:
    """Sentences for the report."""
    found = []
    if whole and facts.membership.holdings is not None:
        most = int(np.asarray(facts.membership.holdings.sum(axis=0)).max(initial=0))
        found.append(
            f"The unit is all that one client holds. A node may be held by up to {most} clients: the stated ε covers its copy "
            "at each of them, and its losses at all of them together add up."
        )
    if params.protects and facts.sizes.graphs:
        found.append(
            "The updates protect everything that a client holds at once, so each of its graphs too."
            if params.training == "dp_fedavg"
            else "Gradients are clipped graph by graph: the updates protect each graph, not all of a client at once."
        )
    return tuple(found)
