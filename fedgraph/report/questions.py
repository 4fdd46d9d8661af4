"""What is asked of the rows that can be compared with each other, in words."""

from collections.abc import Sequence

from fedgraph.report.scores import METRICS, Score, begin

CLASSIFY = {
    "": "to classify whole graphs",
    "inductive": "to classify nodes",
    "inductive-edges": "to classify nodes of a public graph, learnt where edges are private",
    "transductive": "to classify the unlabelled nodes of one graph",
    "asking": "to classify nodes that ask with their own features and edges",
}
UNIT_WORDS = {
    "edge": "Edge level: only who is linked to whom is private",
    "node": "Node level: one node with its features, label and edges is private",
    "client": "Client level: all that one client holds is private",
    "graph": "Graph level: all of the graph that one client holds is private",
}


def open_sentence(scores: Sequence[Score], here: Sequence[Score]) -> str:
    """How a sentence about ``here`` begins; empty where all ``scores`` answer one question."""
    if len({s.asked for s in scores}) == 1:
        return ""
    dataset, metric, protocol, split, public = here[0].asked
    alike = [s for s in scores if s.metric == metric]
    what = _task(metric, protocol)
    if protocol == "inductive" and len({s.asked[4] for s in alike}) > 1:
        what += describe_public(public)
    if split and len({s.asked[3] for s in alike if s.asked[3]}) > 1:
        what += f" of the {split} split"
    text = f"on {dataset}, {what}" if len({s.dataset for s in scores}) > 1 else what
    return f"{text[0].upper()}{text[1:]},"


def title(scores: Sequence[Score], here: Sequence[Score]) -> str:
    """The question of ``here`` as a heading: what is to be done, and where that is not plain, on which data."""
    asked = (open_sentence(scores, here) or f"{_task(*here[0].asked[1:3])},").removesuffix(",").removeprefix("To ")
    return begin(asked.removeprefix("to "))


def describe_public(public: str) -> str:
    """What is public, as the end of “to classify nodes”."""
    if public == "":
        return " of a public test graph"
    if public == "nothing":
        return " when nothing is public"
    if public.startswith("share "):
        return f" when {100 * float(public.removeprefix('share ')):g} % of the nodes are public and the asked ones are not"
    return f" when {public} is public and the asked nodes are not"


def explain_units(units: Sequence[str]) -> str:
    """What the units of the sentences mean, one after another."""
    said = [UNIT_WORDS[unit] for unit in units if unit in UNIT_WORDS]
    return ". ".join([*said, "A smaller ε protects more: ε = 0 gives nothing away about the unit, ε = ∞ promises nothing."])


def short_name(score: Score, here: Sequence[Score]) -> str:
    """What a sentence about ``here`` calls a row: the label in its scenario where no other row has it, else its whole name."""
    name = score.name if any(s.short == score.short and s.name != score.name for s in here) else score.short
    return f"“{name}”" if "," in name else name


def reads_nothing(score: Score, unit: str) -> bool:
    """Whether the row releases nothing computed from a unit: of its own unit, or of a smaller one that lies inside it."""
    if score.private:
        return False
    sizes = list(UNIT_WORDS)
    return unit == score.unit or (unit in sizes and score.unit in sizes and sizes.index(unit) < sizes.index(score.unit))


def _task(metric: str, protocol: str) -> str:
    if metric == "ari":
        return "to find the classes of whole graphs by clustering"
    if metric == "auc":
        return "to say which two nodes will be linked"
    if metric == "accuracy":
        return CLASSIFY.get(protocol, f"to classify with the {protocol} protocol")
    return f"by {METRICS[metric]}"
