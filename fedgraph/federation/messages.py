"""Messages between client and server: frozen, picklable, and made only of values that passed the desk."""

from collections.abc import Mapping
from dataclasses import dataclass

from fedgraph.errors import PrivacyError
from fedgraph.federation.participation import Attendance
from fedgraph.methods.base import Plan
from fedgraph.privacy.desk import Released, Summed
from fedgraph.privacy.lines import Line, Release


@dataclass(frozen=True)
class Masks:
    """colluders: clients that tell the server all they know. least: answers that a round needs. drop_out: chance that a client
    which sent its values is silent when shares are asked for."""

    colluders: int
    least: int
    drop_out: float = 0.0


@dataclass(frozen=True, eq=False)
class Job:
    """One training run as workers see it.

    key: names the workspace a worker keeps. stream, fingerprint: name its random streams. attendance: who answers in which
    round; None where all do. masks: how sums are hidden; None where their secrecy is simulated. starts: names the stream of
    the first parameters; None: ``stream`` does. taken: ledger lines of what belongs to a choice and was released before, so
    that a client whose worker was started again still refuses the other alternative.
    """

    key: str
    root: int
    stream: tuple[str | int | float, ...]
    plan: Plan
    fingerprint: str = ""
    attendance: Attendance | None = None
    masks: Masks | None = None
    starts: tuple[str | int | float, ...] | None = None
    taken: tuple[Line, ...] = ()


@dataclass(frozen=True, eq=False)
class ClientMessage:
    """One client's message of one round; refuses values without the desk's stamp.

    entries: the ledger lines of all that passed the desk this round, sent or kept at the client.
    """

    client: int
    round: int
    released: Mapping[str, Released]
    entries: tuple[Release | Line, ...] = ()

    @property
    def lines(self) -> tuple[Release | Line, ...]:
        """What this round adds to the ledger."""
        return self.entries or tuple(r.entry for r in self.released.values())

    @property
    def num_clients(self) -> int:
        return 1

    @property
    def first(self) -> int:
        """Its place among the messages of a round."""
        return self.client

    def __post_init__(self) -> None:
        for name, value in self.released.items():
            if not isinstance(value, Released):
                raise PrivacyError(
                    f"client {self.client} tried to send {name!r} as a bare {type(value).__name__}; "
                    "only values returned by desk.release may leave a client"
                )


@dataclass(frozen=True, eq=False)
class BlockMessage:
    """What the clients of blocks ``first`` … ``first + width − 1`` released in one round, added up; refuses anything else.

    num_clients: how many of them finished. lines: of the ledger.
    """

    first: int
    width: int
    round: int
    released: Mapping[str, Summed]
    num_clients: int
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        for name, value in self.released.items():
            if not isinstance(value, Summed):
                raise PrivacyError(
                    f"blocks {self.first} … {self.first + self.width - 1} tried to send {name!r} as a bare "
                    f"{type(value).__name__}; only sums of released values may leave a block"
                )


@dataclass(frozen=True, eq=False)
class Receipt:
    """What the driver learns of a round: the ledger lines it caused, equal releases of many clients as one.

    down, up: bytes to and from one client, the largest message of the round. messages: clients that sent one.
    """

    round: int
    releases: tuple[Line, ...]
    down: int = 0
    up: int = 0
    messages: int = 0
