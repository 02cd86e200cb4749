"""CUDA graphs: what is recorded, padded, copied and cut, that replays equal calls, and what has no graph.

Where there is no GPU a tape stands in for CUDA: it records the functions of torch that a call runs, with the tensors
that they ran on, and runs these again on whatever the same memory then holds.  What was decided on the host it repeats,
as a graph does; a look at a number of the device, or a new number from the host, it refuses, as a capture does.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import threading
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch, whose calls are recorded")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import zoo  # noqa: E402
from zoo import ops  # noqa: E402
from zoo.checkpoint.load import load_model  # noqa: E402
from zoo.errors import InputError, UnsupportedError  # noqa: E402
from zoo.generate import GenerationConfig, generate, search  # noqa: E402
from zoo.nn import Memo, Module  # noqa: E402
from zoo.ops import on_torch  # noqa: E402
from zoo.ops.on_torch import vision  # noqa: E402
from zoo.runner import Runner  # noqa: E402
from zoo.runner.calls import padded_length  # noqa: E402
from zoo.runner.graphs import Graphs  # noqa: E402
from zoo.runner.recording import CudaRecorder  # noqa: E402

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "torch:cpu"
REFUSED = ("aten::_local_scalar_dense", "aten::lift_fresh", "aten::nonzero", "aten::masked_select")


class Tape(TorchDispatchMode):
    """A recording of the calls that make no view: views stay what they are."""

    def __init__(self, fn):
        super().__init__()
        self.calls: list[tuple[Any, tuple, dict, list]] = []
        with pytest.MonkeyPatch.context() as patch, self:
            patch.setattr(torch, "from_numpy", _refusing(torch.from_numpy))
            self.outputs = fn()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in REFUSED:
            raise RuntimeError(f"{func} while it is captured")
        out = func(*args, **(kwargs or {}))
        given = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        made = [t for t in _tensors(out) if t.untyped_storage().data_ptr() not in given]
        if made or func._schema.is_mutable:
            self.calls.append((func, args, kwargs or {}, out if made else None))
        return out

    def replay(self):
        for func, args, kwargs, out in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(_tensors(out), _tensors(again), strict=True) if out is not None else ():
                old.copy_(new)


def _refusing(from_numpy):
    capturing = threading.get_ident()

    def refusing(array):
        if threading.get_ident() == capturing:
            raise RuntimeError("an array of the host while it is captured")
        return from_numpy(array)

    return refusing


class TapeRecorder:
    """In place of `zoo.runner.CudaRecorder`."""

    def __init__(self):
        self.recorded = self.turns = 0

    def warm_up(self, fn):
        fn()

    def record(self, fn):
        self.recorded += 1
        return Tape(fn)

    @contextlib.contextmanager
    def turn(self):
        self.turns += 1
        yield


def _tensors(node):
    if isinstance(node, torch.Tensor):
        return [node]
    if isinstance(node, dict):
        node = list(node.values())
    return [t for child in node for t in _tensors(child)] if isinstance(node, list | tuple) else []


@pytest.fixture
def graphs(monkeypatch):
    """Graphs, real ones on a GPU."""
    if GPU:
        return Graphs(CudaRecorder(DEVICE))
    for module in (on_torch, vision):  # what is looked at on a CPU alone
        monkeypatch.setattr(module, "on_host", lambda x: False)
    return Graphs(TapeRecorder())


@pytest.fixture(autouse=True)
def _one_thread():
    """The tensors are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """`model(spec)`: a random checkpoint's."""
    pytest.importorskip("transformers", reason="needs the package parity, which is installed with transformers")
    from parity.checkpoints import build

    made: dict[str, Any] = {}

    def load(name: str) -> Any:
        if name not in made:
            folder = build(name, tmp_path_factory.mktemp("model") / name, "tiny")
            made[name] = load_model(folder, device=DEVICE, dtype="float32")
        return made[name]

    return load


@pytest.fixture(scope="module")
def stories():
    return zoo.load("stories260k", device=DEVICE)


