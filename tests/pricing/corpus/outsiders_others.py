# ruff: noqa: E501  (one configuration or one edit a line)
"""Configurations that are wrong in one place each, as somebody who wants a low price would write them: FLARE, TensorFlow, JAX,
FederatedScope, pfl.
"""

from __future__ import annotations

import json

from tests.pricing.corpus import truths
from tests.pricing.corpus.cases import FLARE, JOB, TFP, Case, Edits, edited, shuffled
from tests.pricing.corpus.truths import INF

C: list[Case] = []
# FLARE


def fl(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = JOB
) -> None:
    C.append(
        Case(
            f"outside flare {name}",
            1,
            {"job.py": edited(base, edits)},
            truth,
            exact,
            {"parameters": 1000.0} if given is None else given,
        )
    )


svt5, svt10 = truths.svt(1000, 5), truths.svt(1000, 10)
fl("two workflows", [("for i in", "job.to_server(FedAvg(num_clients=3, num_rounds=5))\nfor i in")], svt10)
fl(
    "epsilon later",
    [("    job.to(SVTPrivacy(), site,", "    f = SVTPrivacy()\n    f.noise_var = 1.0\n    job.to(f, site,")],
    truths.svt(1000, 5, noise_var=1.0),
)
fl("if", [("    job.to(SVTPrivacy(), site,", "    if i != 2:\n        job.to(SVTPrivacy(), site,")], INF)
fl("other script", [("for i in", "job.to(ScriptRunner(script='u.py'), 'site-9')\nfor i in")], INF)
fl(
    "full",
    [
        ('params_transfer_type="DIFF"', 'params_transfer_type="FULL"'),
        ("SVTPrivacy()", "SVTPrivacy(data_kinds=['WEIGHT_DIFF'])"),
    ],
    INF,
)
fl("rounds", [("num_rounds=5", "num_rounds=50")], truths.svt(1000, 50))
job = json.loads(json.dumps(FLARE))
job["task_result_filters"][0]["filters"][0]["args"] = {"fraction": 1.0, "noise_var": 5.0}
C.append(
    Case(
        "outside flare loud",
        1,
        {"config_fed_client.json": json.dumps(job)},
        truths.svt(1000, 5, 1.0, 0.1, 5.0),
        False,
        {"parameters": 1000.0, "rounds": 5.0},
    )
)
ser = {"format_version": 2, "workflows": [{"args": {"num_rounds": 5}}, {"args": {"num_rounds": 7}}]}
C.append(
    Case(
        "outside flare folder flows",
        6,
        {
            "meta.json": "{}",
            "app/config/config_fed_server.json": json.dumps(ser),
            "app/config/config_fed_client.json": json.dumps(FLARE),
        },
        truths.svt(1000, 12),
        False,
        {"parameters": 1000.0},
        ".",
    )
)
# TFP


def tf(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = TFP
) -> None:
    C.append(
        Case(f"outside tfp {name}", 6, {"t.py": edited(base, edits)}, truth, exact, {"delta": 1e-5} if given is None else given)
    )


fit = "    model.fit(x, y, epochs=FLAGS.epochs, batch_size=100)\n"
tf("fit twice", [(fit, fit + fit)], shuffled(2.0, 18))
tf("fit loop", [(fit, "    for i in range(5):\n    " + fit)], shuffled(2.0, 45))
tf("fit unknown loop", [(fit, "    while more():\n    " + fit)], shuffled(2.0, 90))
tf("repeat", [("model.fit(x, y, epochs", "model.fit(data.repeat(10).batch(100), epochs")], shuffled(2.0, 90))
tf("microbatches", [("learning_rate=0.1", "num_microbatches=10, learning_rate=0.1")], truths.gaussian(2 * 3 / 2.0, 1e-5))
tf("compiled other", [("    model.fit", "    model.compile(optimizer='adam')\n    model.fit")], INF)
tf("compiled right", [("    model.fit", "    model.compile(optimizer=optimizer)\n    model.fit")], shuffled(2.0), None, True)
tf("noise later", [("    model.fit", "    optimizer._noise_multiplier = 0.5\n    model.fit")], shuffled(0.5))
tf(
    "second model",
    [
        (
            "    model.fit",
            "    second = DPKerasSGDOptimizer(l2_norm_clip=1.0, noise_multiplier=0.5, learning_rate=0.1)\n    other.compile(second)\n    other.fit(x, y, epochs=9)\n    model.compile(optimizer)\n    model.fit",
        )
    ],
    shuffled(0.5),
)
tf("clip", [("l2_norm_clip=1.0", "l2_norm_clip=0.0")], INF)
tf(
    "override",
    [("flags.DEFINE_integer", "flags.FLAGS.set_default('noise_multiplier', 0.5)\nflags.DEFINE_integer")],
    shuffled(0.5),
)
tf("override attribute", [("    optimizer = ", "    FLAGS.noise_multiplier = 0.5\n    optimizer = ")], shuffled(0.5))
tf(
    "eager loop",
    [(fit, "    for e in range(30):\n        for x in ds:\n            optimizer.apply_gradients(g)\n")],
    shuffled(2.0, 30),
)
# JAX
J = """import jax_privacy, dp_accounting
from jax_privacy import accounting, noise_addition
epochs, batch, size = 10, 100, 1000
steps = epochs * size // batch
make = lambda s: accounting.dpsgd_event(s, steps, sampling_prob=batch / size)
z = dp_accounting.calibrate_dp_mechanism(dp_accounting.pld.PLDAccountant, make, target_epsilon=1.0, target_delta=1e-5)
grad = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0)
privatizer = noise_addition.gaussian_privatizer(stddev=z * grad.sensitivity(), prng_key=key)
sampler = jax_privacy.batch_selection.CyclicPoissonSampling(sampling_prob=batch / size, iterations=steps)
for step in range(steps):
    g = grad(params, next(data))
    noisy, state = privatizer.update(g, state)
"""


