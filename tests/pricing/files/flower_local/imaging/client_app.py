"""A client that adds local noise; its numbers stand in pyproject.toml."""

from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod


def noise(message, context, call_next):
    numbers = context.run_config
    mod = LocalDpMod(numbers["clip"], numbers["sensitivity"], numbers["epsilon"], numbers["delta"])
    return mod(message, context, call_next)


app = ClientApp(mods=[noise])


@app.train()
def train(message, context):
    return message
