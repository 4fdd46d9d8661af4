"""A cell of a run: what names it, what it leaves behind, and where that is kept."""
