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

from fedgraph.methods.base import column_ranks as column_ranks
from fedgraph.methods.base import examples as examples
from fedgraph.methods.base import method_kinds as method_kinds
from fedgraph.methods.base import noisy_hops as noisy_hops
from fedgraph.methods.base import occurrences as occurrences
from fedgraph.methods.base import seen as seen
from fedgraph.methods.base.method_offers import MethodReads as MethodReads
from fedgraph.methods.base.method_offers import MethodSituation as MethodSituation
from fedgraph.methods.base.method_offers import Offers as Offers
from fedgraph.methods.base.method_offers import method_bibtex as method_bibtex
from fedgraph.methods.base.plan import PLAN_WITHOUT_NOISE as PLAN_WITHOUT_NOISE
from fedgraph.methods.base.plan import Model as Model
from fedgraph.methods.base.plan import Plan as Plan
from fedgraph.methods.base.plan import PlanInbox as PlanInbox
from fedgraph.methods.base.plan import PlanSchedule as PlanSchedule
from fedgraph.methods.base.plan import PlanSent as PlanSent
from fedgraph.methods.base.plan import PlanStreams as PlanStreams
from fedgraph.methods.base.plan import PlanSums as PlanSums
from fedgraph.methods.base.plan import State as State
from fedgraph.methods.base.plan import block_path as block_path
from fedgraph.methods.base.plan import client_path as client_path
from fedgraph.methods.base.plan import gradient_std as gradient_std
from fedgraph.methods.base.plan import require_received as require_received
from fedgraph.methods.base.public_facts import FACTS_ATTRIBUTES_PUBLIC as FACTS_ATTRIBUTES_PUBLIC
from fedgraph.methods.base.public_facts import FACTS_TESTED_IN_PUBLIC as FACTS_TESTED_IN_PUBLIC
from fedgraph.methods.base.public_facts import Budget as Budget
from fedgraph.methods.base.public_facts import ClearFacts as ClearFacts
from fedgraph.methods.base.public_facts import PublicCalibrationFact as PublicCalibrationFact
from fedgraph.methods.base.public_facts import PublicCutEdgeFacts as PublicCutEdgeFacts
from fedgraph.methods.base.public_facts import PublicFacts as PublicFacts
from fedgraph.methods.base.public_facts import assume_public_derived_facts as assume_public_derived_facts
from fedgraph.methods.base.public_facts import assume_public_facts as assume_public_facts
from fedgraph.methods.base.public_facts import assume_public_setting as assume_public_setting
from fedgraph.methods.base.public_facts import guarantee_from_public_facts as guarantee_from_public_facts
from fedgraph.methods.base.public_facts import require_public_attributes as require_public_attributes
from fedgraph.methods.base.public_facts import require_public_test_graph as require_public_test_graph
