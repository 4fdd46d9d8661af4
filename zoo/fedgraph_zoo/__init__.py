"""Methods and attacks that stand beside fedgraph as evidence, found through entry points as anybody's package would be.

``methods`` and ``attacks`` hold one plugin a file, named in ``pyproject.toml``. What a plugin needs of its own stands here:
``staged`` (ProGAP's network), ``degree_prior`` (Blink's graph), ``heter_poisson_claim`` (a published price). No method here
reaches into another, and no price is computed here: events, bounds and accountants are fedgraph's.
"""
