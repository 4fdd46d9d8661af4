"""A training script that asks Opacus for an ε, with the accountant that reports too little."""

from opacus import PrivacyEngine

engine = PrivacyEngine(accountant="gdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,  # noqa: F821
    optimizer=optimizer,  # noqa: F821
    data_loader=loader,  # noqa: F821
    target_epsilon=1.0,
    target_delta=1e-5,
    epochs=10,
    max_grad_norm=1.0,
)
