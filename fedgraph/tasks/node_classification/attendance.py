"""A federation in which not every client answers in every round, as a task runs and tells it
(``federation.round_attendance``).
"""

from dataclasses import replace

import numpy as np

from fedgraph.cells.task_facts import PartialRoundsCellFacts, SentBytesCellFacts
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.federation.messages import SecureMasks
from fedgraph.federation.round_attendance import (
    ROUND_ATTENDANCE_LINKS,
    Attendance,
    Participation,
    any_round_attended,
    buffered_round_attendance,
    draw_round_attendance,
    round_attendance_traffic,
)
from fedgraph.federation.rounds import RoundsOutcome
from fedgraph.federation.secure import masked_plan as secure_plan
from fedgraph.methods.base import Budget, Plan, PublicAttendanceFacts, PublicFacts, method_kinds
from fedgraph.privacy.units import Viewer
from fedgraph.tasks.base import Cell, CellContext

_NO_AMPLIFICATION = (
    "Whom a round asks is known to whoever runs it, so sampling clients buys no amplification: ε counts every release that was "
    "made, and none in rounds in which a client did not answer."
)


_ONE_BY_ONE = (
    "Clients answer when they are done (FedBuff): each update is one release of its client, ε is that of the client with the "
    "most, and nothing is amplified."
)


def add_task_attendance(settings: Participation, facts: PublicFacts, cell: Cell, method: method_kinds.Method) -> PublicFacts:
    """Public facts with how many answers a round has. ``ScenarioError`` where the method needs every client."""
    hidden = settings.secure_aggregation == "masks" and facts.viewer is Viewer.SERVER_SECURE_AGGREGATION
    if hidden and method.OFFERS.num_sent is None:
        able = method_kinds.list_method_names(lambda offers: offers.num_sent)
        raise ScenarioError(f"{cell.method} has no sum that masks hide; secure_aggregation: masks is for {', '.join(able)}")
    if facts.viewer in (Viewer.CURATOR_TRUSTED, Viewer.WORLD):
        return facts
    if (settings.least or 0) > facts.sizes.num_clients:
        allowed = f"at most {facts.sizes.num_clients}, the number of clients"
        raise ScenarioError(f"federation.least is {settings.least}; allowed: {allowed}")
    if settings.everybody:
        return facts
    if not method.OFFERS.partial_rounds:
        able = method_kinds.list_method_names(lambda offers: offers.partial_rounds)
        raise ScenarioError(f"{cell.method} needs every client in every round; federation is for {', '.join(able)}")
    least = settings.answers_needed(facts.sizes.num_clients)
    at_once = settings.concurrency or facts.sizes.num_clients
    if settings.mode == "asynchronous" and not least <= at_once <= facts.sizes.num_clients:
        raise ScenarioError(
            f"federation: buffer {least} and concurrency {at_once}; allowed: buffer ≤ concurrency ≤ "
            f"{facts.sizes.num_clients}, all clients"
        )
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION and least < 2:
        raise ScenarioError(
            f"federation: a secure sum of one client hides nothing; of {facts.sizes.num_clients} clients a round is sure of "
            f"{least} answer here; ask for a larger share, or write federation.least: 2 or more"
        )
    late = settings.mode == "asynchronous"
    return replace(facts, attendance=PublicAttendanceFacts(repr(settings), least, late))


def note_task_sampling(made: Plan) -> Plan:
    """The plan with a sentence on what sampling does not buy, where not every client answers."""
    if made.facts.attendance.asynchronous:
        return replace(made, notes=(*made.notes, _ONE_BY_ONE))
    return replace(made, notes=(*made.notes, _NO_AMPLIFICATION)) if made.facts.attendance.words else made


def mask_task_attendance(settings: Participation, made: Plan, budget: Budget, method: method_kinds.Method) -> Plan:
    """The plan whose sums are carried out with masks, where they are asked for; ``ScenarioError`` where they cannot be."""
    num_sent = method.OFFERS.num_sent
    if num_sent is None or attendance_masks(settings, made) is None:
        return made
    if made.facts.columns is not None:
        raise ScenarioError(
            f"federation: secure_aggregation: masks hides one sum per round, and ranks of {made.facts.columns.called} are "
            "estimated before; give these columns bounds"
        )
    try:
        return secure_plan.make_masked_plan(made, budget, num_sent(made), settings.resolution)
    except PrivacyError as error:
        raise ScenarioError(f"federation: {error}") from error


