"""Authors' training scripts: which method a command line or a saved namespace names, and what several of them share."""

from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.questions import DELTAS

SCRIPTS = ("command", "namespace", "json", "yaml")


def words(document: Document) -> list[str]:
    """The bare words of a command after its script, and the values of ``method`` and ``level`` of a namespace, in small
    letters."""
    if document.kind == "command":
        scripts = [i for i, word in enumerate(document.command) if word.endswith(".py")]
        rest = document.command[scripts[0] + 1 :] if scripts else ()
        options = next((i for i, word in enumerate(rest) if word.startswith("-")), len(rest))
        return [word.lower() for word in rest[:options]]
    if document.kind not in SCRIPTS:
        return []
    named = [document.data.get("method"), document.data.get("level")]
    return [str(value).lower() for value in named if isinstance(value, str)]


def budget(options: Options) -> tuple[float, float | None]:
    """(ε, δ or None for auto) of ``--epsilon``/``-e`` and ``--delta``/``-d``."""
    epsilon = options.number("epsilon", options.number("e"), above=True)
    if epsilon is None:
        raise options.error("epsilon", "missing option 'epsilon'; it is needed to price this file")
    auto = "auto" in (options.raw("delta"), options.raw("d"))
    return epsilon, None if auto else options.delta("delta", options.delta("d"))


def ask_delta(document: Document, delta: float | None, what: str) -> float:
    """δ = "auto" is one over the next power of ten above a count."""
    question = f"How many {what} has the graph? δ is “auto”, 1/10^digits of that number."
    return document.answers.ask("delta", question, DELTAS, DELTAS[0], delta)
