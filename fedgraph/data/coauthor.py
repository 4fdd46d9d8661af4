"""Co-authorship networks CS and Physics: authors, keywords of their papers, most active field as label.

Shchur, Mumme, Bojchevski, Günnemann, "Pitfalls of Graph Neural Network Evaluation", 2018 (github.com/shchur/gnn-benchmark).
Attributes are binarised, as PyG's ``Coauthor`` does. CS is the ``ms_academic`` of PPNP, PPRGo and DPAR.
"""

from fedgraph.data.base import npz, published

DATASETS = published.records_of("coauthor")
load = published.loader(DATASETS, npz.read_gnn_benchmark, published.PublishedData.generated)
