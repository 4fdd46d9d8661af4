"""A share of the clients answers in each round, as a task runs and tells it (``federation.round_attendance``)."""

from dataclasses import replace

import numpy as np

from fedgraph import federation
from fedgraph.cells import SentBytesCellFacts
from fedgraph.errors import ScenarioError
from fedgraph.federation import round_attendance
from fedgraph.methods import Plan, PublicFacts, method_kinds
from fedgraph.privacy import Viewer
from fedgraph.tasks.base import Cell, CellContext

_NO_AMPLIFICATION = (
    "Whom a round asks is known to whoever runs it, so sampling clients buys no amplification: ε counts every release that was "
    "made, and none in rounds in which a client did not answer."
)


def add_to_facts(
    settings: federation.Participation, facts: PublicFacts, cell: Cell, method: method_kinds.Method
) -> PublicFacts:
    """Public facts with how many clients answer in a round. ``ScenarioError`` where the method needs every client."""
    answering = settings.answering(facts.num_clients)
    if answering is None or facts.viewer in (Viewer.CURATOR_TRUSTED, Viewer.WORLD):
        return facts
    if not method.OFFERS.partial_rounds:
        able = method_kinds.list_names(lambda offers: offers.partial_rounds)
        raise ScenarioError(f"{cell.method} needs every client in every round; federation is for {', '.join(able)}")
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION and answering < 2:
        raise ScenarioError(
            f"federation: a secure sum of one client hides nothing; share: {settings.share} of {facts.num_clients} "
            "clients is one; write a larger share"
        )
    return replace(facts, answering=answering)


def note_sampling(made: Plan) -> Plan:
    """The plan with a sentence on what sampling does not buy, where not every client answers."""
    return made if made.facts.answering is None else replace(made, notes=(*made.notes, _NO_AMPLIFICATION))


def draw(made: Plan, cell: Cell, context: CellContext) -> np.ndarray | None:
    """Who answers in which round.

    Args:
        made: The plan; it says how many rounds there are, and how many clients answer in each.
        cell: Its data set and seed name the public coins, so that all rows of a table miss the same clients.
        context: The root of the random streams.

    Returns:
        bool [rounds, clients]; None where everybody answers.
    """
    if made.facts.answering is None:
        return None
    sizes = (made.facts.num_clients, made.schedule.rounds)
    return round_attendance.draw(made.facts.answering, *sizes, context.root, (cell.dataset, cell.seed))


def metrics_of(sent: SentBytesCellFacts | None) -> dict[str, float]:
    """The same numbers as rows of the results: bytes per client and round, seconds of all rounds."""
    if sent is None or not sent.up:
        return {}
    seconds = {f"seconds_{name.replace(' ', '_')}": found for name, found in sent.seconds.items()}
    return {"bytes_down": float(sent.down), "bytes_up": float(sent.up), **seconds}


def facts_of(made: Plan, trained: federation.RoundsOutcome) -> SentBytesCellFacts | None:
    """What the report shows: bytes of one client and round, seconds of all rounds on each stated link, and who answered."""
    if made.facts.num_clients == 1:
        return None
    down = max((to for to, _ in trained.sizes), default=0)
    up = max((back for _, back in trained.sizes), default=0)
    links = {name: link.words for name, link in round_attendance.LINKS.items()}
    return SentBytesCellFacts(down, up, round_attendance.link_seconds(trained.sizes), links, made.facts.answering)
