"""Prints the lowest version of every dependency that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

needed = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
for line in needed:
    print(re.sub(r">=(\S+)", r"==\1", line))
