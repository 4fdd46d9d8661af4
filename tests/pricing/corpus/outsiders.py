"""Configurations that are wrong in one place each, as somebody who wants a low price would write them, with their truths."""

from __future__ import annotations

from tests.pricing.corpus import outsiders_flower, outsiders_opacus, outsiders_others, visitors

C = [*outsiders_opacus.C, *outsiders_flower.C, *outsiders_others.C, *visitors.C]
