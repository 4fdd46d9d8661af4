"""Texts that users write: read with their lines, checked against settings."""
