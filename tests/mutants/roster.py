"""The roster of a model: two models of the same people cannot be compared person by person without trying ids."""

from fedgraph.models import model
from fedgraph.models.model import AnswerRoster
from tests.mutants.code import CodeMutant

_IDS = [f"person {number}" for number in range(50)]


def _every_roster_has_its_key() -> None:
    rosters = [AnswerRoster.of(_IDS) for _ in range(8)]
    assert len({one.salt for one in rosters}) == len(rosters), "two models have one key"
    digests = [int(digest) for one in rosters for digest in one.digests]
    assert len(set(digests)) == len(digests), "one person has one digest in two models"
    assert all((one.places(_IDS[::-1]) == range(len(_IDS) - 1, -1, -1)).all() for one in rosters)


MUTANTS = [
    CodeMutant(
        "a constant key of the roster",
        lambda: [(model.secrets, "token_hex", lambda size: "0" * (2 * size))],
        _every_roster_has_its_key,
    )
]
