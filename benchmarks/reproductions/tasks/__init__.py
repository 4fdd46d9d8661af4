"""Plugins of ``fedgraph.tasks`` that only scenarios of this folder use."""
