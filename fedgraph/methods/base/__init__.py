"""The contract of a method: what its one file must hold.

A method module defines

    REFERENCE                                   bibtex of its paper (``bibtex`` reads papers.bib), printed in every report
    Params                                      pydantic model, frozen, unknown keys forbidden
    plan(params, facts, budget) → Plan[P, M]    every release it will make, priced, before any private data
    start(plan, rng) → State[S]                 round 0
    prepare(plan, subgraph) → W                 a client's own arrays, made once and kept at the client
    client(plan, work, model, round_, streams, desk) → dict of released values
    server(plan, state, inbox) → State[S]       one round's merge
    predict(plan, state, graph) → [n, c]        of a classifier: scores of the asked graph
    answers, in_clear                           of an embedder (``methods.base.kinds``)
    scores(plan, state, pairs) → [m]            of a linker: scores of pairs of nodes
    OFFERS: Offers[P, M, W, S]                  its kind, its situations, and everything that not every method can do

and nothing is registered anywhere else. P are its settings (``Params``), M is what ``plan`` made of them and of public
facts, W is what a client prepares, S is what its server remembers: each is a type of the method's own. Whoever needs the
methods with an ability asks ``kinds.names_offering``. A central method is the same file with one client that holds the whole
graph, so *central or federated* is a word in a scenario, not a second code path.
"""

from fedgraph.methods.base import noisy_hops as noisy_hops
from fedgraph.methods.base import seen as seen
from fedgraph.methods.base.facts import ATTRIBUTES_PUBLIC as ATTRIBUTES_PUBLIC
from fedgraph.methods.base.facts import NOTHING_DERIVED as NOTHING_DERIVED
from fedgraph.methods.base.facts import TESTED_IN_PUBLIC as TESTED_IN_PUBLIC
from fedgraph.methods.base.facts import AttendanceRule as AttendanceRule
from fedgraph.methods.base.facts import Budget as Budget
from fedgraph.methods.base.facts import Calibration as Calibration
from fedgraph.methods.base.facts import ClearFacts as ClearFacts
from fedgraph.methods.base.facts import CutEdges as CutEdges
from fedgraph.methods.base.facts import Derived as Derived
from fedgraph.methods.base.facts import Membership as Membership
from fedgraph.methods.base.facts import PublicFacts as PublicFacts
from fedgraph.methods.base.facts import PublicPart as PublicPart
from fedgraph.methods.base.facts import Sizes as Sizes
from fedgraph.methods.base.facts import derived_assumptions as derived_assumptions
from fedgraph.methods.base.facts import guarantee_of as guarantee_of
from fedgraph.methods.base.facts import public_assumptions as public_assumptions
from fedgraph.methods.base.facts import require_attributes as require_attributes
from fedgraph.methods.base.facts import require_test_graph as require_test_graph
from fedgraph.methods.base.facts import setting_assumptions as setting_assumptions
from fedgraph.methods.base.offers import Draft as Draft
from fedgraph.methods.base.offers import Offers as Offers
from fedgraph.methods.base.offers import Reads as Reads
from fedgraph.methods.base.offers import Situation as Situation
from fedgraph.methods.base.offers import bibtex as bibtex
from fedgraph.methods.base.plan import NO_NOISE as NO_NOISE
from fedgraph.methods.base.plan import Inbox as Inbox
from fedgraph.methods.base.plan import Model as Model
from fedgraph.methods.base.plan import Plan as Plan
from fedgraph.methods.base.plan import Schedule as Schedule
from fedgraph.methods.base.plan import Sent as Sent
from fedgraph.methods.base.plan import State as State
from fedgraph.methods.base.plan import Streams as Streams
from fedgraph.methods.base.plan import Sums as Sums
from fedgraph.methods.base.plan import Watch as Watch
from fedgraph.methods.base.plan import block_path as block_path
from fedgraph.methods.base.plan import client_path as client_path
from fedgraph.methods.base.plan import gradient_std as gradient_std
from fedgraph.methods.base.plan import require_received as require_received