def attendance_masks(settings: Participation, made: Plan) -> SecureMasks | None:
    """How the sums of the plan are hidden; None where that is simulated, or where the viewer does not see sums alone."""
    if settings.secure_aggregation != "masks" or made.guarantee.protection.viewer is not Viewer.SERVER_SECURE_AGGREGATION:
        return None
    return SecureMasks(made.facts.colluders, made.facts.cohort, settings.drop_out)


def draw_task_attendance(settings: Participation, made: Plan, cell: Cell, context: CellContext) -> Attendance | None:
    """Who answers in which round.

    Args:
        settings: Who answers, as the scenario says.
        made: The plan; it says how many rounds there are, and how many answers each needs.
        cell: Its data set and seed name the public coins, so that all rows of a table miss the same clients.
        context: The root of the random streams.

    Returns:
        None where everybody answers.
    """
    if not made.facts.attendance.words:
        return None
    least = made.facts.attendance.least_answers or 1
    path = (cell.dataset, cell.seed)
    if settings.mode == "asynchronous":
        at_once = settings.concurrency or made.facts.sizes.num_clients
        rounds = made.schedule.rounds
        return buffered_round_attendance(settings, made.facts.sizes.num_clients, rounds, context.root, path, at_once)
    return draw_round_attendance(settings, made.facts.sizes.num_clients, made.schedule.rounds, least, context.root, path)


def require_task_attendance(settings: Participation, made: Plan, cell: Cell, context: CellContext) -> Plan:
    """The plan as it is; ``ScenarioError`` where none of its rounds will have its answers, so that nothing would be trained."""
    if not made.facts.attendance.words or settings.mode == "asynchronous":
        return made
    least = made.facts.attendance.least_answers or 1
    path = (cell.dataset, cell.seed)
    if not any_round_attended(settings, made.facts.sizes.num_clients, made.schedule.rounds, least, context.root, path):
        raise ScenarioError(
            f"federation: none of {made.schedule.rounds} rounds has the {least} answers that it needs, so nothing would be "
            "trained; ask for a larger share, or for fewer drop-outs"
        )
    return made


def attendance_metrics(sent: SentBytesCellFacts | None) -> dict[str, float]:
    """The same numbers as rows of the results: bytes per client and round, seconds of all rounds."""
    if sent is None or not sent.up:
        return {}
    seconds = {f"seconds_{name.replace(' ', '_')}": found for name, found in sent.seconds.items()}
    late = sent.partial
    if late is not None and late.mean_staleness is not None:
        seconds |= {"staleness": late.mean_staleness, "most_updates": float(late.most_updates or 0)}
    return {"bytes_down": float(sent.down), "bytes_up": float(sent.up), **seconds}


def attendance_facts(
    settings: Participation, who: Attendance | None, trained: RoundsOutcome, num_clients: int, cell: Cell, context: CellContext
) -> SentBytesCellFacts | None:
    """What the report shows: bytes of one client and round, seconds of all rounds on each stated link, and who answered."""
    if num_clients == 1:
        return None
    times = who
    if times is None and settings.compute_s:  # everybody answers, and each round waits for the slowest
        times = draw_round_attendance(settings, num_clients, len(trained.sizes), 1, context.root, (cell.dataset, cell.seed))
    went = round_attendance_traffic(trained.sizes, times.computed if times is not None else None)
    links = {name: link.words for name, link in ROUND_ATTENDANCE_LINKS.items()}
    return SentBytesCellFacts(went.down, went.up, went.seconds, links, None if who is None else _partial(settings, who))


def _partial(settings: Participation, who: Attendance) -> PartialRoundsCellFacts:
    written = settings.model_dump(mode="json", exclude_defaults=True)
    counted = (int(who.asked), int(who.answered.sum()), int(who.aborted))
    if who.versions is None:
        return PartialRoundsCellFacts(written, *counted)
    stale = (np.arange(len(who.versions))[:, None] - who.versions)[who.answered]
    return PartialRoundsCellFacts(written, *counted, float(stale.mean()), int(stale.max()), int(who.answered.sum(axis=0).max()))
