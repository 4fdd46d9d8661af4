"""Compiled code lies in the user's cache, not beside the package."""

from __future__ import annotations

from pathlib import Path

import numba

from fedgraph import compiled


def test_nothing_is_written_beside_the_package() -> None:
    package = Path(compiled.__file__).parent
    assert not numba.config.CACHE_DIR or not Path(numba.config.CACHE_DIR).is_relative_to(package)


def test_loops_that_call_each_other_are_compiled_when_the_first_is_called() -> None:
    source = "def half(x):\n    return x / 2\n\n\ndef quarter(x):\n    return half(half(x))\n"
    known: dict[str, object] = {"__name__": __name__}
    exec(compile(source, __file__, "exec"), known)
    for name in ("half", "quarter"):
        known[name] = compiled.compiled(compiled.compiled_types.float64(compiled.compiled_types.float64))(known[name])  # type: ignore[type-var]
    quarter = known["quarter"]
    assert callable(quarter)
    assert quarter(8.0) == 2.0
