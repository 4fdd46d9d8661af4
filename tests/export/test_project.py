"""A row becomes a project: what it says, what it adds, what it refuses, and that its price is the ledger's."""

import contextlib
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.errors import DataError, PricingError, PrivacyError, ScenarioError
from fedgraph.export import project, site
from fedgraph.export.site import Site, open_site
from fedgraph.methods.base import method_kinds
from fedgraph.pricing import EXPORTED_MANIFEST, exported_layouts
from fedgraph.privacy import budget_book
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.types import Subgraph
from tests.export.conftest import SECRET

Opened = Callable[[str], project.ProjectSource]
Imported = Callable[[Path], ModuleType]
SUMS, MESSAGES, HOP, GAP = "features, sums", "features, own-client", "hop, sums", "gap_edge gap, sums"
NET, SOME, SOME_SEEN = "net, sums", "some, sums", "some, own-client"


_MADE = tempfile.TemporaryDirectory()  # one project for each row and framework; tests change copies


def written(opened: Opened, row: str, framework: str, place: Path) -> Path:
    """The folder with the project's code."""
    made = Path(_MADE.name) / f"{row} {framework}"
    if not made.exists():
        project.write(opened(row), framework, made)
    shutil.copytree(made, place / "app")
    return (place / "app" / exported_layouts()[framework]["shared/planned.py.j2"]).parent


def manifest(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "app" / EXPORTED_MANIFEST).read_text(encoding="utf-8"))
    return found


def total(place: Path) -> float:
    found = pricing.price(place / "app").headline.total
    assert found is not None
    return found.epsilon


@pytest.mark.parametrize(
    ("row", "framework"),
    [(SUMS, "nvflare"), *((row, "flower") for row in (SUMS, MESSAGES, HOP, GAP, NET, SOME)), (SOME_SEEN, "nvflare")],
)
def test_the_files_are_worth_what_the_ledger_says(framework: str, row: str, opened: Opened, tmp_path: Path) -> None:
    home, found = written(opened, row, framework, tmp_path), opened(row)
    assert total(tmp_path) == pytest.approx(found.row.head.epsilon_provable, abs=1e-4)
    said = manifest(tmp_path)
    assert said["clients"] == 3
    assert said["least_survivors"] == (2 if row in (SOME, SOME_SEEN) else 3)
    assert said["sampling"].startswith(
        "2 of 3 clients, by public coins" if row in (SOME, SOME_SEEN) else "every client in every"
    )
    assert said["weights"] == 1
    assert said["protection"]["viewer"] == found.plan.guarantee.protection.viewer.value
    for release in found.plan.schedule.releases:
        held = said["releases"][release.path]
        if isinstance(release.mechanism, GaussianNoise):
            assert 1 <= held["share"] / release.mechanism.std <= 1 + 1e-6, "never less noise than was proven"
            assert held["steps"] >= 2**26
            assert held["rounds"] == len(release.rounds)
    everything = "".join(
        f.read_text(encoding="utf-8") for f in (tmp_path / "app").rglob("*") if f.is_file() and f.suffix != ".whl"
    )
    assert str(SECRET) not in everything, "the root seed of the run is exported nowhere"
    clients = [file for file in home.glob("*.py") if file.name != "rounds.py"]  # where the server starts is public
    assert clients
    assert not [file.name for file in clients if "np.random" in file.read_text(encoding="utf-8")], "noise of a weak generator"


def test_labels_of_the_public_graph_stay_at_home(opened: Opened, tmp_path: Path) -> None:
    plan = site.read_agreed_plan(written(opened, SUMS, "flower", tmp_path) / "plan.json").plan
    graph, known = plan.facts.public_graph, opened(SUMS).plan.facts.public_graph
    assert graph is not None
    assert known is not None
    assert (graph.labels == -1).all()
    assert (known.labels >= 0).all()
    assert plan.provable() == opened(SUMS).plan.provable()


