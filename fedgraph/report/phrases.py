"""The texts of a report, which stand in ``templates``, and how numbers are written in them."""

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources

import jinja2


def asset(name: str) -> str:
    """The text of a file that comes with the report."""
    return resources.files("fedgraph.report").joinpath(name).read_text(encoding="utf-8")


@cache
def template(name: str, escaped: bool = True) -> jinja2.Template:
    """A template of this package, where a name that nobody gave is an error."""
    loader, strict = jinja2.FunctionLoader(lambda file: asset(f"templates/{file}")), jinja2.StrictUndefined
    environment = jinja2.Environment(autoescape=escaped, undefined=strict, trim_blocks=True, lstrip_blocks=True, loader=loader)
    environment.filters["text"] = _as_yaml
    return environment.get_template(name)


def _as_yaml(value: object) -> str:
    """A text as YAML: quoted, or a literal block of several lines, for a value that stands in the third level."""
    lines = str(value).split("\n")
    if len(lines) > 1:
        return "|-\n" + "\n".join(f"      {line}" for line in lines)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in json.dumps(lines[0], ensure_ascii=False))


def begin(words: str) -> str:
    """``words`` as a sentence begins with them: names such as ROC keep their letters, and ε and δ stay small."""
    return (words[:1].upper() if words[:1].isascii() else words[:1]) + words[1:]


def rounded(value: float | None, digits: int = 3) -> str:
    """A number as tables show it, with at most ``digits`` beyond the point, or significant ones below 0.01; ``—`` for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if math.isinf(value):
        return "∞"
    return f"{value:.{digits}g}" if value and abs(value) < 0.01 else f"{value:.{digits}f}".rstrip("0").rstrip(".")


def upper(value: float | None, digits: int = 2) -> str:
    """An upper bound ≥ 0 as tables show it: never below the computed one."""
    if value is None or not math.isfinite(value) or value == 0:
        return rounded(value, digits)
    scale = 10.0 ** (digits if value >= 0.01 else digits - 1 - math.floor(math.log10(value)))
    return rounded(math.ceil(value * scale * (1 - 1e-9)) / scale, digits)


def lower(value: float | None, digits: int = 2) -> str:
    """A lower bound as tables show it: never above the computed one."""
    if value is None or not math.isfinite(value):
        return rounded(value, digits)
    return rounded(math.floor(value * 10**digits * (1 + 1e-12)) / 10**digits, digits)


def first(texts: Sequence[str], most: int, between: str = ", ") -> str:
    """The first of several texts, and how many more there are: ``a, b and 1 more``."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def average(count: int, what: str = "seed", error: str = "deviation") -> str:
    """How ``count`` repetitions are summed up, in words: ± only where there are two or more."""
    return f"one {what}" if count == 1 else f"mean ± standard {error} over {count} {what}s"