def texts(rows, tokens, seed=0, pad=0):
    """Ids and mask of rows of unequal length, the first one full."""
    rng = np.random.default_rng([rows, tokens, seed])
    lengths = np.append(tokens, rng.integers(1, tokens + 1, rows - 1))
    mask = np.arange(tokens) < lengths[:, None]
    return np.where(mask, rng.integers(10, 300, (rows, tokens)), pad), mask


def check(found, wanted):
    assert type(found) is type(wanted)
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        if b is None:
            assert a is None
            continue
        a, b = ops.to_numpy(a), ops.to_numpy(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1.0, np.abs(b).max()))


# Texts


@pytest.mark.parametrize(
    "name",
    [
        "bert-base-uncased",
        "all-MiniLM-L6-v2",
        "bert-next-sentence",
        "bert-base-squad2",
        "bert-base-NER",
        "roberta-base",
        "twitter-roberta-base-sentiment",
        "bge-m3",
        "bert-decoder",
        "llama-classifier",
        "llama-tagger",
    ],
)
def test_texts_of_any_length(name, model, graphs):
    own = model(name)
    wrapped = graphs.texts(own)
    pad = own.config.pad_token_id or 0
    for seed in range(2):
        for rows, tokens in ((1, 5), (3, 9), (4, 16), (1, 8)):
            ids, mask = texts(rows, tokens, seed, pad)
            wanted = own(ids, mask)
            check(wrapped(ids, mask), wanted)
            if mask.all():
                check(wrapped(ids), wanted)
            left = ids[:, ::-1].copy(), mask[:, ::-1].copy()
            check(wrapped(*left), own(*left))
    assert 0 < len(graphs) <= 8
    assert not graphs.failed


def test_types_tensors_and_lists(model, graphs):
    own = model("bert-base-uncased")
    wrapped = graphs.texts(own)
    ids, mask = texts(2, 11)
    types = (np.arange(11) > 4) * np.ones((2, 1), int)
    like = own.body.embeddings.word
    placed = [torch.from_numpy(x).to(like.device) for x in (ids, mask, types)]
    for _ in range(3):
        check(wrapped(ids, mask, types), own(ids, mask, types))
        check(wrapped(*placed), own(ids, mask, types))
        check(wrapped(ids, token_type_ids=types), own(ids, token_type_ids=types))
        check(wrapped(ids.tolist()), own(ids))
    assert len(graphs) == 1  # a mask is made where there is padding; lists are called as they are


def test_outputs_are_copies(model, graphs):
    own = model("all-MiniLM-L6-v2")
    wrapped = graphs.texts(own)
    given = [texts(2, 16, seed)[0] for seed in range(4)]
    found = [wrapped(ids) for ids in given]
    for ids, one in zip(given, found, strict=True):
        check(one, own(ids))


def test_what_is_wrong_is_refused_as_the_model_refuses_it(model, graphs):
    own = model("bert-base-uncased")
    wrapped = graphs.texts(own)
    ids, mask = texts(2, 16)
    long, _ = texts(1, own.body.embeddings.max_positions + 1)
    bad = [(ids + 10_000,), (-ids,), (ids, mask[:, :5]), (ids, mask * 2), (ids[0],), (long,), (ids, mask, ids), (None,)]
    for _ in range(3):
        check(wrapped(ids, mask), own(ids, mask))
        for args in bad:
            with pytest.raises(InputError) as ours:
                own(*args)
            with pytest.raises(InputError) as found:
                wrapped(*args)
            assert str(found.value) == str(ours.value)
    assert not graphs.failed


def test_what_has_no_graph(model, graphs, monkeypatch):
    own = model("bert-base-uncased")
    monkeypatch.setattr("zoo.runner.calls.MAX_TOKENS", 32)
    wrapped = graphs.texts(own)
    body = graphs.texts(own.body)
    ids, _ = texts(3, 16)  # 4 rows of 16
    for _ in range(3):
        check(wrapped(ids), own(ids))
        check(body(ids[:1], position_ids=np.arange(16)[None]), own.body(ids[:1], position_ids=np.arange(16)[None]))
    dynamic = graphs.texts(model("llama-dynamic"))
    for _ in range(3):
        check(dynamic(ids[:1]), model("llama-dynamic")(ids[:1]))
    assert len(graphs) == 0


