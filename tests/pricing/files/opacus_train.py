"""A training script with Opacus, as its users write it."""

import argparse

from opacus import PrivacyEngine
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--sigma", type=float, default=1.1)
args = parser.parse_args()
loader = DataLoader(data, batch_size=250)  # noqa: F821
engine = PrivacyEngine(accountant="prv")
model, optimizer, loader = engine.make_private(
    module=model,  # noqa: F821
    optimizer=optimizer,  # noqa: F821
    data_loader=loader,
    noise_multiplier=args.sigma,
    max_grad_norm=1.0,
)
print(engine.get_epsilon(delta=1e-5))
