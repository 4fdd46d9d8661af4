"""A plan of JAX Privacy: DP-SGD, which is one band."""

from jax_privacy.execution_plan import BandMFConfig

plan = BandMFConfig.default(num_bands=1, iterations=1000, expected_participations=10, noise_multiplier=1.0).make()
