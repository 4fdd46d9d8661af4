"""What attacks stand on, and the contract of an attack's file.

A file of ``fedgraph/attacks`` defines

    REFERENCE                        who described it: names, place, year, arXiv number
    NEEDS                            one sentence: what the attacker must know
    VIEWER                           whose view is enough, a ``privacy.units.Viewer`` (who sees more can do it, too)
    GAME                             what is in question: ``nodes``, ``edges``, ``clients``, or a game of its own
                                     (``base.coin_game.OwnCoinGame``)
    Params                           pydantic model, frozen, unknown keys forbidden
    refuses(made) → str | None       why it says nothing about a plan, as one sentence, or None
    attack(params, scene) → SceneFinding  scores and truth, as ``attack_scene.find_members`` or ``find_edges`` makes them, and
                                     ``metrics``, columns of the table as ``<name>_<metric>``; ``base.named`` counts the rest

and is named by a scenario: ``attack: {named: [{attack: lira}]}``. An installed package offers one as
an entry point of ``fedgraph.attacks``.

canaries, whole_run, canary_graphs: the strongest attacks we know, which no paper names: units that enter by a coin, read in
what was released. coin_game: coins for real nodes and edges, shadow models. attack_scene: what an attack may look at, single
clients' messages among it, for servers that read or choose them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
