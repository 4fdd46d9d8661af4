"""The catalogue against the packages, where they are installed: the parameters that are read have the names and places it says.

Their sources are parsed, not imported, so that ``pip install --no-deps flwr opacus pfl nvflare jax-privacy tensorflow-privacy``
is enough.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from functools import cache
from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.pricing import catalogue

# package as it is imported → names of ours that are not its own (others' classes, or of versions that are not installed)
ELSEWHERE = {
    "opacus": {"DataLoader"},
    "flwr": set[str](),
    "nvflare": {"GaussianPrivacy"},
    "pfl": set[str](),
    "jax_privacy": {
        "BandMFConfig",
        "calibrate",
        "DpsgdGradientComputer",
        "calibrate_noise_multiplier",
        "calibrate_dp_mechanism",
    },
    "tensorflow_privacy": set[str](),
}
MADE = {  # name → the function or class of the package that takes its parameters
    **dict.fromkeys(("PLDPrivacyAccountant", "PRVPrivacyAccountant", "RDPPrivacyAccountant"), "PrivacyAccountant"),
    **dict.fromkeys((name for name in catalogue.catalogue_entries()["tf_privacy"].calls if "compute" not in name), ""),
}
READER = {"flwr": "flower", "jax_privacy": "jax_privacy", "tensorflow_privacy": "tf_privacy"}


@cache
def signatures(package: str) -> dict[str, list[list[str]]]:
    """Name → parameters of every class and function of that name in an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"pip install --no-deps {package} to compare its parameters")
    found: dict[str, list[list[str]]] = {}
    for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
        if "test" not in path.name:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    found.setdefault(node.name, []).append(parameters(node))
    return found


def parameters(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """Places first, then what goes by name; of a class those of ``__init__``, or its annotated fields."""
    if isinstance(node, ast.ClassDef):
        start = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        fields = [n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
        return fields if start is None else parameters(start)
    listed = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    return [*(listed[1:] if listed[:1] in (["self"], ["cls"]) else listed), "*", *(a.arg for a in node.args.kwonlyargs)]


def named(real: dict[str, list[list[str]]], name: str) -> list[list[str]]:
    """The parameters of a name; of all of them where a class is made at run time."""
    return real.get(name, []) if name else [each for several in real.values() for each in several]


def fits(said: str, real: list[str]) -> bool:
    """Whether what the catalogue says of places is a beginning of the real ones, and the rest goes by name there."""
    places, _, named = (part.split() for part in said.partition("*"))
    real_places = real[: real.index("*")] if "*" in real else real
    return places == real_places[: len(places)] and set(named) <= set(real)


@pytest.mark.parametrize("package", ELSEWHERE)
def test_parameters_are_where_the_catalogue_says(package: str) -> None:
    real, entry = signatures(package), catalogue.catalogue_entries()[READER.get(package, package)]
    wrong = {
        name: (said, real.get(name, [])[:3])
        for name, said in entry.calls.items()
        if name not in ELSEWHERE[package] and not any(fits(said, each) for each in named(real, MADE.get(name, name)))
    }
    assert not wrong


@pytest.mark.parametrize("package", ELSEWHERE)
def test_the_installed_version_was_checked(package: str) -> None:
    signatures(package)
    first, last = catalogue.catalogue_entries()[READER.get(package, package)].checked[package]
    assert (
        catalogue._version_parts(first)[:2]
        <= catalogue._version_parts(importlib.metadata.version(package))[:2]
        <= catalogue._version_parts(last)[:2]
    )


@pytest.mark.parametrize(
    ("file", "text", "newer"),
    [
        ("requirements.txt", "torch\nopacus==1.9.0\n", True), ("requirements.txt", "opacus==1.5\nnot-opacus==9\n", False),
        ("pyproject.toml", '[project]\ndependencies = ["opacus>=2.0"]\n', True),
    ],
)  # fmt: skip
def test_a_file_of_a_newer_version_is_told(tmp_path: Path, file: str, text: str, newer: bool) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text("import opacus\nm = e.make_private(noise_multiplier=1.0, max_grad_norm=1.0)\n", encoding="utf-8")
    said = [line for line in pricing.price(path).reading.assumed if "was checked with opacus up to 1.6" in line]
    assert bool(said) == newer
