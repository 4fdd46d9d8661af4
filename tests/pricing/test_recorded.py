"""What is recorded of a run: our own loop, and real Opacus, Flower and FLARE where they are installed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedgraph
from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.errors import PricingError
from fedgraph.pricing import Recorded
from tests.pricing import truths

pytestmark = pytest.mark.filterwarnings("ignore")
DELTA = 1e-5
PERSON = "examples of one person"


def total(recording: Recorded, given: dict[str, float] | None = None, delta: float = DELTA) -> float | None:
    priced = recording.price(delta, given).headline.total
    return None if priced is None else priced.epsilon


def dp_sgd(recording: Recorded, data: object, steps: int, rate: float = 0.05, noise: float = 1.0) -> np.ndarray:
    """DP-SGD of a mean in numpy, which tells what it does."""
    rows, model, coins = np.asarray(data, dtype=float), np.zeros(np.shape(data)[1]), np.random.default_rng(0)
    for _ in range(steps):
        recording.batch(data, rate=rate)
        drawn = rows[coins.random(len(rows)) < rate]
        gradients = model - drawn
        clipped = gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1.0)
        recording.noised(noise, clip=1.0)
        model = model - 0.1 * (clipped.sum(0) + noise * coins.normal(size=len(model))) / (rate * len(rows))
    return np.asarray(model)


def table(rows: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, 3))


def test_a_loop_of_ones_own_has_the_price_of_its_steps() -> None:
    with fedgraph.recorded() as r:
        dp_sgd(r, table(), 30)
    quote = r.price(DELTA)
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == pytest.approx(truths.poisson(1.0, 0.05, 30, DELTA), rel=6e-3)
    sight = " ".join(quote.reading.unprotected)
    assert all(
        words in sight for words in ("other people's rows", "steps in clear on the same data", "weights that came from files")
    )


def test_trainings_on_the_same_rows_compose_and_other_rows_are_asked_about() -> None:
    same, other = table(), table(seed=1)
    with fedgraph.recorded() as r:
        dp_sgd(r, same, 10)
        dp_sgd(r, same, 20, noise=2.0)
        dp_sgd(r, other, 10)
    worst, apart = total(r), total(r, {"data sets hold different people": 1})
    with fedgraph.recorded() as alone:
        dp_sgd(alone, same, 10)
        dp_sgd(alone, same, 20, noise=2.0)
    assert apart == pytest.approx(total(alone))
    assert worst is not None
    assert apart is not None
    assert worst > apart > truths.poisson(1.0, 0.05, 10, DELTA)


def test_parts_of_one_data_set_are_told_apart_by_their_rows() -> None:
    class Subset:
        def __init__(self, dataset: object, indices: range) -> None:
            self.dataset, self.indices = dataset, indices

        def __len__(self) -> int:
            return len(self.indices)

    def priced(*parts: range) -> float | None:
        whole = range(100)
        with fedgraph.recorded() as r:
            for indices in parts:
                part = Subset(whole, indices)
                for _ in range(20):
                    r.batch(part, rate=0.05)
                    r.noised(1.0)
        return total(r)

    one, two = truths.poisson(1.0, 0.05, 20, DELTA), truths.poisson(1.0, 0.05, 40, DELTA)
    assert priced(range(50), range(50, 100)) == pytest.approx(one, rel=6e-3)
    assert priced(range(51), range(50, 100)) == pytest.approx(two, rel=6e-3), "row 50 is in both"
    assert priced(range(50), range(50)) == pytest.approx(two, rel=6e-3)


@pytest.mark.parametrize("sampling", ["shuffled", "none"])
def test_without_coins_nothing_is_amplified(sampling: str) -> None:
    with fedgraph.recorded() as r:
        for _ in range(3):
            for _ in range(4):
                r.batch(r, rate=0.25, sampling=sampling, rows=8)
                r.noised(2.0)
            r.new_pass()
    times = 3 if sampling == "shuffled" else 12
    assert total(r) == pytest.approx(truths.gaussian(math.sqrt(times) / 2.0, DELTA), rel=1e-6)


def test_a_batch_of_several_sums_or_of_no_loader_gains_nothing_by_sampling() -> None:
    data = table()
    with fedgraph.recorded() as reused:
        for _ in range(5):
            reused.batch(data, rate=0.01)
            reused.noised(1.0)
            reused.noised(1.0)
    with fedgraph.recorded() as unseen:
        for _ in range(10):
            unseen.noised(1.0)
    assert total(reused) == total(unseen) == pytest.approx(truths.gaussian(math.sqrt(10), DELTA), rel=1e-6)


def test_several_draws_in_one_sum_cost_what_several_records_cost() -> None:
    data = table()
    with fedgraph.recorded() as r:
        for _ in range(10):
            for _ in range(3):
                r.batch(data, rate=0.05)
            r.noised(1.0)
    one = truths.poisson(1.0, 0.05, 10, DELTA)
    found = total(r)
    assert found == pytest.approx(pricing.price_records([r.record()], {"delta": DELTA}).headline.total.epsilon)  # type: ignore[union-attr]
    assert found is not None
    assert found > 2 * one


def test_steps_in_clear_and_standardised_rows_are_infinite_until_answered() -> None:
    data = table()
    with fedgraph.recorded() as r:
        dp_sgd(r, data, 5)
        r.clear(data)
    quote = r.price(DELTA)
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == math.inf
    [asked] = quote.asked
    assert total(r, {asked.unknown.name: 1}) == pytest.approx(truths.poisson(1.0, 0.05, 5, DELTA), rel=6e-3)
    with fedgraph.recorded() as other:
        dp_sgd(other, (data - data.mean(0)) / data.std(0), 5)
    assert total(other) == math.inf
    assert total(other, {"means and deviations are public": 1}) == pytest.approx(truths.poisson(1.0, 0.05, 5, DELTA), rel=6e-3)


def test_a_person_with_several_examples_is_priced_where_it_is_said() -> None:
    with fedgraph.recorded() as r:
        dp_sgd(r, table(), 10)
    few, many = total(r, {PERSON: 3}), total(r, {PERSON: 9})
    assert few is not None
    assert many is not None
    assert truths.poisson(1.0, 0.05, 10, DELTA) < few < many


def test_a_quote_of_a_run_can_be_fixed() -> None:
    with fedgraph.recorded() as r:
        dp_sgd(r, table(), 30)
    fix = r.price(DELTA, fix=0.5).fix
    assert fix is not None
    assert fix.settings is not None
    noise = float(fix.settings["noise_multiplier"])
    assert 0.49 < truths.poisson(noise, 0.05, 30, DELTA) <= 0.5


def test_nothing_seen_and_wrong_words_are_refused() -> None:
    with fedgraph.recorded() as r:
        pass
    with pytest.raises(PricingError, match="nothing private was seen"):
        r.price(DELTA)
    with pytest.raises(ValueError, match="a rate lies in"):
        r.batch([], rate=0)
    broken = {**r.record(), "fedgraph_record": 1}
    with pytest.raises(PricingError, match="fedgraph_record: found 1"):
        pricing.price_records([broken], {"delta": DELTA})


LOOP = """
import sys
import time
recorder = sys.modules["_fedgraph_recorder"]
r = next(finder.recording for finder in sys.meta_path if hasattr(finder, "recording"))
for _ in range(20):
    r.batch(sys, rate=0.05, rows=100)
    r.noised(1.0)
{more}
"""


@pytest.mark.parametrize(
    ("more", "limit", "status"), [("", "8", 0), ("", "0.1", 1), ("r.clear(sys)", "8", 1), ("sys.exit(3)", "8", 2)]
)
def test_a_command_is_run_and_judged(
    tmp_path: Path, more: str, limit: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP.format(more=more), encoding="utf-8")
    command = ["price", "--run", f"{sys.executable} {script}", "--given", "delta=1e-5", "--json", "--at-most", limit]
    assert cli.main(command) == status
    if status == 0:
        found = json.loads(capsys.readouterr().out)
        assert found["total"]["epsilon"] == pytest.approx(truths.poisson(1.0, 0.05, 20, DELTA), rel=6e-3)


CHILDREN = """
import multiprocessing, os, signal, sys
def work(steps):
    r = next(finder.recording for finder in sys.meta_path if hasattr(finder, "recording"))
    for _ in range(steps):
        r.batch(sys, rate=0.05, rows=100)
        r.noised(1.0)
    if len(sys.argv) > 1 and multiprocessing.parent_process():
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    work(5)
    for kind in ("fork", "spawn"):
        child = multiprocessing.get_context(kind).Process(target=work, args=(10,))
        child.start()
        child.join()
