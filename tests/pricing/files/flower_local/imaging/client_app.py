"""A client that adds local noise; its numbers stand in pyproject.toml."""

from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod
from imaging import CONFIG  # read elsewhere

noise = LocalDpMod(CONFIG["clip"], CONFIG["sensitivity"], CONFIG["epsilon"], CONFIG["delta"])
app = ClientApp(mods=[noise])
