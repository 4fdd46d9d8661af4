"""The full citation networks Cora_ML and CiteSeer of Bojchevski & Günnemann.

"Deep Gaussian Embedding of Graphs: Unsupervised Inductive Learning via Ranking", ICLR 2018
(github.com/abojchevski/graph2gauss). Citations are made undirected, attributes binarised, as PyG's ``CitationFull`` does.
"""

from fedgraph.data.base import npz, published

DATASETS = published.records_of("citation_full")
load = published.loader(DATASETS, npz.read_gnn_benchmark, published.PublishedData.generated)
