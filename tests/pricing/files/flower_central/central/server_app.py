"""A server that adds the noise."""

from flwr.server.workflow import SecAggPlusWorkflow
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyClientSideFixedClipping, FedAvg

app = ServerApp()


@app.main()
def main(grid, context) -> None:
    strategy = DifferentialPrivacyClientSideFixedClipping(
        FedAvg(fraction_train=0.1),
        noise_multiplier=context.run_config["noise-multiplier"],
        clipping_norm=context.run_config["clipping-norm"],
        num_sampled_clients=context.run_config["num-sampled-clients"],
    )
    SecAggPlusWorkflow(num_shares=7, reconstruction_threshold=4)
    strategy.start(grid=grid, num_rounds=3)