def test_lengths():
    assert [padded_length(n) for n in (1, 8, 9, 128, 129, 512, 513)] == [8, 8, 16, 128, 160, 512, 1024]


# Images


@pytest.mark.parametrize(
    "name",
    [
        "vit-base-patch16-224",
        "deit-base-distilled-patch16-224",
        "beit-base-patch16-224",
        "beit-base-finetuned-ade-640-640",
        "table-transformer-detection",
        "table-transformer-learned-positions",
    ],
)
def test_images(name, model, graphs):
    own = model(name)
    wrapped = graphs.images(own)
    rng = np.random.default_rng(0)
    image = own.config.image if hasattr(own.config, "image") else (70, 96)
    larger = (image[0] * 2, image[1]) if name.startswith(("beit", "table")) else image
    for i in range(3):
        for rows, size in ((1, image), (2, larger)):
            pixels = rng.standard_normal((rows, *size, 3)).astype(np.float32 if i else np.float64)
            check(wrapped(pixels), own(pixels))
            if name.startswith("table"):
                mask = np.arange(size[1]) < rng.integers(40, 90, (rows, 1, 1))
                mask = np.broadcast_to(mask, pixels.shape[:3])
                check(wrapped(pixels, mask), own(pixels, mask))
    assert len(graphs) == (4 if name.startswith("table") else 2)
    with pytest.raises(InputError):
        wrapped(pixels[..., :2])
    with pytest.raises(InputError):
        wrapped(pixels[..., :2])
    assert not graphs.failed


def test_what_a_layer_keeps_of_a_grid_is_kept_for_the_graph(model, graphs):
    """Other sizes between replays: the positions of the first grid are still where the graph reads them."""
    own = model("beit-base-patch16-224")
    wrapped, (Y, X) = graphs.images(own), own.config.image
    pixels = {rows: np.random.default_rng(rows).standard_normal((1, Y * rows, X, 3)) for rows in (1, 2, 3)}
    wanted = {rows: own(x) for rows, x in pixels.items()}
    for _ in range(4):
        for rows in (1, 2, 3):
            check(wrapped(pixels[rows]), wanted[rows])
            gc.collect()
            torch.full((50, 50), float("nan"))
    assert len(graphs) == 3


@pytest.mark.skipif(GPU, reason="needs the tape of torch's CPU calls, which shows what they read")
@pytest.mark.parametrize("name", ["vit-base-patch16-224", "beit-base-patch16-224", "table-transformer-detection"])
def test_a_graph_keeps_what_it_reads(name, model, graphs, monkeypatch):
    """All that is neither the model's for good, nor an input, nor made by the graph itself."""
    own = model(name)
    image = own.config.image if hasattr(own.config, "image") else (70, 96)
    pixels = np.zeros((1, *image, 3))
    wrapped = graphs.images(own)
    for _ in range(2):
        wrapped(pixels)
    (graph,) = graphs._graphs.values()
    modules = list(_modules(own))
    for module in modules:
        if isinstance(module, Memo):  # asked for another size by now
            monkeypatch.setattr(module, "_latest", None)
    made, read = set(), set()
    for _, args, kwargs, out in graph.recording.calls:
        read |= _storages((args, kwargs))
        made |= _storages(out)
    held = _storages(([list(vars(module).values()) for module in modules], graph.inputs, graph.kept))
    assert made
    assert read - made - held == set()


def _modules(node):
    """`node` and all modules under it."""
    if isinstance(node, Module):
        yield node
    children = vars(node).values() if isinstance(node, Module) else node if isinstance(node, list | tuple) else ()
    for child in children:
        yield from _modules(child)


def _storages(node):
    return {x.untyped_storage().data_ptr() for x in _tensors(node)}


