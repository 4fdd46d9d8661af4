"""What a run was made with, as ``environment.json`` holds it: enough to repeat it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedgraph.types import Graph, GraphCollection


@dataclass(frozen=True)
class Making:
    """Which version and command made a run, when it ended, and how many seconds the command took."""

    version: str = ""
    commit: str = ""
    command: str = ""
    finished: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class DataSource:
    """name: of the data set. source: where it came from. sha256: checksums of its files."""

    name: str
    source: str
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """versions: package → version. runtime: as the engine describes itself. seed: the root seed, or ``secret``.

    cells: how many the scenario asks for. quick: whether it was shrunk. notice: what every output says where data were
    generated.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    devices: tuple[str, ...] = ()
    runtime: Mapping[str, object] = field(default_factory=dict)
    seed: int | str = 0
    data: tuple[DataSource, ...] = ()
    made: Making = Making()
    cells: int = 0
    quick: bool = False
    notice: str | None = None


def notice_of(graphs: Sequence[Graph | GraphCollection]) -> str | None:
    """The sentence that must open every output when data was generated, asked for or in place of real files."""
    made = [g.name for g in graphs if g.provenance.source == "synthetic"]
    asked, missing = (", ".join(n for n in made if n.startswith("synthetic/") is own) for own in (True, False))
    stand_in = f"{missing} was not available; a generated stand-in was used. No number here is about the real graph."
    said = [stand_in] if missing else []
    said += [f"{asked} is generated, as the scenario asks."] if asked else []
    return "SYNTHETIC DATA: " + " ".join(said) if said else None
