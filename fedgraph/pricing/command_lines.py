"""Command lines, printed namespaces and words as data."""

import ast
import re
import shlex
from pathlib import Path

from fedgraph.errors import PricingError

Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]


def namespace(path: Path, body: str) -> dict[str, Tree]:
    """The values of ``Namespace(…)`` as argparse prints it."""
    try:
        call = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, MemoryError) as error:
        raise PricingError(f"{path}:{getattr(error, 'lineno', 1)}: not a namespace: {error}") from None
    if not isinstance(call, ast.Call) or call.args:
        raise PricingError(f"{path}:1: not one Namespace(key=value, …)")
    out: dict[str, Tree] = {}
    for keyword in call.keywords:
        try:
            value = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, MemoryError):
            value = None if isinstance(keyword.value, ast.Constant) else ast.unparse(keyword.value)
        plain = value is None or isinstance(value, (bool, int, float, str))
        out[keyword.arg or "**"] = value if plain else ast.unparse(keyword.value)
    return out


def words(path: Path, body: str) -> list[str]:
    """The words of the one line that runs Python."""
    joined = re.sub(r"\\\s*\n", " ", body)
    runs = [
        row
        for row in joined.splitlines()
        if re.search(r"(^|\s|/)(python[\d.]*|torchrun|\S+\.py|compute_dp_sgd_privacy\w*)\s", row + " ")
    ]
    if len(runs) != 1:
        raise PricingError(f"{path}:1: {len(runs)} command lines that run Python; one file prices one")
    if re.search(r"[`$;|&<>]", runs[0]):
        raise PricingError(f"{path}:1: a command line with shell code ({runs[0].strip()[:60]}…); write its values out")
    try:
        return shlex.split(runs[0])
    except ValueError as error:
        raise PricingError(f"{path}:1: not a command line: {error}") from None


def options(words: list[str]) -> dict[str, Tree]:
    """``--key value``, ``--key=value`` and bare ``--flag`` (True) of a command line; - in names becomes _."""
    out: dict[str, Tree] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not re.match(r"^--?[A-Za-z]", word):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if not equals and index < len(words) and not re.match(r"^--?[A-Za-z]", words[index]):
            value, equals = words[index], "="
            index += 1
        out[name] = scalar(value) if equals else True
    return out


def scalar(text: str) -> Tree:
    """A word as a number, True, False, None or itself.

    >>> scalar("1e-5"), scalar("7"), scalar("True"), scalar("gap")
    (1e-05, 7, True, 'gap')
    """
    text = text.strip().strip("\"'")
    if not text.isascii():
        return text
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if text.lower() in ("true", "false", "none", "null"):
        return {"true": True, "false": False}.get(text.lower())
    try:
        return float(text)
    except ValueError:
        return text
