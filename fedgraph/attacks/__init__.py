"""Attacks on whole methods: what a trained model, a message or an answer gives away.

``whole_run`` and ``canary_graphs`` plant units by secret coins, train once, and turn right guesses into a lower
bound on ε (``audit.one_run``). ``named`` runs the attacks of papers, one file each. ``coin_game`` and ``attack_scene`` say what
an attacker knows and how guesses are scored.

A new attack is one file here or an entry point ``fedgraph.attacks``; ``attacks.base`` has its contract.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
