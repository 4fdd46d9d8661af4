"""What is recorded of a run: our own loop, and real Opacus, Flower and FLARE where they are installed."""

from __future__ import annotations

import functools
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
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
DELTA, INF = 1e-5, math.inf
PERSON = "examples of one person"
APART = {"data sets hold different people": 1.0}
Given = dict[str, float]


def total(recording: Recorded, given: Given | None = None) -> float | None:
    priced = recording.price(DELTA, given).headline.total
    return None if priced is None else priced.epsilon


def sampled(rate: float, steps: int, noise: float = 1.0) -> Any:
    return pytest.approx(truths.poisson(noise, rate, steps, DELTA), rel=6e-3)


def whole(mu: float) -> Any:
    return pytest.approx(truths.gaussian(mu, DELTA), rel=1e-6)


def table(rows: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, 3))


def told(
    r: Recorded, data: object, steps: int, rate: float = 0.05, noise: float = 1.0, batches: int = 1, sums: int = 1, **how: Any
) -> None:
    """Steps of a loop that tells of some batches and sums in each."""
    for _ in range(steps):
        for _ in range(batches):
            r.batch(data, rate=rate, **how)
        for _ in range(sums):
            r.noised(noise)


class Subset:
    def __init__(self, dataset: object, indices: range) -> None:
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)


def parts(r: Recorded, *held: range) -> None:
    data = range(100)
    for indices in held:
        told(r, Subset(data, indices), 20)


def passes(r: Recorded, sampling: str) -> None:
    for _ in range(3):
        told(r, r, 4, 0.25, 2.0, sampling=sampling, rows=8)
        r.new_pass()


def two_noises_in_a_pass(r: Recorded) -> None:
    data = table()
    for noise in (2.0, 1.0):
        told(r, data, 1, 0.5, noise, sampling="shuffled")


def standardised(r: Recorded) -> None:
    data = table()
    told(r, (data - data.mean(0)) / data.std(0), 5)


