"""The texts of the sections here, which stand in ``phrases.yaml``."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml


@cache
def read_phrases() -> Mapping[str, Mapping[str, str]]:
    """Part → name → text."""
    return dict(yaml.safe_load(Path(__file__).with_name("phrases.yaml").read_text(encoding="utf-8")))


def fill_phrase(part: str, name: str, /, **values: object) -> str:
    """One text. values: of the names in braces that stand in it."""
    return read_phrases()[part][name].format(**values)
