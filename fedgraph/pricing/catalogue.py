"""What is known of the systems whose configurations are priced: ``catalogue.yaml``, one entry a reader."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

import yaml

_PINNED = (r"requirements[\w.-]*\.txt", r"pyproject\.toml", r"environment\.ya?ml", r"setup\.(py|cfg)")


@dataclass(frozen=True)
class CatalogueSystem:
    """An entry of ``catalogue.yaml``: what is known of one system.

    Attributes:
        name: What people call it.
        version: The versions that the reader was checked with.
        source: Where its facts were read, with commit and date.
        said: What its authors say of the option, in our words.
        recognised: Lines of tests (``documents._LOOKS``). A document belongs to the system where all tests of one line hold.
        checked: Package → first and last version that was checked, where the system is installed as a package.
        calls: Class or function → its parameters in their order. Those after ``*`` go by name alone.
        ignored: Options, divided by spaces, that choose data, model, logging or hardware and change no price.
        reader: File of ``readers`` and function, such as ``gap_commands.read_gap_command``. Where it is empty: ``KEY.read``.
        words: Key → sentence of its quotes.
    """

    name: str
    version: str
    source: str
    said: str = ""
    recognised: tuple[Mapping[str, list[str]], ...] = ()
    checked: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    reader: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    def newer(self, folder: Path) -> Iterator[str]:
        """A sentence for each file of a folder that asks for a later version than the last that was checked."""
        for path in sorted(p for p in folder.glob("*.*") if any(re.fullmatch(name, p.name) for name in _PINNED)):
            if not path.is_file() or path.stat().st_size > 1_000_000:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            for package, (_, last) in self.checked.items():
                version = r"(?:\[[^\]]*\])?\s*(?:==|>=|~=|>)\s*([0-9]+(?:\.[0-9]+)*)"
                asked = re.search(rf"(?<![\w-]){re.escape(package)}{version}", text)
                if asked and _version_parts(asked[1])[:2] > _version_parts(last)[:2]:
                    yield f"{path.name} asks for {asked[0]}; this reader was checked with {package} up to {last}"


def _version_parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version))


@cache
def catalogue_entries() -> Mapping[str, CatalogueSystem]:
    """Every entry of ``catalogue.yaml``, by its reader."""
    text = resources.files("fedgraph.pricing").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return {name: CatalogueSystem(**entry) for name, entry in yaml.safe_load(text).items()}


@cache
def catalogue_places(call: str) -> Mapping[str, int]:
    """Parameter → place, of a class or function that some system has; those that go by name alone have none."""
    listed = next((system.calls[call] for system in catalogue_entries().values() if call in system.calls), "")
    return {name: place for place, name in enumerate(listed.partition("*")[0].split())}


def systems() -> list[str]:
    """The keys of all systems that are read."""
    return sorted(catalogue_entries())
