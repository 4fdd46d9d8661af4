"""A configuration of DP-GNN training, with the numbers of the example."""

import ml_collections


def get_config():
    config = ml_collections.ConfigDict()
    config.dataset = "ogbn-arxiv-disjoint"
    config.model = "gcn"
    config.num_message_passing_steps = 1
    config.max_degree = 5
    config.differentially_private_training = True
    config.training_noise_multiplier = 2.0
    config.num_training_steps = 3000
    config.batch_size = 10000
    return config
