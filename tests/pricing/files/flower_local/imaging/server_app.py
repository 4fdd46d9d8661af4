"""A server that averages."""

from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid: Grid, context) -> None:
    strategy = FedAvg(fraction_train=0.5)
    strategy.start(grid=grid, num_rounds=context.run_config["num-server-rounds"])
