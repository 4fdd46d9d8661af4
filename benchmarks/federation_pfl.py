"""W1 on pfl-research (SimulatedBackend, one process, FederatedAveraging weighted by data points, no privacy)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from benchmarks.federation_peer import RATE, STEPS, Run

run = Run()


class Clock(TrainingProcessCallback):
    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> tuple[bool, Metrics]:
        if central_iteration == 0:
            run.first_round_done()
        return False, Metrics()


def user(number: int) -> Dataset:
    return Dataset(raw_data=list(run.clients[number]))


model = PyTorchModel(run.network, torch.optim.SGD, torch.optim.SGD(run.network.parameters(), lr=1.0))
count = len(run.clients)
users = FederatedDataset(user, get_user_sampler("minimize_reuse", list(range(count))))
backend = SimulatedBackend(training_data=users, val_data=None, postprocessors=[WeightByDatapoints()])
params = NNAlgorithmParams(
    central_num_iterations=run.rounds + 1, evaluation_frequency=10**9, train_cohort_size=count, val_cohort_size=0
)
local = NNTrainHyperParams(local_num_epochs=STEPS, local_learning_rate=RATE, local_batch_size=None)
FederatedAveraging().run(params, backend, model, local, callbacks=[Clock()])
run.finished("pfl", np.asarray(run.network.vector()))
