"""W1 on Flower (its simulation engine on Ray, FedAvg weighted by labelled nodes, no privacy, no evaluation)."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.client import Client, ClientApp, NumPyClient
from flwr.common import Context, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.federation_peer import RATE, STEPS, Run

ASKED = "FEDERATION_FLOWER"  # in the environment, for Ray's processes: folder and rounds


@functools.cache
def held() -> Run:
    """The clients' data, read once in each process."""
    sys.argv[1:] = os.environ[ASKED].split("\n")
    return Run()


class Own(NumPyClient):
    """One client: three full-batch steps from the parameters that the server sent."""

    def __init__(self, number: int) -> None:
        self.run, self.number = held(), number

    def fit(self, parameters: list[np.ndarray], config: dict[str, Any]) -> tuple[list[np.ndarray], int, dict[str, Any]]:
        network, (x, hat, y) = self.run.network, self.run.clients[self.number]
        known = int((y >= 0).sum())
        torch.nn.utils.vector_to_parameters(torch.tensor(parameters[0]), network.parameters())
        for _ in range(STEPS if known else 0):
            found = torch.autograd.grad(network.loss(x, hat, y), list(network.parameters()))
            with torch.no_grad():
                for p, gradient in zip(network.parameters(), found, strict=True):
                    p.sub_(gradient, alpha=RATE)
        return [torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()], known, {}


class Clocked(FedAvg):
    """FedAvg that tells the clock of the first round, and keeps the last parameters."""

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        if failures:
            raise RuntimeError(f"{len(failures)} clients failed, the first: {failures[0]}")
        found = super().aggregate_fit(server_round, results, failures)
        run = held()
        if server_round == 1:
            run.first_round_done()
        if server_round == run.rounds + 1:
            run.finished("flower", parameters_to_ndarrays(found[0])[0])
        return found


def client(context: Context) -> Client:
    return Own(int(context.node_config["partition-id"])).to_client()


def server(context: Context) -> ServerAppComponents:
    run = held()
    start, count = torch.nn.utils.parameters_to_vector(run.network.parameters()).detach().numpy(), len(run.clients)
    strategy = Clocked(
        fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=count, min_available_clients=count, min_evaluate_clients=0,
        initial_parameters=ndarrays_to_parameters([start]), accept_failures=False,
    )  # fmt: skip
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=run.rounds + 1))


def main() -> None:
    run_simulation(
        server_app=ServerApp(server_fn=server),
        client_app=ClientApp(client_fn=client),
        num_supernodes=len(held().clients),
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0}, "init_args": {"num_cpus": 2}},
    )


if __name__ == "__main__":
    os.environ[ASKED] = "\n".join(sys.argv[1:3])
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)  # Ray's processes import this file by its name
    from benchmarks.federation_flower import main as begin

    begin()