class Held:
    """A data set of one's own, with its table in an attribute."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


def scaled(r: Recorded, how: str) -> None:
    data = table()
    rows = {
        "by column": (data - data.mean(0)) / data.std(0), "by ends": (data - data.min(0)) / np.ptp(data, 0),
        "as a whole": (data - data.mean()) / data.std(), "pixels": np.linspace(0, 255, 120).round().reshape(40, 3) / 255,
        "answers": (data > 0.5).astype(float),
    }[how]  # fmt: skip
    told(r, Held(rows), 5)


def clear_step(r: Recorded) -> None:
    data = table()
    told(r, data, 5)
    r.clear(data)


def messages(r: Recorded, *more: str) -> None:
    r.message("LocalDpMod", "client 1", "server", noise=2.0)
    for by in more:
        r.message(by, "client 1", "server")


PUBLIC = {"means and deviations are public": 1.0}
# What a loop of one's own tells, the answers, and the price.
LOOPS: dict[str, tuple[Callable[[Recorded], object], Given, Any]] = {
    "steps": (lambda r: told(r, table(), 30), {}, sampled(0.05, 30)),
    "disjoint parts": (lambda r: parts(r, range(50), range(50, 100)), {}, sampled(0.05, 20)),
    "row 50 is in both": (lambda r: parts(r, range(51), range(50, 100)), {}, sampled(0.05, 40)),
    "the same part twice": (lambda r: parts(r, range(50), range(50)), {}, sampled(0.05, 40)),
    "shuffled": (lambda r: passes(r, "shuffled"), {}, whole(math.sqrt(3) / 2)),
    "no coins": (lambda r: passes(r, "none"), {}, whole(math.sqrt(12) / 2)),
    "a pass whose noise changes counts for both": (two_noises_in_a_pass, {}, whole(math.sqrt(1 / 4 + 1))),
    "a batch of several sums": (lambda r: told(r, table(), 5, 0.01, sums=2), {}, whole(math.sqrt(10))),
    "no loader": (lambda r: told(r, None, 10, batches=0), {}, whole(math.sqrt(10))),
    "a step in clear": (clear_step, {}, INF),
    "standardised": (standardised, {}, INF),
    **{f"scaled {how}": (functools.partial(scaled, how=how), {}, INF) for how in ("by column", "by ends", "as a whole")},
    **{f"scaled {how}": (functools.partial(scaled, how=how), {}, sampled(0.05, 5)) for how in ("pixels", "answers")},
    "standardised by public numbers": (standardised, PUBLIC, sampled(0.05, 5)),
    "a person whose neighbours' examples change: 2k - 1 clips": (lambda r: r.noised(8.0), {PERSON: 4}, whole(7 / 8)),
    "a filter": (messages, {}, whole(0.5)),
    "a reply that passes no filter": (lambda r: messages(r, "ClientApp"), {}, INF),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_told_has_its_price(name: str) -> None:
    run, given, truth = LOOPS[name]
    with fedgraph.recorded() as r:
        run(r)
    assert total(r, given) == truth


def test_trainings_on_the_same_rows_compose_and_other_rows_are_asked_about() -> None:
    same, other = table(), table(seed=1)
    with fedgraph.recorded() as alone:
        told(alone, same, 10)
        told(alone, same, 20, noise=2.0)
        before = total(alone)
        told(alone, other, 10)
    worst, apart = total(alone), total(alone, APART)
    assert apart == pytest.approx(before)
    assert worst is not None
    assert apart is not None
    assert worst > apart > truths.poisson(1.0, 0.05, 10, DELTA)


def test_who_has_more_records_or_draws_pays_more() -> None:
    with fedgraph.recorded() as r:
        told(r, table(), 10)
    with fedgraph.recorded() as drawn:
        told(drawn, table(), 10, batches=3)
    one, few, many = total(r), total(r, {PERSON: 3}), total(r, {PERSON: 9})
    assert one is not None
    assert few is not None
    assert many is not None
    assert one < few < many
    assert (total(drawn) or 0) > 2 * one


def test_a_step_in_clear_is_asked_about_and_what_is_out_of_sight_is_said() -> None:
    with fedgraph.recorded() as r:
        clear_step(r)
    quote = r.price(DELTA)
    [asked] = quote.asked
    assert total(r, {asked.unknown.name: 1}) == sampled(0.05, 5)
    sight = " ".join(quote.reading.unprotected)
    said = ("other people's rows", "steps in clear on the same data", "weights that came from files")
    assert all(words in sight for words in said)


def test_one_question_names_all_data_that_a_line_learns_from_in_clear() -> None:
    """Else a yes for public data would speak for private ones."""
    public, private = range(7), table()
    with fedgraph.recorded() as r:
        told(r, private, 5)
        for data in (public, private):
            r.clear(data)
    [asked] = r.price(DELTA).asked
    assert all(name in asked.unknown.question for name in ("range of 7 rows", "ndarray of 40 rows"))


def test_a_quote_of_a_run_can_be_fixed() -> None:
    with fedgraph.recorded() as r:
        told(r, table(), 30)
    fix = r.price(DELTA, fix=0.5).fix
    assert fix is not None
    assert fix.settings is not None
    assert 0.49 < truths.poisson(float(fix.settings["noise_multiplier"]), 0.05, 30, DELTA) <= 0.5


def test_nothing_seen_and_wrong_numbers_are_refused() -> None:
    with fedgraph.recorded() as r:
        pass
    with pytest.raises(PricingError, match="nothing private was seen"):
        r.price(DELTA)
    with pytest.raises(ValueError, match="a rate lies in"):
        r.batch([], rate=0)
    with pytest.raises(ValueError, match="viewer 'model': allowed: server, models"):
        r.message("own filter", "client 1", "model", noise=1.0)
    for noise in (-1.0, math.nan):
        with fedgraph.recorded() as wrong:
            wrong.noised(noise)
        with pytest.raises(PricingError, match="noise: found"):
            wrong.price(DELTA)


def test_a_long_schedule_of_noises_is_not_priced_below() -> None:
    data = table()
    with fedgraph.recorded() as r:
        for step in range(400):
            told(r, data, 1, 0.01, 2.0 * 0.998**step)
    found = total(r)
    assert found is not None
    assert found > truths.poisson(2.0 * 0.998**200, 0.01, 200, DELTA)


# Commands.

LOOP = """
import sys
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
        assert json.loads(capsys.readouterr().out)["total"]["epsilon"] == sampled(0.05, 20)


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


