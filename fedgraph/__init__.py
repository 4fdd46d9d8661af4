"""fedgraph: private learning on graphs, central and federated, side by side."""
