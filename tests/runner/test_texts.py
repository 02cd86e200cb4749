"""Texts by graphs: padded to a few shapes, and cut to their own."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch, whose calls are recorded")

from tests.runner.tape import check, texts  # noqa: E402
from zoo.engines.cuda_graphs.runner import padded_length  # noqa: E402
from zoo.errors import InputError  # noqa: E402


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
def test_texts_of_any_length(name, model, runner):
    own = model(name)
    pad = own.config.pad_token_id or 0
    for seed in range(2):
        for rows, tokens in ((4, 16), (1, 5), (3, 9), (1, 8), (3, 12)):
            ids, mask = texts(rows, tokens, seed, pad)
            wanted = own(ids, mask)
            check(runner(own, ids, mask), wanted)
            if mask.all():
                check(runner(own, ids), wanted)
            left = ids[:, ::-1].copy(), mask[:, ::-1].copy()
            check(runner(own, *left), own(*left))
    assert 0 < len(runner) <= 8
    assert not runner.failed


def test_padding_leaves_nothing_behind(model, runner):
    """Rows and tokens of other texts were in the graph's memory before, with their mask and types."""
    own = model("bert-base-uncased")
    (large, full), (small, mask) = texts(4, 16), texts(3, 9)
    types = np.ones_like(large)
    wanted = own(small, mask, small * 0)
    for _ in range(3):
        check(runner(own, large, full, types), own(large, full, types))
        check(runner(own, small, mask, small * 0), wanted)
        check(runner(own, small[:1, :9], None, small[:1] * 0), own(small[:1, :9]))
    assert len(runner) == 2


def test_types_tensors_and_lists(model, runner):
    own = model("bert-base-uncased")
    ids, mask = texts(2, 11)
    types = (np.arange(11) > 4) * np.ones((2, 1), int)
    placed = [torch.from_numpy(x).to(own.like.device) for x in (ids, mask, types)]
    for _ in range(3):
        check(runner(own, ids, mask, types), own(ids, mask, types))
        check(runner(own, *placed), own(ids, mask, types))
        check(runner(own, ids, token_type_ids=types), own(ids, token_type_ids=types))
        check(runner(own, ids.tolist(), mask.tolist(), types.tolist()), own(ids, mask, types))
    assert len(runner) == 1  # a mask is made where there is padding


def test_outputs_are_copies(model, runner):
    own = model("all-MiniLM-L6-v2")
    given = [texts(2, 16, seed)[0] for seed in range(4)]
    found = [runner(own, ids) for ids in given]
    for ids, one in zip(given, found, strict=True):
        check(one, own(ids))


def test_what_is_wrong_is_refused_as_the_model_refuses_it(model, runner):
    own = model("bert-base-uncased")
    ids, mask = texts(2, 16)
    long, _ = texts(1, own.max_positions + 1)
    bad = [(ids + 10_000,), (-ids,), (ids, mask[:, :5]), (ids, mask * 2), (ids[0],), (long,), (ids, mask, ids), (None,)]
    for _ in range(3):
        check(runner(own, ids, mask), own(ids, mask))
        for args in bad:
            with pytest.raises(InputError) as ours:
                own(*args)
            with pytest.raises(InputError) as found:
                runner(own, *args)
            assert str(found.value) == str(ours.value)
    assert not runner.failed


def test_what_has_no_graph(model, runner, monkeypatch):
    own, dynamic, decoder = model("bert-base-uncased"), model("llama-dynamic"), model("bert-decoder")
    monkeypatch.setattr("zoo.engines.cuda_graphs.runner.MAX_TOKENS", 32)
    ids, _ = texts(3, 16)  # 4 rows of 16
    at = np.arange(16)[None]
    for _ in range(3):
        check(runner(own, ids), own(ids))
        check(runner(own.base_model, ids[:1], position_ids=at), own.base_model(ids[:1], position_ids=at))
        check(runner(dynamic, ids[:1]), dynamic(ids[:1]))
        check(runner(decoder, ids[:1], logits_to_keep=2), decoder(ids[:1], logits_to_keep=2))
        cache = decoder.new_cache(1, 20)
        check(runner(decoder, ids[:1], cache=cache), decoder(ids[:1]))
        assert cache.length == 16
    assert len(runner) == 0


def test_lengths():
    assert [padded_length(n) for n in (1, 8, 9, 128, 129, 512, 513)] == [8, 8, 16, 128, 160, 512, 1024]
