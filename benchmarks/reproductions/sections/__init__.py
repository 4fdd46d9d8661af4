"""Plugins of ``fedgraph.report.sections`` that only scenarios of this folder use."""
