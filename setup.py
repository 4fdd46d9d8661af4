"""Beside pyproject.toml for one thing that it cannot say: the folder ``scenarios`` is the package ``fedgraph.scenarios``.

So the scenarios stay where their users know them, each file exists once, and a wheel contains them.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["fedgraph*"]), "fedgraph.scenarios"],
    package_dir={"fedgraph.scenarios": "scenarios"},
)