def drawn_once(draw: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """No record: every draw is the first."""
    return draw()


# What is changed in one file of a project: file, what stands there (None: it is added behind), what then does, and why not.
CHANGES = {
    "half of the noise": ("planned.py", '"share": ', '"share": 0.5 * ', "is not as"),
    "fewer must answer": ("planned.py", "LEAST = 3", "LEAST = 2", "is not as"),
    "code before the numbers": ("planned.py", '"""', 'exec("import numpy")\n"""', "is not as"),
    "no mod": ("client_app.py", "@app.train(mods=[PlannedNoise(planned)])", "@app.train()", "is not as"),
    "another app": ("../pyproject.toml", "client_app:app", "other_app:app", "is not as"),
    "another plan": ("plan.json", "Plan", "Plane", "is not the plan"),
    "another wheel": ("../{wheel}", None, "x", "is not the wheel of this fedgraph"),
    "a wheel more": ("../wheels/numpy-1.0-py3-none-any.whl", None, "", "is no file of this export"),
    "another package": ("../fedgraph/__init__.py", None, "", "is no file of this export"),
    "compiled": ("__pycache__/rounds.cpython-311.pyc", None, "", "is no file of this export"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_export_did_not_write_is_not_priced(
    change: str, opened: Opened, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder ``fedgraph`` beside the app is imported in place of the package, and its noise with it."""
    file, old, new, why = CHANGES[change]
    path = written(opened, SUMS, "flower", tmp_path) / file.format(wheel=pricing.exported_wheel()[0])
    path.parent.mkdir(exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    assert old is None or old.encode() in content
    path.write_bytes(content + new.encode() if old is None else content.replace(old.encode(), new.encode(), 1))
    assert cli.main(["price", str(tmp_path / "app"), "--at-most", "inf"]) == 2
    assert why in capsys.readouterr().err


def made_again(app: Path, said: dict[str, Any]) -> None:
    """Another manifest, and the files that an export would have written of it."""
    (app / EXPORTED_MANIFEST).write_text(json.dumps(said), encoding="utf-8")
    for place, text in pricing.ExportedManifest.model_validate(said).files().items():
        (app / place).write_text(text, encoding="utf-8")


def halved(said: dict[str, Any], *keys: str) -> None:
    for key in keys:
        said["releases"]["model"][key] /= 2


# What a whole project says otherwise, its code too: row, the change, why it is refused.
OTHERWISE: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "half of the noise": (SUMS, lambda m: halved(m, "share"), ""),
    "fewer must answer": (SUMS, lambda m: m.update(least_survivors=2), "in plan.json, and"),
    "nobody is honest": (SUMS, lambda m: m.update(colluders=3), "nobody is honest"),
    "messages seen": (SUMS, lambda m: m.update(masked=False), "masked is False"),
    "coarse steps": (SUMS, lambda m: m["releases"]["model"].update(steps=9), "allowed: > 0, at least"),
    "no noise, as answers": (SUMS, lambda m: m["releases"]["model"].update(kind="answers"), "in plan.json, and"),
    "nothing is released": (SUMS, lambda m: m["releases"].clear(), "nothing is released"),
    "a smaller clip": (SUMS, lambda m: halved(m, "sensitivity", "clip"), "in plan.json, and"),
    "another δ": (SUMS, lambda m: m.update(delta=0.1), "plan.json"),
    "another plan": (SUMS, lambda m: m.update(plan_sha256="0" * 64), "plan_sha256"),
    "fewer rounds than a client answers": (SUMS, lambda m: m.update(rounds=1), "releases: rounds of model"),
    "another relation": (SUMS, lambda m: m["protection"].update(relation="node-replace"), "plan.json"),
    "often the same": (SOME, lambda m: m.update(cohorts=[[0, 1]] * 12), ""),
    "somebody twice": (SOME, lambda m: m.update(cohorts=[[0, 0], *[[0, 1]] * 11]), "cohorts: "),
    "too few": (SOME, lambda m: m.update(cohorts=[[0], *[[0, 1]] * 11]), "cohorts: "),
    "always all": (SOME, lambda m: m.update(cohorts=[]), ""),
}


@pytest.mark.parametrize("change", OTHERWISE)
def test_a_project_that_says_something_else_is_worth_something_else(change: str, opened: Opened, tmp_path: Path) -> None:
    """Manifest and code agree with each other, and not with the plan: refused, or dearer than what was proven."""
    row, edit, why = OTHERWISE[change]
    written(opened, row, "flower", tmp_path)
    said = manifest(tmp_path)
    edit(said)
    made_again(tmp_path / "app", said)
    with pytest.raises(PricingError, match=why) if why else contextlib.nullcontext():
        assert total(tmp_path) > opened(row).row.head.epsilon_provable + 0.01


@pytest.mark.parametrize(
    ("key", "value"),
    [("plan_sha256", '0" + x() + "'), ("clients", "3\nimport numpy"), ("rounds", True), ("method", 'x"\nclientapp = "other')],
)
def test_no_code_comes_in_by_the_manifest(key: str, value: object, opened: Opened, tmp_path: Path) -> None:
    written(opened, SUMS, "flower", tmp_path)
    said = manifest(tmp_path)
    [held] = [held for held in (said, said["row"], said["releases"]["model"]) if key in held][:1]
    held[key] = value
    (tmp_path / "app" / EXPORTED_MANIFEST).write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(PricingError, match=rf"{key}: found"):
        pricing.price(tmp_path / "app")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("features, curator", "one party computes it"),
        ("nonprivate-clear", "ε = ∞"),
        ("dpar-walks", "allowed: Gaussian noise on a sum"),
        ("local-dp-clear", "ε = ∞"),
    ],
)
def test_rows_that_are_no_sums_say_why(row: str, why: str, finished: Path) -> None:
    with pytest.raises(ScenarioError, match=why):
        project.open_row(finished, row)


def test_the_command_says_one_line(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", str(finished), SUMS, str(tmp_path / "app"), "--to", "flower"]
    assert cli.main([*words, "--clients", str(tmp_path / "clients")]) == 0
    assert "are worth ε = 8 at" in capsys.readouterr().out
    assert sorted(f.name for f in (tmp_path / "clients").iterdir()) == ["client-0.json", "client-1.json", "client-2.json"]
    assert cli.main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert cli.main([*words, "--force"]) == 0
    assert cli.main([*words[:-1], "tff"]) == 2
    assert "allowed: flower" in capsys.readouterr().err


def test_the_discrete_gaussian_has_its_law(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    """A χ² test accepts the stated standard deviation, and rejects two thirds of it and half as much again."""
    sums = imported(written(opened, SUMS, "flower", tmp_path) / "private_sums.py")
    drawn = np.array([sums.discrete_gaussian(3) for _ in range(6000)])
    ends = np.arange(-9, 10)

    def p_value(sigma: float) -> float:
        weights = np.exp(-(np.arange(-60.0, 61.0) ** 2) / (2 * sigma**2))
        expected = weights[(np.abs(np.arange(-60, 61)) <= 9)] / weights.sum()
        counted = np.array([(drawn == k).sum() for k in ends])
        rest = len(drawn) - counted.sum()
        return float(stats.chisquare([*counted, rest], [*(expected * len(drawn)), (1 - expected.sum()) * len(drawn)]).pvalue)

    assert p_value(3.0) > 1e-4
    assert p_value(2.0) < 1e-9
    assert p_value(4.5) < 1e-9


def test_masks_are_uniform_known_to_two_and_fresh(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    """Both ends of a pair agree, nobody else does, and no round or value meets the same mask again."""
    sums = imported(written(opened, SUMS, "flower", tmp_path) / "private_sums.py")
    one, two, three = (sums.new_key() for _ in range(3))
    mask = sums.mask(one, sums.public_key(two), 0, "gradient@model", 4000)
    assert np.array_equal(mask, sums.mask(two, sums.public_key(one), 0, "gradient@model", 4000))
    others = [
        sums.mask(one, sums.public_key(two), 1, "gradient@model", 4000),
        sums.mask(one, sums.public_key(two), 0, "hop@model", 4000),
        sums.mask(one, sums.public_key(three), 0, "gradient@model", 4000),
        sums.mask(three, sums.public_key(two), 0, "gradient@model", 4000),
    ]
    for other in others:
        assert not (mask == other).any()
    assert stats.kstest(mask / 2.0**64, "uniform").pvalue > 1e-4
    assert stats.kstest((mask & np.uint64(2**16 - 1)) / 2.0**16, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    ("row", "framework", "masked"),
    [(SUMS, "flower", True), (MESSAGES, "flower", False), (GAP, "flower", True), (SOME, "flower", True),
     ("local-dp-fedavg", "flower", True), ("local-dp-seen", "nvflare", False), ("local-dp-sgd", "flower", True)],
)  # fmt: skip
def test_a_whole_run_without_a_framework(
    row: str, framework: str, masked: bool, opened: Opened, imported: Imported, tmp_path: Path
) -> None:
    """Three sites and a server: sums are right once all masks are in, and their noise is the plan's (Kolmogorov-Smirnov).

    Of DP-FedAvg the training is deployed, at what the ledger says of its path: embeddings of graphs stay at home.
    """
    home, found = written(opened, row, framework, tmp_path), opened(row)
    sums, planned = imported(home / "private_sums.py"), imported(home / "planned.py")
    if own := row.startswith("local-dp"):
        assert found.epsilon == found.row.head.paths["model"] < found.row.head.epsilon_provable <= 8
        assert set(planned.RELEASES) == {"model"}
    assert total(tmp_path) == pytest.approx(found.epsilon, abs=1e-4)
    assert masked is planned.MASKED
    rounds = imported(home / "rounds.py").Rounds(tmp_path / "out")
    files = project.write_clients(found, tmp_path / "clients")
    sites = [open_site(home / "plan.json", planned.PLAN_SHA256, file) for file in files]
    secrets = [sums.new_key() for _ in files]
    board = {k: sums.public_key(secret) for k, secret in enumerate(secrets)}
    noise: list[np.ndarray] = []
    for round_ in range(planned.ROUNDS):
        here = sums.cohort(planned, round_)
        every = [{f"{n}@{p}": v for n, (p, v) in site.bounded(rounds.model, round_).items()} for site in sites]
        exact, keys = [every[k] for k in here], {k: board[k] for k in here}
        sent = [sums.protect(planned, e, k, round_, secrets[k], keys, drawn_once) for k, e in zip(here, exact, strict=True)]
        rounds.merge(round_, list(zip(here, [1] * len(here), sent, strict=True)))
        for key, value in rounds.kept[round_][1].items():
            release = planned.RELEASES[key.rpartition("@")[2]]
            if release["kind"] == "gaussian":
                assert not own or max(np.linalg.norm(one[key]) for one in exact) <= 1 + 1e-5, "clipped"
                beyond = value - np.sum([np.asarray(e[key], dtype=float) for e in exact], axis=0)
                noise.append(beyond.ravel() / (release["share"] * math.sqrt(len(here))))
                if masked and not own:
                    alone = np.abs(sums.opened(planned, key, sent[0][key])).max()
                    assert alone > 1e3 * np.abs(value).max(), "one message, or two of three, are masks"
    drawn = np.concatenate(noise)[:50_000]
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    assert stats.kstest(drawn * 1.5, "norm").pvalue < 1e-6
    assert own or stats.kstest(drawn / 1.5, "norm").pvalue < 1e-6
    rounds.save(True)
    kept = {"plan.json", "rounds.npz", "state.json"} | (set() if own else {"predictions.csv"})
    assert {f.name for f in (tmp_path / "out").iterdir()} == kept


def test_a_round_needs_all_clients_with_equal_weights(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    home = written(opened, SUMS, "flower", tmp_path)
    module = imported(home / "rounds.py")
    rounds, value = module.Rounds(tmp_path / "out"), np.ones(opened(SUMS).plan.facts.num_nodes, dtype=np.int64)
    sent = {"gradient@model": value}
    for answers, why in (
        ([(0, 1, sent), (1, 1, sent)], r"2 clients answered; needed: \[0, 1, 2\]"),
        ([(0, 1, sent), (1, 1, sent), (1, 1, sent)], "2 clients answered"),
        ([(0, 1, sent), (1, 1, sent), (2, 2, sent)], "another weight than 1"),
        ([(0, 1, sent), (1, 1, sent), (2, 1, {})], "different values"),
    ):
        with pytest.raises(module.Aborted, match=why):
            rounds.merge(0, answers)
    assert rounds.kept == {}
    assert rounds.next == 0


def test_what_was_not_planned_does_not_leave(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    home = written(opened, SUMS, "flower", tmp_path)
    sums, planned = imported(home / "private_sums.py"), imported(home / "planned.py")
    secret, value = sums.new_key(), np.zeros(planned.RELEASES["model"]["dimension"])
    board = {0: sums.public_key(secret), 1: sums.public_key(sums.new_key()), 2: sums.public_key(sums.new_key())}

    def sent(values: dict[str, np.ndarray], round_: int = 0, keys: dict[int, bytes] = board) -> object:
        return sums.protect(planned, values, 0, round_, secret, keys, drawn_once)

    sent({"gradient@model": value})
    for values, round_, keys, why in (
        ({"gradient@other": value}, 0, board, "planned: .'model'"),
        ({"gradient@model": value}, planned.ROUNDS, board, "planned: .."),
        ({"gradient@model": value, "more@model": value}, 0, board, "releases"),
        ({"gradient@model": np.append(value, 0.0)}, 0, board, "numbers; planned"),
        ({"gradient@model": value + 1e9}, 0, board, "clipped values have at most"),
        ({"gradient@model": value * np.nan}, 0, board, "clipped values have at most"),
        ({"gradient@model": value}, 0, {0: board[0], 1: board[1]}, "public keys of clients .0, 1, 2."),
        ({"gradient@model": value}, 0, {**board, 0: board[1]}, "public keys of clients .0, 1, 2."),
    ):
        with pytest.raises(sums.Refused, match=why):
            sent(values, round_, keys)


def test_a_round_of_some_clients_hears_nobody_else(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    """Whoever is not asked sends nothing: a release that the price does not count; and nothing is amplified."""
    home, found = written(opened, SOME, "flower", tmp_path), opened(SOME)
    sums, planned, module = (imported(home / f"{name}.py") for name in ("private_sums", "planned", "rounds"))
    assert found.cohorts == planned.COHORTS
    assert all(len(here) == 2 for here in found.cohorts)
    absent = next(k for k in range(3) if k not in found.cohorts[0])
    value = {"gradient@model": np.zeros(planned.RELEASES["model"]["dimension"])}
    with pytest.raises(sums.Refused, match=f"this is client {absent}"):
        sums.protect(planned, value, absent, 0, sums.new_key(), {}, drawn_once)
    with pytest.raises(module.Aborted, match="clients answered"):
        module.Rounds(tmp_path / "out").merge(0, [(k, 1, value) for k in (found.cohorts[0][0], absent)])
    module.Rounds(tmp_path / "out").leave_out(0)
    again = module.Rounds(tmp_path / "out")
    assert (again.next, again.left_out) == (1, [0])
    (release,) = found.plan.schedule.releases
    often = max(sum(k in here for here in found.cohorts) for k in range(3))
    alone = price(Repeated(release.event, often), found.plan.guarantee.delta).epsilon
    assert total(tmp_path) == pytest.approx(alone, abs=1e-4)


DEPLOYMENT = "0123456789abcdef" * 2


def test_a_round_is_drawn_once_and_asked_again_for_nothing(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    """A server that was resumed gets the same numbers; for another model they would cost once more, and are refused."""
    home = written(opened, SUMS, "flower", tmp_path)
    sums, planned = imported(home / "private_sums.py"), imported(home / "planned.py")
    charged: list[str] = []

    def released(name: str = DEPLOYMENT) -> object:
        return sums.Released(planned, tmp_path / "0.json", name, charged.append)

    def draw() -> dict[str, np.ndarray]:
        return {"gradient@model": np.array([sums.discrete_gaussian(2**30) for _ in range(5)])}

    first = released().once(0, "model", draw)
    again = released().once(0, "model", draw)
    assert (first["gradient@model"] == again["gradient@model"]).all()
    assert len(set(charged)) == 1, "a mark that is charged already costs nothing: the book knows it"
    assert len(charged) == 2
    assert charged[0].startswith(DEPLOYMENT)
    with pytest.raises(sums.Refused, match="round 0 was released for another model"):
        released().once(0, "other", draw)
    other = released("f" * 32).once(0, "model", draw)
    assert (first["gradient@model"] != other["gradient@model"]).all(), "another deployment has noise of its own, and is charged"
    for wrong in ("../x", "", "F" * 32, DEPLOYMENT + "0"):
        with pytest.raises(sums.Refused, match="32 hexadecimal digits"):
            released(wrong)

    def refuse(_: str) -> None:
        raise PrivacyError("the budget does not allow it")

    with pytest.raises(PrivacyError, match="does not allow"):
        sums.Released(planned, tmp_path / "1.json", DEPLOYMENT, refuse).once(0, "model", draw)
    assert not list((tmp_path / "1.json.released").rglob("*.npz")), "refused before anything is drawn"


def test_an_owner_is_charged_once_for_a_deployment_and_again_for_every_other(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A re-export, another trust, a second start: all of one owner's file add up in one book."""
    monkeypatch.delenv("FEDGRAPH_BUDGET", raising=False)
    homes = {}
    for row in (SUMS, MESSAGES):
        (tmp_path / row).mkdir()
        homes[row] = written(opened, row, "flower", tmp_path / row)
    graph = project.write_clients(opened(SUMS), tmp_path / "clients")[0]

    def charge(row: str, name: str) -> float:
        digest = hashlib.sha256((homes[row] / "plan.json").read_bytes()).hexdigest()
        site.charge_site(open_site(homes[row] / "plan.json", digest, graph), graph, digest, name)
        return budget_book.read(f"{graph}.budget").groups()[0].epsilon

    said = opened(SUMS).epsilon
    assert charge(SUMS, DEPLOYMENT) == pytest.approx(said, rel=1e-6), "without a book, one is made: the cap is the plan's"
    assert charge(SUMS, DEPLOYMENT) == pytest.approx(said, rel=1e-6), "it goes on"
    for row, name in ((SUMS, "f" * 32), (MESSAGES, DEPLOYMENT)):
        with pytest.raises(PrivacyError, match="would have paid ε = "):
            charge(row, name)
    assert cli.main(["budget", "init", f"{graph}.more", "--from", f"{graph}.budget", "--epsilon", "20"]) == 0
    monkeypatch.setenv("FEDGRAPH_BUDGET", f"{graph}.more")
    charge(MESSAGES, DEPLOYMENT)
    book = budget_book.read(f"{graph}.more")
    assert len(book.charges) == 2
    assert said < book.groups()[0].epsilon < 2 * said, "composed, and not added"


def test_a_server_goes_on_where_it_stopped(opened: Opened, imported: Imported, tmp_path: Path) -> None:
    home = written(opened, SUMS, "flower", tmp_path)
    module, planned = imported(home / "rounds.py"), imported(home / "planned.py")
    value = np.ones(planned.RELEASES["model"]["dimension"], dtype=np.int64)
    first = module.Rounds(tmp_path / "out")
    first.merge(0, [(k, 1, {"gradient@model": value * 2**30}) for k in range(3)])
    again = module.Rounds(tmp_path / "out")
    assert (again.next, again.done, again.deployment) == (1, [0], first.deployment)
    assert all((again.model[name] == value).all() for name, value in first.model.items()), "the model is the same, bit by bit"
    with pytest.raises(module.Aborted, match="needed is every one of the clients"):
        again.leave_out(1)
    state = json.loads((tmp_path / "out" / "state.json").read_text(encoding="utf-8"))
    (tmp_path / "out" / "state.json").write_text(json.dumps(state | {"plan": "0" * 64}), encoding="utf-8")
    with pytest.raises(DataError, match="the state of another plan"):
        module.Rounds(tmp_path / "out")


def test_an_owner_with_fewer_people_is_filled_up(opened: Opened, tmp_path: Path) -> None:
    """Nodes of nobody add nothing: what leaves is the same as for the same people alone."""
    home, found = written(opened, SUMS, "flower", tmp_path), opened(SUMS)
    digest = manifest(tmp_path)["plan_sha256"]
    own, most = found.partition.subgraphs[0], found.plan.facts.clients[0]
    few = np.arange(most - 7)
    site.write_site_file(tmp_path / "few.json", Subgraph(0, own.graph.induced(few), own.nodes[few]))
    filled = open_site(home / "plan.json", digest, tmp_path / "few.json")
    assert filled.subgraph.graph.num_nodes == most
    assert len(set(filled.subgraph.nodes.tolist())) == most
    labels = own.graph.labels.copy()
    labels[most - 7 :] = -1
    whole = replace(own, graph=replace(own.graph, labels=labels))
    method = method_kinds.load(found.plan.method)
    model = method.start(found.plan, np.random.default_rng(0)).model
    one, other = (
        made.bounded(model, 0)["gradient"][1] for made in (filled, Site(found.plan, whole, method.prepare(found.plan, whole)))
    )
    assert np.allclose(one, other, rtol=1e-4, atol=1e-5)
    clients = found.plan.facts.clients
    few, first = np.arange(clients[1] - 7), clients[0]
    graph = found.partition.subgraphs[1].graph.induced(few)
    site.write_site_file(tmp_path / "next.json", Subgraph(1, graph, first + few))
    numbers = open_site(home / "plan.json", digest, tmp_path / "next.json").subgraph.nodes.tolist()
    assert numbers == list(range(first, first + clients[1])), "other numbers would speak for somebody else's people"


def test_a_site_has_the_graph_that_was_planned(opened: Opened, tmp_path: Path) -> None:
    home, found = written(opened, SUMS, "flower", tmp_path), opened(SUMS)
    files, digest = project.write_clients(found, tmp_path / "clients"), manifest(tmp_path)["plan_sha256"]
    with pytest.raises(DataError, match="not the plan that was exported"):
        open_site(home / "plan.json", "0" * 64, files[0])
    other = found.partition.subgraphs[0]
    more = Subgraph(0, other.graph.induced(np.arange(len(other.nodes)).repeat(2)), other.nodes.repeat(2))
    site.write_site_file(files[1], more)
    with pytest.raises(DataError, match="planned for client 0: at most"):
        open_site(home / "plan.json", digest, files[1])
    shutil.copy(home / "plan.json", files[2])
    with pytest.raises(DataError, match="holds SitePlan; allowed: Subgraph"):
        open_site(home / "plan.json", digest, files[2])


def test_one_unit_moves_a_value_by_at_most_the_sensitivity(opened: Opened) -> None:
    """What leaves a site without its first node, and with it, at the same model."""
    found = opened(SUMS)
    whole = found.partition.subgraphs[0]
    labels = whole.graph.labels.copy()
    labels[0] = -1  # zero-out: a node without a label adds nothing
    method = method_kinds.load(found.plan.method)
    model, moved = method.start(found.plan, np.random.default_rng(0)).model, []
    for graph in (whole.graph, replace(whole.graph, labels=labels)):
        subgraph = replace(whole, graph=graph)
        ((_, value),) = Site(found.plan, subgraph, method.prepare(found.plan, subgraph)).bounded(model, 0).values()
        moved.append(np.asarray(value, dtype=float))
    clip = 0.5
    assert 0 < np.linalg.norm(moved[0] - moved[1]) <= clip * (1 + 1e-5)
