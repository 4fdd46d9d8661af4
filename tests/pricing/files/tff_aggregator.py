"""A TFF program that trains with a fixed clip."""

import tensorflow_federated as tff

aggregator = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(noise_multiplier=1.5, clients_per_round=100, clip=0.5)
