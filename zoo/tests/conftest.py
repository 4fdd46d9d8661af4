"""Fixtures of fedgraph's own tests: run these from the root of a checkout, where ``tests`` can be imported."""

import importlib.util

import pytest

from tests.conftest import _real_data as _real_data
from tests.conftest import _same_secrets as _same_secrets
from tests.conftest import data_root as data_root
from tests.conftest import library as library
from tests.conftest import pytest_fixture_setup as pytest_fixture_setup
from tests.conftest import pytest_runtest_call as pytest_runtest_call

INSTALLED = importlib.util.find_spec("fedgraph_zoo") is not None
collect_ignore_glob = [] if INSTALLED else ["test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not INSTALLED:
        terminalreporter.write_line("zoo/tests are left out, since the zoo is not installed: pip install -e ./zoo")
