"""A scenario file: read, checked, drafted and described."""