def test_the_least_recently_used_is_forgotten(model, graphs):
    own = model("all-MiniLM-L6-v2")
    graphs.most = 2
    wrapped = graphs.texts(own)
    for _ in range(2):
        for tokens in (8, 16, 32, 48):
            ids, _ = texts(1, tokens)
            for _ in range(2):
                check(wrapped(ids), own(ids))
            assert len(graphs) <= 2


def test_threads_take_turns(model, graphs):
    own = model("all-MiniLM-L6-v2")
    wrapped, wrong = graphs.texts(own), []

    def work(seed):
        for i in range(6):
            ids, mask = texts(1 + i % 2, 16, seed)
            found, wanted = wrapped(ids, mask), own(ids, mask)
            if not np.allclose(ops.to_numpy(found[0]), ops.to_numpy(wanted[0]), atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_failure_is_said_once_and_costs_nothing_but_speed(model, graphs, monkeypatch):
    own = model("all-MiniLM-L6-v2")
    monkeypatch.setattr(graphs.recorder, "record", lambda fn: (_ for _ in ()).throw(RuntimeError("not permitted")))
    wrapped = graphs.texts(own)
    ids, _ = texts(2, 16)
    check(wrapped(ids), own(ids))
    with pytest.warns(UserWarning, match="no CUDA graph of BertModel could be made.*RuntimeError: not permitted"):
        check(wrapped(ids), own(ids))
    check(wrapped(ids), own(ids))  # a warning would be an error here
    assert graphs.failed


# Decoders


DECODERS = ("Llama-3.2-1B", "llama-yarn", "bert-decoder", "roberta-decoder", "trocr-decoder-sinusoidal")


def steps(model, ids, count, context):
    """Logits of a prompt, and of the steps after it."""
    cache = model.new_cache(len(ids), ids.shape[1])
    out = [model.next_logits(ids[:, :-count], None, cache, **context)]
    for i in range(ids.shape[1] - count, ids.shape[1]):
        out.append(model.next_logits(ids[:, i : i + 1], None, cache))
    return tuple(out), cache


@pytest.mark.parametrize("name", DECODERS)
def test_steps_at_any_position(name, model, graphs):
    own = model(name)
    wrapped = graphs.decoder(own)
    for rows, tokens, count in ((1, 9, 5), (3, 20, 8), (4, 12, 4), (3, 17, 3)):
        ids, _ = texts(rows, tokens)
        found, cache = steps(wrapped, ids, count, {})
        wanted, eager = steps(own, ids, count, {})
        check(found, wanted)
        assert cache.counts.tolist() == ops.to_numpy(cache.start).tolist() == eager.counts.tolist()
        assert cache.capacity == eager.capacity
        with pytest.raises(InputError, match=f"the cache holds {tokens} tokens"):
            wrapped.next_logits(ids[:, :1], None, cache)
        with pytest.raises(InputError, match="must lie in"):
            wrapped.next_logits(ids[:, :1] + 10_000, None, cache)
        del cache
    assert len(graphs) == 2  # of 1 and of 4 rows


@pytest.mark.parametrize("name", ["trocr-base-handwritten", "trocr-small-printed", "trocr-beit"])
def test_steps_with_an_encoder(name, model, graphs):
    own = model(name)
    wrapped, (Y, X) = graphs.decoder(own), own.config.encoder.image
    for seed, rows in enumerate((2, 1, 2)):
        pixels = np.random.default_rng(seed).standard_normal((rows, Y, X, 3))
        states = own.encode(pixels)
        check(wrapped.encode(pixels), states)
        ids, _ = texts(rows, 9, seed)
        found, _ = steps(wrapped, ids, 6, {"encoder_hidden_states": states})
        check(found, steps(own, ids, 6, {"encoder_hidden_states": states})[0])
    assert not graphs.failed
    assert len(graphs) >= 2


def test_steps_with_encoders_of_other_images(model, graphs):
    """More states than before lie elsewhere: the graph of those before is not replayed."""
    own = model("trocr-beit")
    wrapped, (Y, X) = graphs.decoder(own), own.config.encoder.image
    ids, _ = texts(1, 7)
    for seed, size in enumerate(((Y, X), (Y, 2 * X), (Y, 2 * X), (Y, X))):
        states = own.encode(np.random.default_rng(seed).standard_normal((1, *size, 3)))
        found = steps(wrapped, ids, 4, {"encoder_hidden_states": states})[0]
        check(found, steps(own, ids, 4, {"encoder_hidden_states": states})[0])
    assert len(graphs) == 1


def test_a_decoder_with_and_without_an_encoder(model, graphs):
    own = model("trocr-decoder")
    wrapped, (ids, _) = graphs.decoder(own), texts(1, 8)
    states = np.random.default_rng(0).standard_normal((1, 5, own.config.cross_size))
    for context in ({"encoder_hidden_states": states}, {}, {"encoder_hidden_states": states}):
        check(steps(wrapped, ids, 4, context)[0], steps(own, ids, 4, context)[0])
    assert len(graphs) == 1


def test_rows_that_left_write_nowhere(model, graphs):
    """They were full, and the row that stays takes tokens back."""
    own = model("Llama-3.2-1B")
    wrapped = graphs.decoder(own)
    ids, _ = texts(4, own.max_positions)
    out = []
    for one in (own, wrapped):
        cache = one.new_cache(4)
        one.next_logits(ids, None, cache)
        cache.advance(-4)
        first = [one.next_logits(ids[:, i : i + 1], None, cache) for i in range(4)]
        cache.select(np.array([2]))
        cache.advance(-3)
        out.append((*first, *(one.next_logits(ids[:1, i : i + 1], None, cache) for i in range(3))))
    check(*out)
    assert len(graphs) == 1


def test_a_cache_is_as_new(stories, graphs):
    """Nothing of the generation before is left in its memory, not even what multiplied by 0 is no number."""
    wrapped = graphs.decoder(stories.model)
    ids, _ = texts(1, 12)
    wanted, _ = steps(stories.model, ids, 5, {})
    for _ in range(2):
        found, cache = steps(wrapped, ids, 5, {})
        check(found, wanted)
        for x in (*cache.keys, *cache.values):
            x.fill_(float("nan"))
        del cache


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "seed": 3, "num_return_sequences": 2},
        {"num_beams": 3},
        {"no_repeat_ngram_size": 2},
        {"max_new_tokens": None, "max_length": 20},  # rows that end one after the other
    ],
    ids=str,
)
@pytest.mark.parametrize("away", [False, True])
def test_generation(stories, graphs, options, away, monkeypatch):
    own = stories.model
    wrapped = graphs.decoder(own)
    prompts = [
        stories.tokenizer.backend.encode(t).ids for t in ("Once upon a time", "Lily", "The cat and the dog", "A")
    ]
    config = GenerationConfig(**{"max_new_tokens": 24, "eos_token_id": (2,), **options})
    wanted = generate(own, prompts, config)
    if away:
        monkeypatch.setattr(search, "is_away", lambda logits: not isinstance(logits, np.ndarray))
    for _ in range(2):
        found = generate(wrapped, prompts, config)
        for row, other in zip(found, wanted, strict=True):
            for a, b in zip(row, other, strict=True):
                assert a.ids.tolist() == b.ids.tolist()
                np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)
                assert a.reason == b.reason
    assert not graphs.failed
    assert len(graphs) == (0 if options.keys() & {"num_beams", "num_return_sequences"} else 1)


