"""What a run was made with, as ``environment.json`` holds it: enough to repeat it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedgraph.types import Graph, GraphCollection


@dataclass(frozen=True)
class EnvironmentMaking:
    """Which version and command made a run."""

    version: str = ""  # of the package
    commit: str = ""  # of the source, ``-dirty`` where it was changed since; empty outside a git checkout
    command: str = ""  # as it was typed
    finished: str = ""  # local date and time of the end, with its offset from UTC; empty where it must not be known
    seconds: float | None = None  # wall time of the command; None where it must not be known


@dataclass(frozen=True)
class EnvironmentSource:
    """Where one data set came from."""

    name: str  # of the data set
    source: str  # ``real``, ``synthetic``, ``embedded`` or ``own`` (``types.GraphProvenance``)
    # file → its checksum, of published data; a person's own files have none here
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """All that is needed to repeat a run."""

    versions: Mapping[str, str] = field(default_factory=dict)  # package → version
    platform: str = ""  # operating system and processor
    devices: tuple[str, ...] = ()  # names of the GPUs, or ``cpu``
    runtime: Mapping[str, object] = field(default_factory=dict)  # as the engine describes itself
    seed: int | str = 0  # the root seed, or ``secret``
    data: tuple[EnvironmentSource, ...] = ()  # one for each data set
    made: EnvironmentMaking = EnvironmentMaking()  # version, command and time
    cells: int = 0  # how many the scenario asks for
    quick: bool = False  # whether the scenario was shrunk by ``--quick``
    notice: str | None = None  # what every output says where data were generated; None where all are real


def notice(graphs: Sequence[Graph | GraphCollection]) -> str | None:
    """The sentence that must open every output where data were generated, as asked or in the place of real files.

    Returns:
        The sentence; None where no data set is synthetic.
    """
    made = dict.fromkeys(g.name for g in graphs if g.provenance.source == "synthetic")
    asked, missing = (", ".join(n for n in made if n.startswith("synthetic/") is own) for own in (True, False))
    stand_in = f"{missing} was not available; a generated stand-in was used. No number here is about the real graph."
    said = [stand_in] if missing else []
    said += [f"{asked} is generated, as the scenario asks."] if asked else []
    return "SYNTHETIC DATA: " + " ".join(said) if said else None
