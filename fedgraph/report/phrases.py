"""The long texts of a report, which stand in ``templates/phrases.yaml`` by part and name."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

import yaml
from pydantic import TypeAdapter


@cache
def read_phrases() -> Mapping[str, Mapping[str, str]]:
    """Part → name → text."""
    written = resources.files("fedgraph.report").joinpath("templates/phrases.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, str]]).validate_python(yaml.safe_load(written))


def phrase(part: str, name: str, **values: object) -> str:
    """One text. values: of the names in braces that stand in it."""
    return read_phrases()[part][name].format(**values)
