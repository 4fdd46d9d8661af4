"""The contract of an attack by name, and what attacks share.

A file of ``fedgraph/attacks`` defines

    REFERENCE                        its paper: authors, place, year, arXiv number
    NEEDS                            one phrase: what the attacker must know
    VIEWER                           the ``privacy.Viewer`` whose view is enough (who sees more can do it, too)
    GAME                             what is in question: ``nodes``, ``edges``, ``clients``, or a game of its own
                                     (``base.coin_game.OwnCoinGame``)
    Params                           pydantic model, frozen, unknown keys forbidden
    refuses(made) → str | None       why it does not apply to a plan, as one phrase; None: it applies
    attack(params, scene) → SceneFinding  scores and truth, as ``attack_scene.find_members`` or ``find_edges`` makes them, and
                                     ``metrics``, columns of the table as ``<name>_<metric>``; ``base.named`` adds the others

A scenario names it: ``attack: {named: [{attack: lira}]}``. An installed package offers one as an entry point of
``fedgraph.attacks``.

``whole_run`` and ``canary_graphs`` are the strongest attacks here, of no paper: units that enter by a coin are read in what was
released. ``coin_game`` has the canaries, coins for real nodes and edges, and shadow models. ``attack_scene`` is what an
attack may look at, also single messages of clients for a server that reads them or chooses the model.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