def jx(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = J
) -> None:
    C.append(Case(f"outside jax {name}", 5, {"t.py": edited(base, edits)}, truth, exact, {} if given is None else given))


jx("right", [], 1.0, exact=True)
jx("more steps", [("range(steps)", "range(5 * steps)")], 2.5)
jx("less noise", [("stddev=z * grad", "stddev=0.1 * z * grad")], 20.0)
jx("no update", [("    noisy, state = privatizer.update(g, state)\n", "    noisy = g\n")], INF)
jx("divided", [("stddev=z * grad.sensitivity()", "stddev=z / 7")], 10.0)
F = (
    J.replace(
        "make = lambda s: accounting.dpsgd_event(s, steps, sampling_prob=batch / size)",
        "event = accounting.fixed_dpsgd_event(2.0, steps, dataset_size=size, batch_size=batch)",
    )
    .replace(
        "z = dp_accounting.calibrate_dp_mechanism(dp_accounting.pld.PLDAccountant, make, target_epsilon=1.0, target_delta=1e-5)",
        "z = 2.0\nprint(dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE).compose(event).get_epsilon(1e-5))",
    )
    .replace(
        "sampler = jax_privacy.batch_selection.CyclicPoissonSampling(sampling_prob=batch / size, iterations=steps)",
        "sampler = jax_privacy.batch_selection.FixedBatchSampling(batch_size=batch, iterations=steps)",
    )
)
jx("fixed", [], 2.0, {"delta": 1e-5}, base=F)
jx("fixed replace", [("batch_size=batch)\nz", "batch_size=batch, replace=True)\nz")], 6.0, {"delta": 1e-5}, base=F)
jx("fixed clear", [("stddev=z *", "stddev=0 *")], INF, {"delta": 1e-5}, base=F)
# FederatedScope
FS = "federate: {total_round_num: 1}\nvertical: {use: true, algo: xgb, protect_object: feature_order, protect_method: dp, protect_args: [{bucket_num: 10, epsilon: 1.0}]}\n"


def fs(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = FS
) -> None:
    C.append(
        Case(
            f"outside federatedscope {name}",
            6,
            {"f.yaml": edited(base, edits)},
            truth,
            exact,
            {"features": 3.0} if given is None else given,
        )
    )


fs("dp", [], 30.0)
fs("unused", [("use: true", "use: false")], INF)
fs("object", [("feature_order", "grad_and_hess")], INF)
fs("no object", [("protect_object: feature_order, ", "")], INF)
fs("linear", [("algo: xgb", "algo: lr")], INF)
fs("no epsilon", [(", epsilon: 1.0", "")], INF)
fs("flag off", [("vertical: {use: true", "nbafl: {use: false}\nvertical: {use: false")], INF)
# sgdmf: steps 1 a round, batch visits; the rating may be in every round's batch with rate q
C.append(
    Case(
        "outside sgdmf",
        6,
        {
            "f.yaml": "federate: {total_round_num: 100}\ntrain: {local_update_steps: 10, batch_or_epoch: batch}\ndataloader: {batch_size: 10}\nsgdmf: {use: true, R: 5.0, epsilon: 4.0, delta: 0.5}\n"
        },
        1000.0,
        False,
        {"batch share": 0.01},
    )
)
# pfl
P = """from pfl.privacy import CentrallyAppliedPrivacyMechanism, GaussianMechanism, PLDPrivacyAccountant
from pfl.aggregate.simulate import SimulatedBackend
accountant = PLDPrivacyAccountant(num_compositions=100, sampling_probability=0.1, mechanism='gaussian', epsilon=2.0, delta=1e-5)
mechanism = CentrallyAppliedPrivacyMechanism(GaussianMechanism.from_privacy_accountant(1.0, accountant))
backend = SimulatedBackend(training_data=t, val_data=v, postprocessors=[mechanism])
algorithm = FederatedAveraging()
algorithm.run(algorithm_params=NNAlgorithmParams(central_num_iterations=100, train_cohort_size=100), backend=backend)
"""


def pf(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = P
) -> None:
    C.append(Case(f"outside pfl {name}", 5, {"t.py": edited(base, edits)}, truth, exact, {} if given is None else given))


pf("right", [], 2.0, exact=True)
pf("more rounds", [("central_num_iterations=100", "central_num_iterations=400")], 4.0)
pf("not given", [("postprocessors=[mechanism]", "postprocessors=[]")], INF)
pf("noise scale", [("delta=1e-5)", "delta=1e-5, noise_scale=0.1)")], 2.0)
pf("epsilon", [("epsilon=2.0", "epsilon=20.0")], 20.0)
pf("no backend", [("postprocessors=[mechanism]", "postprocessors=None")], INF)
tf("fit by place", [("epochs=FLAGS.epochs, batch_size=100", "100, 90")], shuffled(2.0, 90))
jx(
    "two runs",
    [
        ("for step in range(steps):", "for run in range(3):\n  for step in range(steps):"),
        ("    g = grad", "      g = grad"),
        ("    noisy, state", "      noisy, state"),
    ],
    1.6,
)
pf(
    "two runs",
    [
        (
            "algorithm.run(",
            "FederatedAveraging().run(algorithm_params=NNAlgorithmParams(central_num_iterations=100, train_cohort_size=100), backend=backend)\nalgorithm.run(",
        )
    ],
    2.7,
)
