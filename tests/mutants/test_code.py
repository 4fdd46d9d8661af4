"""Every fault of the shipped code is caught, alone and with all the others; the code as it is keeps every promise."""

import contextlib

import pytest

from tests.mutants import code

MUTANTS = code.all_code_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_code_keeps_its_promise_and_a_fault_in_it_is_caught(mutant: code.CodeMutant) -> None:
    mutant.check()
    with mutant.broken(), pytest.raises(AssertionError):
        mutant.check()


@pytest.mark.slow  # each is caught alone above
def test_all_faults_at_once_hide_none_of_them() -> None:
    with contextlib.ExitStack() as held:
        for mutant in MUTANTS:
            held.enter_context(mutant.broken())
        assert [mutant.name for mutant in MUTANTS if mutant.holds] == []
