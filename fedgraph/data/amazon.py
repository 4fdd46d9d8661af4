"""Amazon co-purchase graphs Photo and Computers: goods, words of their reviews, product category as label.

Shchur, Mumme, Bojchevski, Günnemann, "Pitfalls of Graph Neural Network Evaluation", 2018 (github.com/shchur/gnn-benchmark).
Attributes are binarised and arcs made undirected, as PyG's ``Amazon`` does.
"""

from fedgraph.data.base import npz, published

DATASETS = published.records_of("amazon")
load = published.loader(DATASETS, npz.read_gnn_benchmark, published.PublishedData.generated)
