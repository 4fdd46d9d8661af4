"""The contract of a method: what its one file must hold.

A method module defines

    REFERENCE                                   bibtex of its paper, printed in every report
    KIND                                        ``classifier`` or ``embedder`` (``methods.base.kinds``)
    SITUATIONS                                  where it can be used: the contract tests run it in each of them
    Params                                      pydantic model, frozen, unknown keys forbidden
    plan(params, facts, budget) → Plan[P, M]    every release it will make, priced, before any private data
    start(plan, rng) → State[S]                 round 0
    prepare(plan, subgraph) → work              a client's own arrays, made once and kept at the client
    client(plan, work, model, round_, streams, desk) → dict of released values
    server(plan, state, inbox) → State[S]       one round's merge
    prepare_together(plan, joint, starts) → work   optional: of several clients, whose disjoint union is ``joint`` and whose
                                                first rows are ``starts``; None where each shall work alone
    together(plan, work, model, round_, streams, desk)   optional: the sum over those clients of what ``client`` releases
    predict(plan, state, graph) → scores [n, c] of a classifier: inference
    evidence(plan, state, graph, units) → [m]   optional, for attacks: a log-likelihood ratio, or like one, of version 1 of
                                                each unit in the known ``graph`` (``attacks.base.canaries``), or None
    ANY_BROADCAST = True                        only where the proof holds whatever model clients are sent (setting: active)
    TRUSTS_NOBODY = True                        only where every node protects its own data before it leaves
    says(plan, state) → sentences               optional: what the training found, for the report
    reads_rounds(plan) → bool                   optional, for attacks: keep (model, inbox) of every round in ``State.seen``

and nothing else is registered anywhere. P are its settings (``Params``), M is what ``plan`` made of them and of public
facts, S is what its server remembers: each of the three is a type of the method's own. A central method is the same
file with one client that holds the whole graph, so *central or federated* is a word in a scenario, not a second code path.
"""

from fedgraph.methods.base import seen as seen
from fedgraph.methods.base.facts import Budget as Budget
from fedgraph.methods.base.facts import Calibration as Calibration
from fedgraph.methods.base.facts import PublicFacts as PublicFacts
from fedgraph.methods.base.facts import public_assumptions as public_assumptions
from fedgraph.methods.base.facts import setting_assumptions as setting_assumptions
from fedgraph.methods.base.facts import several_colluders as several_colluders
from fedgraph.methods.base.kinds import Kind as Kind
from fedgraph.methods.base.kinds import Situation as Situation
from fedgraph.methods.base.plan import Plan as Plan
from fedgraph.methods.base.plan import gradient_std as gradient_std
from fedgraph.methods.base.state import Inbox as Inbox
from fedgraph.methods.base.state import State as State
from fedgraph.methods.base.state import Streams as Streams
from fedgraph.methods.base.state import block_path as block_path
from fedgraph.methods.base.state import client_path as client_path
