"""What came of a deployment: the server's folder (``out``) becomes a model, at the price of what was released until then."""

from dataclasses import replace
from pathlib import Path

from fedgraph.errors import DataError
from fedgraph.export import deployable, site
from fedgraph.export.owner import read_app
from fedgraph.methods import Plan
from fedgraph.models import Model, fit
from fedgraph.privacy import LedgerLine, ledger


def open_model(answer: Path) -> Model:
    """The model of a deployment, as ``fedgraph fit`` makes one, of the folder that its server wrote.

    Its ε is that of every release that was made: of rounds that were merged, of rounds that were left out, and of the round
    that was asked last, in which some clients may have answered. ``DataError`` for another folder, or one whose plan and state
    do not belong together.
    """
    agreed, file = read_app(answer)
    digest = site.digest_of(file)
    found = site.read_site_progress(answer, digest)
    if found is None:
        raise DataError(f"{answer}: holds no state.json; allowed: the folder 'out' of a deployment")
    state, deployment, done, left_out = found
    plan, rounds = agreed.plan, agreed.plan.schedule.rounds
    begun = next((r for r in range(rounds) if r not in done and r not in left_out), None)
    released = sorted({*done, *left_out, *([] if begun is None else [begun])})
    said = [f"{len(done)} of {rounds} rounds were merged, in the deployment {deployment[:8]}."]
    if left_out:
        said.append(f"Rounds {', '.join(map(str, left_out))} were left out, since a client was away; they are paid.")
    if begun is not None:
        said.append(f"The deployment is not at its end: round {begun} is counted as released.")
    lines = released_lines(plan, agreed.cohorts, released)
    protection = replace(plan.guarantee.protection, assumptions=deployable.assumed(plan.guarantee.protection))
    plan = replace(plan, guarantee=replace(plan.guarantee, protection=protection))
    return fit.of_deployment(agreed.row, plan, state, agreed.names, agreed.reading, lines, (*said, *agreed.said))


def released_lines(plan: Plan, cohorts: tuple[tuple[int, ...], ...], rounds: list[int]) -> list[LedgerLine]:
    """The lines of a ledger for everything that the plan releases in some rounds, each client in those that ask it."""
    lines = []
    for release in plan.schedule.releases:
        words = release.mechanism.words
        for round_ in (r for r in rounds if r in release.rounds):
            who = ledger.spans(k for k in site.asked_clients(plan, cohorts, round_) if release.client in (None, k))
            lines.append(
                LedgerLine("deployment", release.path, who, ((round_, round_),), release.per_round, words, release.event)
            )
    return list(ledger.merged(lines))
