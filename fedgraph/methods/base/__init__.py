"""The contract of a method: what its one file must hold.

A method module defines

    REFERENCE                                   bibtex of its paper (``method_bibtex``), printed in every report
    Params                                      pydantic model, frozen, unknown keys forbidden
    plan(params, facts, budget) → Plan[P, M]    every release it will make, priced, before any private data
    start(plan, rng) → State[S]                 round 0
    prepare(plan, subgraph) → W                 a client's own arrays, made once and kept at the client
    client(plan, work, model, round_, streams, desk) → dict of released values
    server(plan, state, inbox) → State[S]       one round's merge
    predict(plan, state, graph) → [n, c]        of a classifier: scores of the asked graph
    answers, in_clear                           of an embedder (``methods.base.method_kinds``)
    scores(plan, state, pairs) → [m]            of a linker: scores of pairs of nodes
    OFFERS: Offers[P, M, W, S]                  its kind, its situations, and everything that not every method can do

and registers nothing. P are its settings (``Params``), M is what ``plan`` made of them and of public facts, W is what a client
prepares, S is what the server remembers: types of the method's own. A central method is the same file with one client that
holds the whole graph, so *central or federated* is a word in a scenario, not a second code path.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