"""


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_children_are_counted_whether_they_end_or_are_killed(how: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(CHILDREN, encoding="utf-8")
    command = [sys.executable, str(script), "kill"] if how == "is killed" else [sys.executable, str(script)]
    whole = pricing.run(command, {"delta": DELTA}).headline.total
    assert whole is not None
    assert whole.epsilon == pytest.approx(truths.poisson(1.0, 0.05, 25, DELTA), rel=6e-3)


KILLED = """
import glob, os, signal, subprocess, sys, time
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"], stdout=subprocess.PIPE)
    child.stdout.readline()
    {parent}
    sys.exit()
import torch
r = next(finder.recording for finder in sys.meta_path if hasattr(finder, "recording"))
data = torch.utils.data.TensorDataset(torch.rand(100, 3))
model = torch.nn.Linear(3, 1)
for step in range(10**9):
    r.batch(data, rate=0.05)
    if step == 30:
        {child}
        print(flush=True)
        time.sleep(20)
        sys.exit()
    model(data.tensors[0]).sum().backward()
    r.noised(1.0)
"""


KILL = "child.kill(); child.wait()"
ITS_RECORD = "glob.glob(os.environ['FEDGRAPH_RECORD'] + '/*')[0]"


@pytest.mark.parametrize(
    ("child", "parent", "why"),
    [
        ("pass", KILL, ""),
        ("model(data.tensors[0]).sum().backward()", KILL, "1 optimizer steps at train.py"),
        ("pass", "pass", "ran on when the command had ended"),
        (f"open({ITS_RECORD}, 'a').write('1')", KILL, "ends in the middle of a line"),
        (f"open({ITS_RECORD}, 'a').write('1{{\\n')", KILL, "holds a line that is none"),
    ],
    ids=["between two steps", "after gradients", "not killed", "a torn line", "a broken line"],
)
def test_a_process_that_is_killed_costs_what_it_did(child: str, parent: str, why: str, tmp_path: Path) -> None:
    """30 steps; ∞ where more may have happened than its record shows."""
    script = tmp_path / "train.py"
    script.write_text(KILLED.format(child=child, parent=parent), encoding="utf-8")
    quote = pricing.run([sys.executable, str(script)], {"delta": DELTA})
    assert quote.headline.total is not None
    if why:
        assert quote.headline.total.epsilon == math.inf
        assert why in quote.headline.row.why
    else:
        assert quote.headline.total.epsilon == pytest.approx(truths.poisson(1.0, 0.05, 30, DELTA), rel=6e-3)


@pytest.mark.parametrize("how", ["os.closerange(3, 64)", f"import glob; os.remove({ITS_RECORD})"])
def test_who_cannot_write_what_it_does_does_no_more(how: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP.format(more=f"import os; {how}\nr.noised(1.0)\nsys.exit(0)"), encoding="utf-8")
    with pytest.raises(PricingError, match="ended with status 74"):
        pricing.run([sys.executable, str(script)], {"delta": DELTA})


def test_recording_imports_no_library() -> None:
    code = "import sys, fedgraph\nwith fedgraph.recorded() as r: r.noised(1.0)\nr.price(1e-5)\n"
    code += "sys.exit(any(name in sys.modules for name in ('torch', 'opacus', 'flwr', 'nvflare', 'ray')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Real libraries.


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name.partition('.')[0]} is not installed", exc_type=ImportError)


def training(rows: int = 60, batch: int = 6, **options: Any) -> tuple[Any, Any, Any, Any, Any]:
    """(model, optimizer, loader, data set, engine) of Opacus on a small table."""
    opacus, torch = package("opacus"), package("torch")
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.rand(rows, 4), torch.randint(0, 2, (rows,)))
    model, engine = torch.nn.Linear(4, 2), opacus.PrivacyEngine()
    made = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), max_grad_norm=1.0,
        data_loader=torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True), **{"noise_multiplier": 1.0, **options},
    )  # fmt: skip
    return *made, data, engine


def train(model: Any, optimizer: Any, loader: Any, epochs: int = 2) -> None:
    torch = package("torch")
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_opacus_is_counted_as_it_ran() -> None:
    package("opacus")
    with fedgraph.recorded() as r:
        model, optimizer, loader, _, engine = training()
        train(model, optimizer, loader)
        theirs = engine.get_epsilon(DELTA)
    quote = r.price(DELTA)
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == pytest.approx(truths.poisson(1.0, 0.1, 20, DELTA), rel=6e-3)
    assert quote.reading.published[0].epsilon == pytest.approx(theirs)


def test_opacus_beside_its_loader_is_not_amplified() -> None:
    """The loader that is walked counts, not the one that was made."""
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, _, data, _ = training()
        train(model, optimizer, torch.utils.data.DataLoader(data, batch_size=6, shuffle=True), 3)
    assert total(r) == pytest.approx(truths.gaussian(math.sqrt(3), DELTA), rel=1e-6)


def test_noise_that_changes_on_the_way_is_counted_step_by_step() -> None:
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        train(model, optimizer, loader, 1)
        optimizer.noise_multiplier = 0.5
        train(model, optimizer, loader, 1)
    found = total(r)
    assert found is not None
    assert truths.poisson(0.5, 0.1, 10, DELTA) < found < truths.poisson(0.5, 0.1, 20, DELTA)


def test_virtual_batches_are_one_draw() -> None:
    manager = package("opacus.utils.batch_memory_manager").BatchMemoryManager
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        with manager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as small:
            train(model, optimizer, small)
    assert total(r) == pytest.approx(truths.poisson(1.0, 0.1, 20, DELTA), rel=6e-3)


def test_parts_of_clients_stand_side_by_side() -> None:
    torch, opacus = package("torch"), package("opacus")
    data = torch.utils.data.TensorDataset(torch.rand(60, 4), torch.randint(0, 2, (60,)))
    parts = torch.utils.data.random_split(data, [20, 20, 20])
    with fedgraph.recorded() as r:
        for _ in range(2):
            for part in parts:
                model = torch.nn.Linear(4, 2)
                made = opacus.PrivacyEngine().make_private(
                    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0,
                    max_grad_norm=1.0, data_loader=torch.utils.data.DataLoader(part, batch_size=4),
                )  # fmt: skip
                train(*made, epochs=1)
    assert total(r) == pytest.approx(truths.poisson(1.0, 0.2, 10, DELTA), rel=6e-3)


def test_the_same_tensors_in_a_new_data_set_are_the_same_rows() -> None:
    torch = package("torch")
    tables = torch.rand(60, 4), torch.zeros(60)
    with fedgraph.recorded() as r:
        for _ in range(3):
            loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*(t.clone() for t in tables)), batch_size=20)
            for _ in loader:
                r.noised(2.0)
    assert not r.price(DELTA).asked
    assert total(r) == pytest.approx(truths.gaussian(math.sqrt(3) / 2, DELTA), rel=1e-6)


def test_a_pass_whose_noise_changes_counts_for_both() -> None:
    data = table()
    with fedgraph.recorded() as r:
        for noise in (2.0, 1.0):
            r.batch(data, rate=0.5, sampling="shuffled")
            r.noised(noise)
    assert total(r) == pytest.approx(truths.gaussian(math.sqrt(1 / 4 + 1), DELTA), rel=1e-6)


def test_clear_steps_beside_opacus_are_infinite() -> None:
    torch = package("torch")

    def beside(kind: str) -> float | None:
        with fedgraph.recorded() as r:
            model, optimizer, loader, data, _ = training()
            train(model, optimizer, loader, 1)
            if kind == "inside":
                train(
                    model,
                    type("Raw", (), {"zero_grad": optimizer.zero_grad, "step": optimizer.original_optimizer.step}),
                    loader,
                    1,
                )
            if kind == "baseline":
                other = torch.nn.Linear(4, 2)
                train(other, torch.optim.SGD(other.parameters(), lr=0.1), torch.utils.data.DataLoader(data, batch_size=6), 1)
            if kind == "no loader":
                other = torch.nn.Linear(4, 2)
                torch.optim.SGD(other.parameters(), lr=0.1).step()
            if kind == "no noise":
                optimizer.add_noise = lambda: None
                train(model, optimizer, loader, 1)
        return total(r)

    assert beside("") == pytest.approx(truths.poisson(1.0, 0.1, 10, DELTA), rel=6e-3)
    assert beside("inside") == beside("baseline") == beside("no loader") == beside("no noise") == math.inf


def test_weights_from_a_file_and_graph_layers_are_asked_about(tmp_path: Path) -> None:
    torch = package("torch")
    torch.save(torch.nn.Linear(4, 2).state_dict(), tmp_path / "weights.pt")
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        model._module.load_state_dict(torch.load(tmp_path / "weights.pt"))
        train(model, optimizer, loader, 1)
    assert total(r) == math.inf
    one = truths.poisson(1.0, 0.1, 10, DELTA)
    assert total(r, {"weights are public": 1}) == pytest.approx(one, rel=6e-3)
    loaders = package("torch_geometric.loader")
    graph = package("torch_geometric.data").Data(x=torch.rand(8, 4), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with fedgraph.recorded() as graphs:
        for _ in loaders.DataLoader([graph] * 8, batch_size=2):
            graphs.noised(1.0)
    assert graphs.price(DELTA).headline.total is None
    assert [asked.unknown.name for asked in graphs.price(DELTA).asked] == [PERSON]
    assert total(graphs, {PERSON: 1}) == pytest.approx(truths.gaussian(1.0, DELTA), rel=1e-6)


def test_watching_ends_with_the_block() -> None:
    torch = package("torch")
    before = torch.utils.data.DataLoader.__iter__, torch.load, torch.nn.Module.load_state_dict
    with fedgraph.recorded():
        assert torch.load is not before[1]
    assert (torch.utils.data.DataLoader.__iter__, torch.load, torch.nn.Module.load_state_dict) == before
    assert not [finder for finder in sys.meta_path if hasattr(finder, "recording")]


def test_flowers_mod_is_counted_for_each_client(monkeypatch: pytest.MonkeyPatch) -> None:
    app = package("flwr.app")
    identity = package("flwr.supercore.task_identity").TaskIdentity  # what a running Flower sets for its messages
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(identity, name, 1, raising=False)
    mods, zeros = package("flwr.clientapp.mod"), np.zeros(100)
    mod = mods.LocalDpMod(2.0, 0.5, 4.0, 1e-5)
    with fedgraph.recorded() as r:
        for node in (1, 2, 1):
            request = app.Message(
                content=app.RecordDict({"arrays": app.ArrayRecord([zeros])}), dst_node_id=node, message_type="train"
            )
            reply = app.RecordDict({"arrays": app.ArrayRecord([zeros + 1])})
            context = app.Context(run_id=1, node_id=node, node_config={}, state=app.RecordDict(), run_config={})
            mod(request, context, lambda message, ctxt, reply=reply: app.Message(content=reply, reply_to=message))
    assert total(r) == pytest.approx(truths.local(2.0, 0.5, 4.0, 1e-5, 2), rel=1e-6)


def test_flowers_strategy_is_counted_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    app, strategies = package("flwr.app"), package("flwr.serverapp.strategy")
    identity = package("flwr.supercore.task_identity").TaskIdentity
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(identity, name, 1, raising=False)

    def priced(*weights: float) -> float | None:
        strategy = strategies.DifferentialPrivacyServerSideFixedClipping(strategies.FedAvg(), 1.5, 1.0, 2)
        strategy.current_arrays = app.ArrayRecord([np.zeros(5)])
        with fedgraph.recorded() as r:
            for number in range(4):
                replies = []
                for node, weight in enumerate(weights, 1):
                    sent = app.Message(content=app.RecordDict({}), dst_node_id=node, message_type="train")
                    held = {"arrays": app.ArrayRecord([np.ones(5)]), "metrics": app.MetricRecord({"num-examples": weight})}
                    replies.append(app.Message(content=app.RecordDict(held), reply_to=sent))
                assert strategy.aggregate_train(number, replies)[0]
        return total(r)

    assert priced(10, 10) == pytest.approx(truths.gaussian(2 / 1.5, DELTA), rel=1e-6)
    assert priced(10, 30) == pytest.approx(truths.gaussian(2 * 1.5 / 1.5, DELTA), rel=1e-6), (
        "the heaviest moves it by 1.5 shares"
    )


def test_flares_filter_is_counted_for_each_site() -> None:
    package("nvflare")
    filters, dxo = package("nvflare.app_common.filters.svt_privacy"), package("nvflare.apis.dxo")
    contexts, shareables = package("nvflare.apis.fl_context"), package("nvflare.apis.shareable")
    with fedgraph.recorded() as r:
        for _ in range(3):
            data = dxo.DXO(data_kind=dxo.DataKind.WEIGHT_DIFF, data={"w": np.ones(1000)})
            filters.SVTPrivacy().process_dxo(data, shareables.Shareable(), contexts.FLContext())
    assert total(r) == pytest.approx(truths.svt(1000, 3))


# Programs that are not private, though Opacus runs in them.


def test_gradients_that_no_step_of_an_optimizer_uses_are_in_clear() -> None:
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, loader, data, _ = training()
        train(model, optimizer, loader, 1)
        other = torch.nn.Linear(4, 2)
        for x, y in torch.utils.data.DataLoader(data, batch_size=6):
            torch.nn.functional.cross_entropy(other(x), y).backward()
            with torch.no_grad():
                for p in other.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
    assert total(r) == math.inf


def test_rows_that_are_taken_beside_a_loader_of_public_ones_are_counted() -> None:
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, _, data, _ = training()
        for _ in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(40, 4)), batch_size=10):
            train(model, optimizer, [data.tensors], 1)
    apart = total(r, {"data sets hold different people": 1})
    assert apart == pytest.approx(truths.gaussian(math.sqrt(4), DELTA), rel=1e-6), "four sums of all rows"


def test_two_batches_of_the_same_rows_in_one_sum_are_two_draws() -> None:
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        for (x, y), (u, v) in zip(loader, loader, strict=False):
            train(model, optimizer, [(torch.cat([x, u]), torch.cat([y, v]))], 1)
    [sums] = r.record()["sums"]
    assert (sums["count"], sums["draws"], sums["sampling"]) == (10, 2, "poisson")


@pytest.mark.parametrize("how", ["drawn as zero", "put back"])
def test_noise_that_is_not_in_the_gradients_is_none(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        if how == "put back":
            optimizer.attach_step_hook(lambda o: [setattr(p, "grad", p.summed_grad) for p in o.params] and None)
        else:
            monkeypatch.setattr(torch, "normal", lambda *a, **k: torch.zeros(k["size"]))
        train(model, optimizer, loader, 1)
    assert total(r) == math.inf


@pytest.mark.parametrize("how", ["another network", "the same parameters", "beside a head", "torch.func", "forward mode"])
def test_gradients_that_are_used_in_clear_before_a_noised_sum_are_in_clear(how: str) -> None:
    torch = package("torch")
    loss = torch.nn.functional.cross_entropy
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        other, weight = torch.nn.Linear(4, 4), torch.zeros(2, 4)
        for x, y in loader:
            if how == "another network":
                loss(other(x), y).backward()
            elif how == "torch.func":
                weight = weight - torch.func.grad(lambda w, x=x, y=y: loss(x @ w.T, y))(weight)
            elif how == "forward mode":
                weight = weight - torch.func.jacfwd(lambda w, x=x, y=y: loss(x @ w.T, y))(weight)
            optimizer.zero_grad()
            loss(model(other(x) if how == "beside a head" else x), y).backward()
            for p in (model if how == "the same parameters" else other).parameters():
                if p.grad is not None:
                    p.data -= 0.1 * p.grad
            other.zero_grad()
            optimizer.step()
    assert total(r) == math.inf


@pytest.mark.parametrize("how", ["added after it", "put back in place", "one seed for every step", "one generator a pass"])
def test_noise_that_can_be_taken_off_is_none(how: str) -> None:
    torch = package("torch")
    loss = torch.nn.functional.cross_entropy
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        if how == "put back in place":
            optimizer.attach_step_hook(lambda o: [p.grad.copy_(p.summed_grad.view_as(p)) for p in o.params] and None)
        for _ in range(2):
            if how == "one generator a pass":
                optimizer.generator = torch.Generator().manual_seed(0)
            for x, y in loader:
                if how == "one seed for every step":
                    torch.manual_seed(0)
                optimizer.zero_grad()
                loss(model(x), y).backward()
                if how == "added after it":
                    optimizer.pre_step()
                    model.disable_hooks()
                    loss(model(x), y).backward()
                    model.enable_hooks()
                    optimizer.original_optimizer.step()
                else:
                    optimizer.step()
    assert total(r) == math.inf


@pytest.mark.parametrize("how", ["two backward passes", "two physical steps", "two views", "a batch of before", "lower"])
def test_a_row_that_moves_a_sum_further_than_one_clip_pays_for_it(how: str) -> None:
    torch = package("torch")
    loss = torch.nn.functional.cross_entropy
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training(poisson_sampling=how != "two backward passes")
        before: Any = None
        for x, y in loader:
            rows, labels = x, y
            if how == "two views" or (how == "a batch of before" and before is not None):
                u, v = before if how == "a batch of before" else (-x, y)
                rows, labels = torch.cat([x, u]), torch.cat([y, v])
            before = x, y
            optimizer.zero_grad()
            loss(model(rows), labels).backward()
            if how == "two backward passes":
                loss(model(x), y).backward()
            if how in ("two physical steps", "lower"):
                optimizer.signal_skip_step(True)
                optimizer.step()
                optimizer.zero_grad()
                optimizer.signal_skip_step(False)
                optimizer.max_grad_norm *= 0.5 if how == "lower" else 1.0  # noise is half of what the clip asks for
                loss(model(x if how != "lower" else x[:0]), y if how != "lower" else y[:0]).backward()
            optimizer.step()
            optimizer.max_grad_norm = 1.0
    found = total(r)
    assert found is not None
    assert found >= (truths.poisson(0.5, 0.1, 10, DELTA) if how == "lower" else truths.gaussian(2.0, DELTA)) * 0.994


@pytest.mark.parametrize("how", ["", "plain loss", "plain loss beside", "lower clip"])
def test_ghost_clipping_is_counted_by_the_clip_that_its_module_has(how: str) -> None:
    torch = package("torch")
    package("opacus.grad_sample.grad_sample_module_fast_gradient_clipping")
    data = torch.utils.data.TensorDataset(torch.rand(60, 4), torch.randint(0, 2, (60,)))
    with fedgraph.recorded() as r:
        model, engine = torch.nn.Linear(4, 2), package("opacus").PrivacyEngine()
        model, optimizer, loss, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0,
            data_loader=torch.utils.data.DataLoader(data, batch_size=6), criterion=torch.nn.CrossEntropyLoss(),
            grad_sample_mode="ghost",
        )  # fmt: skip
        optimizer.max_grad_norm = 0.5 if how == "lower clip" else 1.0
        for x, y in loader:
            optimizer.zero_grad()
            if how != "plain loss":
                loss(model(x), y).backward()
            if how.startswith("plain loss"):
                torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    noise = 0.5 if how == "lower clip" else 1.0
    expected = math.inf if how.startswith("plain") else pytest.approx(truths.poisson(noise, 0.1, 10, DELTA), rel=6e-3)
    assert total(r) == expected


def test_a_long_schedule_of_noises_is_priced_soon_and_not_below() -> None:
    data = table()
    with fedgraph.recorded() as r:
        for step in range(400):
            r.batch(data, rate=0.01)
            r.noised(2.0 * 0.998**step)
    started = time.monotonic()
    found = total(r)
    assert time.monotonic() - started < 20
    assert found is not None
    assert found > truths.poisson(2.0 * 0.998**200, 0.01, 200, DELTA)


def test_a_person_whose_neighbours_examples_change_pays_for_both_worlds() -> None:
    """One row vanishes and the others change: 2k − 1 clips, not k."""
    with fedgraph.recorded() as r:
        r.noised(8.0)
    assert total(r, {PERSON: 4}) == pytest.approx(truths.gaussian(7 / 8, DELTA), rel=1e-6)


def test_a_reply_that_passes_no_filter_is_in_clear() -> None:
    with fedgraph.recorded() as r:
        r.message("LocalDpMod", "client 1", "server", noise=2.0)
    assert total(r) == pytest.approx(truths.gaussian(0.5, DELTA), rel=1e-6)
    r.message("ClientApp", "client 1", "server")
    assert total(r) == math.inf
