"""What an adversary does, one attack in one file: ``attack: lira`` in a scenario loads ``fedgraph/attacks/lira.py``.

The files here are the attacks that people know by name. ``base`` is what they stand on: the game that is played
(``base.coin_game``), what an attack may look at (``base.attack_scene``), canaries, and the attacks that read released values.
"""