@pytest.mark.parametrize("how", [[], ["kill"]], ids=["end", "are killed"])
def test_children_are_counted_whether_they_end_or_are_killed(how: list[str], tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(CHILDREN, encoding="utf-8")
    found = pricing.run([sys.executable, str(script), *how], {"delta": DELTA}).headline.total
    assert found is not None
    assert found.epsilon == sampled(0.05, 25)


KILLED = """
import glob, os, signal, subprocess, sys, time
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"], stdout=subprocess.PIPE)
    child.stdout.readline()
    {parent}
    sys.exit()
r = next(finder.recording for finder in sys.meta_path if hasattr(finder, "recording"))
{begin}
for step in range(10**9):
    r.batch(sys, rate=0.05, rows=100)
    if step == 30:
        {child}
        print(flush=True)
        while not os.path.exists(__file__ + ".priced"):
            time.sleep(0.05)
        sys.exit()
    {gradients}
    r.noised(1.0)
"""
BEGIN, GRADIENTS = "import torch; model = torch.nn.Linear(3, 1)", "model(torch.rand(100, 3)).sum().backward()"
KILL = "child.kill(); child.wait()"
UNKNOWN_DATA = '{"number": 99, "event": "sum", "data": 7, "sampling": "none"}'
ITS_RECORD = "glob.glob(os.environ['FEDGRAPH_RECORD'] + '/*')[0]"


@pytest.mark.parametrize(
    ("child", "parent", "why"),
    [
        ("pass", KILL, ""),
        (GRADIENTS, KILL, "1 optimizer steps at train.py"),
        ("pass", "pass", "ran on when the command had ended"),
        (f"open({ITS_RECORD}, 'a').write('1')", KILL, "ends in the middle of a line"),
        (f"open({ITS_RECORD}, 'a').write('1{{\\n')", KILL, "holds a line that is none"),
        (f"open({ITS_RECORD}, 'a').write('{UNKNOWN_DATA}\\n')", KILL, "holds a line that is none"),
    ],
    ids=["between two steps", "after gradients", "not killed", "a torn line", "a broken line", "a sum of no data"],
)
def test_a_process_that_is_killed_costs_what_it_did(child: str, parent: str, why: str, tmp_path: Path) -> None:
    """30 steps; ∞ where more may have happened than its record shows."""
    script = tmp_path / "train.py"
    learns = {"begin": BEGIN, "gradients": GRADIENTS} if child == GRADIENTS or not why else {"begin": "", "gradients": ""}
    script.write_text(KILLED.format(child=child, parent=parent, **learns), encoding="utf-8")
    quote = pricing.run([sys.executable, str(script)], {"delta": DELTA})
    Path(f"{script}.priced").touch()
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == (INF if why else sampled(0.05, 30))
    assert why in quote.headline.row.why


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


def training(rows: int = 60, batch: int = 6, data: Any = None, **options: Any) -> tuple[Any, ...]:
    """(model, optimizer, loader, data set, engine) of Opacus on a small table."""
    opacus, torch = package("opacus"), package("torch")
    if data is None:
        torch.manual_seed(0)
        data = torch.utils.data.TensorDataset(torch.rand(rows, 4), torch.randint(0, 2, (rows,)))
    model, engine = torch.nn.Linear(4, 2), opacus.PrivacyEngine()
    made = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), max_grad_norm=1.0,
        data_loader=torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True), **{"noise_multiplier": 1.0, **options},
    )  # fmt: skip
    return *made, data, engine