def test_reading_with_rows_that_end(model, graphs):
    own = model("trocr-base-handwritten")
    wrapped, (Y, X) = graphs.decoder(own), own.config.encoder.image
    states = own.encode(np.random.default_rng(5).standard_normal((4, Y, X, 3)))
    prompts = [[7], [8, 9, 10], [11, 12], [13, 14, 15, 16, 17]]
    config = GenerationConfig(max_length=12)
    for _ in range(2):
        found = generate(wrapped, prompts, config, encoder_hidden_states=states)
        wanted = generate(own, prompts, config, encoder_hidden_states=states)
        assert [one.ids.tolist() for (one,) in found] == [one.ids.tolist() for (one,) in wanted]
    assert len(graphs) == 1
    assert not graphs.failed


def test_generations_at_once_have_memory_of_their_own(stories, graphs):
    own = stories.model
    wrapped = graphs.decoder(own)
    ids = np.array([stories.tokenizer.backend.encode("Once upon a time there was a").ids])
    (wanted, _), rooms = steps(own, ids, 5, {}), []
    for _ in range(3):
        one, two = wrapped.new_cache(1, 30), wrapped.new_cache(1, 30)
        for cache in (one, two):
            wrapped.next_logits(ids[:, :-5], None, cache)
        for i in range(5):
            for cache in (one, two):
                check(wrapped.next_logits(ids[:, i - 5 : ids.shape[1] + i - 4], None, cache), wanted[i + 1])
        rooms += [one.keys[0].data_ptr(), two.keys[0].data_ptr()]
        del one, two, cache
    assert len(set(rooms)) == 2  # which serve again
    assert len(graphs) == 2


