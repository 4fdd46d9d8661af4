"""What a run was made with, as ``environment.json`` holds it: enough to repeat it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedgraph.types import Graph, GraphCollection


@dataclass(frozen=True)
class EnvironmentMaking:
    """Which version and command made a run.

    Attributes:
        version: Of the package.
        commit: Of the source, ``-dirty`` where it was changed since; empty outside a git checkout.
        command: As it was typed.
        finished: Local date and time of the end, with its offset from UTC; empty where it must not be known.
        seconds: Wall time of the command; None where it must not be known.
    """

    version: str = ""
    commit: str = ""
    command: str = ""
    finished: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class EnvironmentSource:
    """Where one data set came from.

    Attributes:
        name: Of the data set.
        source: ``real``, ``synthetic``, ``embedded`` or ``own`` (``types.GraphProvenance``).
        sha256: File → its checksum, of published data; a person's own files have none here.
    """

    name: str
    source: str
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """All that is needed to repeat a run.

    Attributes:
        versions: Package → version.
        platform: Operating system and processor.
        devices: Names of the GPUs, or ``cpu``.
        runtime: As the engine describes itself.
        seed: The root seed, or ``secret``.
        data: One for each data set.
        made: Version, command and time.
        cells: How many the scenario asks for.
        quick: Whether the scenario was shrunk by ``--quick``.
        notice: What every output says where data were generated; None where all are real.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    devices: tuple[str, ...] = ()
    runtime: Mapping[str, object] = field(default_factory=dict)
    seed: int | str = 0
    data: tuple[EnvironmentSource, ...] = ()
    made: EnvironmentMaking = EnvironmentMaking()
    cells: int = 0
    quick: bool = False
    notice: str | None = None


def notice(graphs: Sequence[Graph | GraphCollection]) -> str | None:
    """The sentence that must open every output where data were generated, as asked or in the place of real files.

    Args:
        graphs: Every data set of the run.

    Returns:
        The sentence; None where no data set is synthetic.
    """
    made = [g.name for g in graphs if g.provenance.source == "synthetic"]
    asked, missing = (", ".join(n for n in made if n.startswith("synthetic/") is own) for own in (True, False))
    stand_in = f"{missing} was not available; a generated stand-in was used. No number here is about the real graph."
    said = [stand_in] if missing else []
    said += [f"{asked} is generated, as the scenario asks."] if asked else []
    return "SYNTHETIC DATA: " + " ".join(said) if said else None