def train(model: Any, optimizer: Any, loader: Any, epochs: int = 1) -> None:
    torch = package("torch")
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_opacus_is_counted_as_it_ran() -> None:
    with fedgraph.recorded() as r:
        model, optimizer, loader, _, engine = training()
        train(model, optimizer, loader, 2)
        theirs = engine.get_epsilon(DELTA)
    quote = r.price(DELTA)
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == sampled(0.1, 20)
    assert quote.reading.published[0].epsilon == pytest.approx(theirs)


def another_loader(r: Recorded) -> None:
    model, optimizer, _, data, _ = training()
    train(model, optimizer, package("torch").utils.data.DataLoader(data, batch_size=6, shuffle=True), 3)


def virtual_batches(r: Recorded) -> None:
    model, optimizer, loader, *_ = training()
    manager = package("opacus.utils.batch_memory_manager").BatchMemoryManager
    with manager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as small:
        train(model, optimizer, small, 2)


def parts_of_clients(r: Recorded) -> None:
    torch = package("torch")
    data = torch.utils.data.TensorDataset(torch.rand(60, 4), torch.randint(0, 2, (60,)))
    for part in torch.utils.data.random_split(data, [20, 20, 20]) * 2:
        train(*training(data=part, batch=4)[:3])


def the_same_tensors(r: Recorded) -> None:
    torch = package("torch")
    tables = torch.rand(60, 4), torch.zeros(60)
    for _ in range(3):
        for _ in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*(t.clone() for t in tables)), batch_size=20):
            r.noised(2.0)


def beside_a_public_loader(r: Recorded) -> None:
    torch = package("torch")
    model, optimizer, _, data, _ = training()
    for _ in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(40, 4)), batch_size=10):
        train(model, optimizer, [data.tensors])