def test_where_memory_is_short_that_of_ended_generations_is_given_up(stories, graphs, monkeypatch):
    own, calls = stories.model, []
    wrapped = graphs.decoder(own)
    kept = wrapped.new_cache(1, 30)
    ended = wrapped.new_cache(2, 30)
    del ended
    assert len(wrapped._rooms) == 2
    new_cache = type(own).new_cache

    def short(self, batch, capacity):
        calls.append(batch)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("no room")
        return new_cache(self, batch, capacity)

    monkeypatch.setattr(type(own), "new_cache", short)
    cache = wrapped.new_cache(4, 30)
    assert calls == [4, 4]
    assert [len(room.tokens) for room in wrapped._rooms] == [1, 4]
    assert kept.capacity == cache.capacity == 30


def test_a_conversation_goes_on(stories, graphs):
    """A cache that takes tokens back, and is used for longer than a generation."""
    own = stories.model
    wrapped = graphs.decoder(own)
    ids, _ = texts(1, 24)
    found, wanted = [], []
    for model, out in ((wrapped, found), (own, wanted)):
        cache = model.new_cache(1, 60)
        model.next_logits(ids, None, cache)
        for _ in range(2):
            for i in range(4):
                out.append(model.next_logits(ids[:, i : i + 1], None, cache))
            cache.advance(-2)
            model.next_logits(ids[:, 5:9], None, cache)
            cache.advance(np.array([-1]))
    check(tuple(found), tuple(wanted))
    assert len(graphs) == 1


# What users see


def test_graphs_are_for_gpus():
    for device in (None, "cpu", "torch:cpu"):
        with pytest.raises(UnsupportedError, match="graphs=True needs device='cuda'"):
            zoo.load("stories260k", device=device, graphs=True)
        assert type(zoo.load("stories260k", device=device, graphs=False).runner) is Runner
        assert type(zoo.load("stories260k", device=device).runner) is Runner
    if GPU:
        assert type(zoo.load("stories260k", device="cuda").runner) is Graphs
        assert type(zoo.load("stories260k", device="cuda", graphs=False).runner) is Runner


def test_tasks_go_through_their_graphs(stories, graphs, monkeypatch):
    wanted = stories(["Once upon a time", "Lily"], max_new_tokens=12)
    monkeypatch.setattr(stories, "runner", graphs)
    assert stories(["Once upon a time", "Lily"], max_new_tokens=12) == wanted
    assert len(graphs) == 1
    assert "".join(stories.stream("Lily", max_new_tokens=12)) == stories("Lily", max_new_tokens=12)
    perplexity = stories.perplexity("Once upon a time there was a girl.")
    copied = copy.deepcopy(stories)
    assert len(copied.runner) == 0
    assert copied("Lily", max_new_tokens=12) == wanted[1]
    monkeypatch.setattr(stories, "runner", Runner())
    assert perplexity == pytest.approx(stories.perplexity("Once upon a time there was a girl."), rel=1e-5)
