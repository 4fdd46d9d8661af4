"""Where random numbers may come from: streams that a path names. Whoever adds another source says here why it is sound.

A generator without a seed draws other numbers when a round is asked again, under the same noise: the difference of the two
messages shows the data. One with a seed that everybody knows (``default_rng(0)``) is no secret: a price that counts on its
coins is wrong. Tests of what is released see the first only where a round is asked again, and the second nowhere.
"""

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.test_architecture import ROOT, modules, tree

# What asks the operating system.
SYSTEM = {
    "seeds/__init__.py root_seed": "the root of a run with a secret seed",
    "export/site.py Site": "the root of a deployed site",
    "cells/store.py claim_folder": "the key of the mark by which a run knows its data again",
    "models/model.py AnswerRoster.of": "the key of a model's roster",
    "runs/charged.py ChargedRun.charge": "the name of a run in a budget",
}

# What makes a generator of a seed of its own. None of them decides who is in a sample that is priced, and none makes noise.
STREAMS, PUBLIC, AFTER, CLEAR = "the streams", "public values or coins", "what was released", "no guarantee"
SEEDED = {
    "seeds/__init__.py _sequence": STREAMS,
    "seeds/__init__.py secret_seeded_generator": STREAMS,
    "seeds/__init__.py seeded_generator": STREAMS,
    "attacks/base/attack_scene.py start_model": STREAMS,
    "export/project.py _dimensions": PUBLIC,
    "learning/shared_gnn.py SharedGnnBatches.inputs": PUBLIC,
    "methods/link_hops.py _random_rows": PUBLIC,
    "learning/isolation.py _examples": PUBLIC,
    "learning/pair_scorer.py PairScorer.step": PUBLIC,
    "learning/projection.py _basis": PUBLIC,
    "learning/projection.py _pairs": PUBLIC,
    "methods/link_hops.py _random": PUBLIC,
    "methods/link_owners.py _random": PUBLIC,
    "partition/louvain.py _communities": PUBLIC,
    "learning/mean_field.py look_alikes": AFTER,
    "methods/gap_edge.py _after_hop": AFTER,
    "attacks/base/evidence/local_dp.py _settings": AFTER,
    "methods/lpgnn.py predict": AFTER,
    "methods/own_model.py _after_hop": AFTER,
    "methods/progap_edge.py _grown": AFTER,
    "methods/sage_edge.py server": AFTER,
    "methods/link_clear.py encoder_rows": CLEAR,
    "methods/nonprivate.py _divided": CLEAR,
    "methods/nonprivate.py seed_of_step": CLEAR,
}

# What draws from torch's one generator, which it seeds first and leaves as it was.
OF_TORCH = {
    "learning/tensors.py seed_learner",
    "methods/link_clear.py encoder_rows",
    "learning/fitting.py build",
    "learning/fitting.py continue_fitting",
    "learning/networks.py _dropped",
    "learning/own_network.py _seeded",
}
GLOBAL = {"learning/own_network.py _seeded"}  # what a network of somebody else draws itself, from a seed

MAKERS = {"default_rng", "SeedSequence", "Generator", "PCG64", "MT19937", "Philox", "SFC64", "Random"}
OF_NUMPY = {"Generator", "BitGenerator", "SeedSequence", "PCG64", "default_rng"}  # all else there has one state for all
DRAWS = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli", "multinomial", "normal", "manual_seed",
         "seed", "random", "seed_learner"}  # fmt: skip


def in_functions(tree: ast.AST, name: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every node with the class and the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{name}.{node.name}".lstrip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else name
        yield node, inner
        yield from in_functions(node, inner)


def dotted(node: ast.AST) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)] if isinstance(node, ast.Name) else ["", *reversed(parts)])


def sources(path: Path, root: Path = ROOT) -> Iterator[tuple[str, str, str]]:
    """(where, what kind of source, the expression) of everything in the file that random numbers may come from."""
    file = path.relative_to(root).as_posix()
    parsed = tree(path)[0] if root == ROOT else ast.parse(path.read_text(encoding="utf-8"))
    for node, function in in_functions(parsed):
        where = f"{file} {function}".strip()
        if isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random", "secrets", "torch.random"):
            yield where, "hidden", ast.unparse(node)  # its names would not say where they come from
        if isinstance(node, ast.Attribute):
            module, _, last = dotted(node).rpartition(".")
            of_numpy = module in ("np.random", "numpy.random") and last not in OF_NUMPY
            if of_numpy or (module == "random" and last != "Random") or last == "rvs":
                yield where, "global", ast.unparse(node)
            of_secrets = module == "secrets" and last.startswith(("token", "rand", "choice", "System"))
            if of_secrets or dotted(node) in ("os.urandom", "uuid.uuid4", "uuid.uuid1"):
                yield where, "system", ast.unparse(node)
        if not isinstance(node, ast.Call):
            continue
        module, _, last = dotted(node.func).rpartition(".")
        if last in MAKERS and (module in ("np.random", "numpy.random", "random") or not module):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            nothing = not given or all(isinstance(one, ast.Constant) and one.value is None for one in given)
            yield where, "unseeded" if nothing else "seeded", ast.unparse(node)
        if last in DRAWS and (module.partition(".")[0] == "torch" or last == "seed_learner"):
            yield where, "torch", ast.unparse(node)


@functools.cache
def of_the_package() -> tuple[tuple[str, str, str], ...]:
    return tuple(source for path in modules() for source in sources(path))