# Programs of Opacus, the answers, and the price: the loader that is walked counts, not the one that was made.
PROGRAMS: dict[str, tuple[Callable[[Recorded], None], Given, Any]] = {
    "another loader is walked": (another_loader, {}, whole(math.sqrt(3))),
    "virtual batches are one draw": (virtual_batches, {}, sampled(0.1, 20)),
    "parts of clients stand side by side": (parts_of_clients, {}, sampled(0.2, 10)),
    "the same tensors are the same rows": (the_same_tensors, {}, whole(math.sqrt(3) / 2)),
    "four sums of all rows": (beside_a_public_loader, APART, whole(math.sqrt(4))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_price_of_what_it_did(name: str) -> None:
    package("torch")
    run, given, truth = PROGRAMS[name]
    with fedgraph.recorded() as r:
        run(r)
    assert total(r, given) == truth


def test_noise_that_changes_on_the_way_is_counted_step_by_step() -> None:
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        train(model, optimizer, loader)
        optimizer.noise_multiplier = 0.5
        train(model, optimizer, loader)
    assert truths.poisson(0.5, 0.1, 10, DELTA) < (total(r) or 0) < truths.poisson(0.5, 0.1, 20, DELTA)


def test_weights_from_a_file_and_graph_layers_are_asked_about(tmp_path: Path) -> None:
    torch = package("torch")
    torch.save(torch.nn.Linear(4, 2).state_dict(), tmp_path / "weights.pt")
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        model._module.load_state_dict(torch.load(tmp_path / "weights.pt"))
        train(model, optimizer, loader)
    assert total(r) == INF
    assert total(r, {"weights are public": 1}) == sampled(0.1, 10)
    loaders = package("torch_geometric.loader")
    graph = package("torch_geometric.data").Data(x=torch.rand(8, 4), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with fedgraph.recorded() as graphs:
        for _ in loaders.DataLoader([graph] * 8, batch_size=2):
            graphs.noised(1.0)
    assert graphs.price(DELTA).headline.total is None
    assert [asked.unknown.name for asked in graphs.price(DELTA).asked] == [PERSON]
    assert total(graphs, {PERSON: 1}) == whole(1.0)


def test_a_module_that_is_copied_by_way_of_a_stream_came_from_no_file() -> None:
    """So does ``ModuleValidator.fix`` of Opacus."""
    torch, data = package("torch"), table()
    with fedgraph.recorded() as r:
        copied, stream = torch.nn.Linear(4, 2), io.BytesIO()
        torch.save(torch.nn.Linear(4, 2), stream)
        stream.seek(0)
        copied.load_state_dict(torch.load(stream, weights_only=False).state_dict())
        told(r, data, 10)
    assert total(r) == sampled(0.05, 10)


@pytest.mark.parametrize("changed", [False, True])
def test_weights_that_the_run_saved_itself_are_its_own_until_somebody_else_writes_them(tmp_path: Path, changed: bool) -> None:
    torch, data, path = package("torch"), table(), tmp_path / "best.pt"
    with fedgraph.recorded() as r:
        model = torch.nn.Linear(4, 2)
        told(r, data, 10)
        torch.save(obj=model.state_dict(), f=path)  # by name, as a program may
        if changed:
            path.write_bytes(path.read_bytes())
            os.utime(path, ns=(1, 1))
        model.load_state_dict(state_dict=torch.load(f=path))
        told(r, data, 10)
    assert total(r) == (INF if changed else sampled(0.05, 20))


def test_watching_ends_with_the_block() -> None:
    torch = package("torch")
    before = torch.utils.data.DataLoader.__iter__, torch.load, torch.nn.Module.load_state_dict
    with fedgraph.recorded():
        assert torch.load is not before[1]
    assert (torch.utils.data.DataLoader.__iter__, torch.load, torch.nn.Module.load_state_dict) == before
    assert not [finder for finder in sys.meta_path if hasattr(finder, "recording")]


@pytest.fixture
def flower(monkeypatch: pytest.MonkeyPatch) -> Any:
    app = package("flwr.app")
    identity = package("flwr.supercore.task_identity").TaskIdentity  # what a running Flower sets for its messages
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(identity, name, 1, raising=False)
    return app


def test_flowers_mod_is_counted_for_each_client(flower: Any) -> None:
    app, mod, zeros = flower, package("flwr.clientapp.mod").LocalDpMod(2.0, 0.5, 4.0, 1e-5), np.zeros(100)
    with fedgraph.recorded() as r:
        for node in (1, 2, 1):
            request = app.Message(
                content=app.RecordDict({"arrays": app.ArrayRecord([zeros])}), dst_node_id=node, message_type="train"
            )
            reply = app.RecordDict({"arrays": app.ArrayRecord([zeros + 1])})
            context = app.Context(run_id=1, node_id=node, node_config={}, state=app.RecordDict(), run_config={})
            mod(request, context, lambda message, ctxt, reply=reply: app.Message(content=reply, reply_to=message))
    assert total(r) == pytest.approx(truths.local(2.0, 0.5, 4.0, 1e-5, 2), rel=1e-6)


@pytest.mark.parametrize("mods", ["noise", "clip", "none"])
def test_a_reply_whose_noise_is_not_counted_is_one_without_noise(flower: Any, mods: str) -> None:
    """Mods of ``flwr.client.mod``, of apps of before."""
    app, common, older = flower, package("flwr.common"), package("flwr.client.mod")
    compat = package("flwr.compat.common.recorddict_compat")

    class Client(package("flwr.client").NumPyClient):  # type: ignore[misc]
        def fit(self, parameters: Any, config: Any) -> Any:
            return [each + 1 for each in parameters], 10, {}

    used = {"noise": [older.LocalDpMod(2.0, 0.5, 4.0, 1e-5)], "clip": [older.fixedclipping_mod], "none": []}[mods]
    asked = common.FitIns(common.ndarrays_to_parameters([np.zeros(100)]), {"clipping_norm": 1.0})
    message = app.Message(content=compat.fitins_to_recorddict(asked, True), dst_node_id=1, message_type="train")
    context = app.Context(run_id=1, node_id=1, node_config={}, state=app.RecordDict(), run_config={})
    with fedgraph.recorded() as r:
        reply = package("flwr.clientapp").ClientApp(client_fn=lambda _: Client().to_client(), mods=used)(message, context)
    assert not reply.has_error()
    assert total(r) == INF


@pytest.mark.parametrize(("weights", "shares"), [((10, 10), 1.0), ((10, 30), 1.5)])
def test_flowers_strategy_is_counted_by_round(flower: Any, weights: tuple[float, ...], shares: float) -> None:
    """The heaviest client moves the mean by so many equal shares."""
    app, strategies = flower, package("flwr.serverapp.strategy")
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
    assert total(r) == whole(2 * shares / 1.5)


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


@pytest.mark.parametrize("how", ["inside", "a baseline", "no loader", "no noise", "by hand", "drawn as zero", "put back"])
def test_what_learns_in_clear_beside_opacus_is_infinite(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, loader, data, _ = training()
        train(model, optimizer, loader)
        other, plain = torch.nn.Linear(4, 2), torch.utils.data.DataLoader(data, batch_size=6)
        stepping = torch.optim.SGD(other.parameters(), lr=0.1)
        if how == "inside":
            raw = {"zero_grad": optimizer.zero_grad, "step": optimizer.original_optimizer.step}
            train(model, type("Raw", (), raw), loader)
        elif how == "a baseline":
            train(other, stepping, plain)
        elif how == "no loader":
            stepping.step()
        elif how == "by hand":
            for x, y in plain:
                torch.nn.functional.cross_entropy(other(x), y).backward()
                with torch.no_grad():
                    for p in other.parameters():
                        p -= 0.1 * p.grad
                        p.grad = None
        else:
            if how == "no noise":
                optimizer.add_noise = lambda: None
            elif how == "put back":
                optimizer.attach_step_hook(lambda o: [setattr(p, "grad", p.summed_grad) for p in o.params] and None)
            else:
                monkeypatch.setattr(torch, "normal", lambda *a, **k: torch.zeros(k["size"]))
            train(model, optimizer, loader)
    assert total(r) == INF


def test_two_batches_of_the_same_rows_in_one_sum_are_two_draws() -> None:
    torch = package("torch")
    with fedgraph.recorded() as r:
        model, optimizer, loader, *_ = training()
        for (x, y), (u, v) in zip(loader, loader, strict=False):
            train(model, optimizer, [(torch.cat([x, u]), torch.cat([y, v]))])
    [sums] = [event for event in r.record().events if event.event == "sum"]
    assert (sums.count, sums.draws, sums.sampling) == (10, 2, "poisson")


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
    assert total(r) == INF


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
    assert total(r) == INF


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
    assert (total(r) or 0) >= (truths.poisson(0.5, 0.1, 10, DELTA) if how == "lower" else truths.gaussian(2.0, DELTA)) * 0.994


@pytest.mark.parametrize("how", ["", "plain loss", "plain loss beside", "lower clip"])
def test_ghost_clipping_is_counted_by_the_clip_that_its_module_has(how: str) -> None:
    torch = package("torch")
    package("opacus.grad_sample.grad_sample_module_fast_gradient_clipping")
    with fedgraph.recorded() as r:
        ghost = {"criterion": torch.nn.CrossEntropyLoss(), "grad_sample_mode": "ghost"}
        model, optimizer, loss, loader, *_ = training(**ghost)
        optimizer.max_grad_norm = 0.5 if how == "lower clip" else 1.0
        for x, y in loader:
            optimizer.zero_grad()
            if how != "plain loss":
                loss(model(x), y).backward()
            if how.startswith("plain loss"):
                torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert total(r) == (INF if how.startswith("plain") else sampled(0.1, 10, 0.5 if how == "lower clip" else 1.0))
