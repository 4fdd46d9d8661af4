"""What a run was made with, as ``environment.json`` holds it: enough to repeat it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """versions: package → version. runtime: as the engine describes itself. seed: the root seed, or ``secret``."""

    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    devices: tuple[str, ...] = ()
    runtime: Mapping[str, object] = field(default_factory=dict)
    seed: int | str = 0
    data: tuple[DataSource, ...] = ()
    made: Making = Making()