def unsound(found: Iterable[tuple[str, str, str]]) -> list[str]:
    """One line for each source that is not among those above."""
    allowed = {"system": SYSTEM.keys(), "seeded": SEEDED.keys(), "torch": OF_TORCH, "global": GLOBAL}
    return [f"{where}: {kind}: {text}" for where, kind, text in found if where not in allowed.get(kind, ())]


def test_random_numbers_come_from_streams() -> None:
    assert len(of_the_package()) > len(SYSTEM) + len(SEEDED)
    assert not unsound(of_the_package())


def test_every_exception_is_still_there() -> None:
    found = {(where, kind) for where, kind, _ in of_the_package()}
    for kind, named in (("system", set(SYSTEM)), ("seeded", set(SEEDED)), ("torch", OF_TORCH), ("global", GLOBAL)):
        assert not [where for where in named if (where, kind) not in found], kind


# Draws over a list, in the rooms that hold people's data: a permutation of a private list moves everybody's coin when one thing
# goes (`seeds.coins` does not). What stands here permutes as many things as everybody may count.
COUNTED, SHARED = "of all people of a public count, picked from afterwards", "of clients or pairs of them"
STATED = "the guarantee states what it was made from (split-from-labels, membership-from-labels)"
PROVEN, MEASURED = "the proof's own", "of labels that only measure, in what stays with the data's holder"
LISTS = {
    "tasks/base/graphs.py prepare": COUNTED,
    "tasks/graph_classification.py split_by_folds": STATED,
    "tasks/graph_classification.py split_by_clients": COUNTED,
    "tasks/base/graphs.py verify": SHARED,
    "tasks/graph_clustering.py accuracy_of_folds": MEASURED,
    "tasks/graph_clustering.py draw_public.make": COUNTED,
    "tasks/node_classification/paid_scores.py split_judges": COUNTED,
    "tasks/node_classification/__init__.py map_of_nodes": COUNTED,
    "tasks/node_classification/owners.py _as_asked": COUNTED,
    "tasks/node_classification/training.py draw_rounds": SHARED,
    "tasks/node_classification/protocols.py _ids": COUNTED,
    "methods/dpar.py _view": PROVEN,
    "methods/dpar.py _choices": COUNTED,
    "methods/local_dp.py _draw_attendance": SHARED,
    "partition/dirichlet.py _owners": STATED,
    "partition/ego.py split": STATED,
    "partition/uniform.py split": COUNTED,
    "partition/uniform.py deal": COUNTED,
    "data/base/splits.py random_split": COUNTED,
    "data/base/splits.py per_class": COUNTED,
    "data/base/splits.py by_parts": COUNTED,
    "learning/own_models.py fit_head": COUNTED,
    "learning/own_models.py choose_steps": COUNTED,
    "learning/descents.py draw_fixed_mask": PROVEN,
}
ROOMS = ("tasks", "models", "methods", "partition", "data/base/splits.py",
         *(f"learning/{name}.py" for name in ("own_models", "descents", "public_training", "whole_graph")))  # fmt: skip
OVER_LISTS = {"permutation", "permuted", "shuffle", "choice", "choices", "sample", "randperm", "multinomial",
              "KFold", "StratifiedKFold", "StratifiedShuffleSplit", "ShuffleSplit", "train_test_split"}  # fmt: skip


def list_draws(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Where the file draws over a list."""
    file = path.relative_to(root).as_posix()
    for node, function in in_functions(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in OVER_LISTS and owner != "self":
            yield f"{file} {function}"


def test_nothing_is_drawn_over_a_private_list() -> None:
    """Whoever adds a permutation, a choice or a shuffle to these rooms says here why its list is public, or uses coins."""
    files = [path for path in modules() if path.relative_to(ROOT).as_posix().startswith(ROOMS)]
    found = {where for path in files for where in list_draws(path)}
    assert not found - LISTS.keys(), "draw a coin for each thing: seeds.coins(root, …, things=…), PlanStreams.drawn"
    assert not LISTS.keys() - found, "is not there any more"


COINS = 'seeds.coins(int(context.root), "split", context.dataset, seed, things=edges)'


@pytest.mark.parametrize(
    ("file", "sound", "check", "bad"),
    [
        *(
            ("methods/gap_node.py", 'streams.generator("batch")', lambda *given: unsound(sources(*given)), bad)
            for bad in (
                "np.random.default_rng()", "np.random.default_rng(seed=7)", "np.random.rand(3)", "random.random()",
                "secrets.randbits(8)", "os.urandom(8)", "torch.rand(3)", "scipy.stats.norm.rvs()",
            )
        ),
        *(
            ("tasks/link_prediction.py", COINS, lambda *given: list(list_draws(*given)), bad)
            for bad in ("rng.permutation(len(edges))", "random.sample(edges, 3)", "StratifiedKFold(5, shuffle=True)")
        ),
    ],
)  # fmt: skip
def test_the_check_sees_each_other_source_of_coins(
    file: str, sound: str, check: Callable[..., list[str]], bad: str, tmp_path: Path
) -> None:
    """Such a line in the place of GAP's stream of batches, or of link prediction's coins."""
    text, place = (ROOT / file).read_text(encoding="utf-8"), tmp_path / file
    assert text.count(sound) == 1
    place.parent.mkdir()
    for found, seen in ((text, False), (text.replace(sound, bad), True)):
        place.write_text(found, encoding="utf-8")
        assert bool(check(place, tmp_path)) is seen
