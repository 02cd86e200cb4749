"""T5: its buckets, what it refuses, and its tasks against transformers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.ops import naive
from zoo import ops
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.t5 import T5Config

TEXTS = ["the old town by the water", "who was it ? they said no"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("t5-small", tmp_path_factory.mktemp("t5"))


@pytest.mark.parametrize(("count", "most"), [(32, 128), (32, 20), (8, 12), (64, 1000), (4, 3)])
@pytest.mark.parametrize("both_sides", [True, False])
def test_buckets_are_those_of_transformers(count, most, both_sides):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="needs transformers, the reference")
    config = T5Config(relative_attention_num_buckets=count, relative_attention_max_distance=most)
    distance = torch.arange(-most - 50, most + 51)
    wanted = t5.T5Attention._relative_position_bucket(distance, both_sides, count, most).numpy()
    np.testing.assert_array_equal(config.buckets(both_sides), wanted[50:-50])
    assert (wanted[:50] == wanted[50]).all()
    assert (wanted[-50:] == wanted[-51]).all()


@pytest.mark.parametrize("start", [None, [0, 0], [3, 0]])
def test_relative_bias(start):
    rng = np.random.default_rng(0)
    table, k = rng.normal(size=(7, 3)).astype(np.float32), np.zeros((2, 9, 3, 4), np.float32)
    start = None if start is None else np.array(start)
    wanted = naive.relative_bias(table, 5, k, start)
    np.testing.assert_allclose(np.broadcast_to(ops.relative_bias(table, 5, k, start), wanted.shape), wanted, rtol=1e-6)
    torch = pytest.importorskip("torch", reason="needs torch")
    found = ops.relative_bias(
        *map(torch.tensor, (table,)), 5, torch.tensor(k), start if start is None else torch.tensor(start)
    )
    np.testing.assert_allclose(np.broadcast_to(found.numpy(), wanted.shape), wanted, rtol=1e-6)


def test_texts_are_those_of_transformers(folder):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def theirs(prefix, **options):
        given = tokenizer([prefix + text for text in TEXTS], return_tensors="pt", padding=True)
        given.pop("token_type_ids", None)
        return [tokenizer.decode(row, skip_special_tokens=True).strip() for row in model.generate(**given, **options)]

    assert zoo.load(folder)(TEXTS, max_new_tokens=9) == theirs("", max_new_tokens=9)
    summarize, translate = (zoo.load(folder, task=task) for task in ("summarization", "translation"))
    wanted = theirs("summarize: ", max_length=40, min_length=30, num_beams=4)
    assert summarize(TEXTS, max_length=40) == wanted
    wanted = theirs("translate English to German: ", max_new_tokens=7, num_beams=4)
    assert translate(TEXTS, source="en", target="de", max_new_tokens=7) == wanted
    named = zoo.load(folder, task="translation_en_to_de")
    assert named(TEXTS, max_new_tokens=7) == translate(TEXTS, src_lang="en", tgt_lang="de", max_new_tokens=7) == wanted
    assert translate(TEXTS[0], prefix="to French: ", max_new_tokens=5) == theirs("to French: ", max_new_tokens=5)[0]


def test_refused(folder):
    translate = zoo.load(folder, task="translation")
    with pytest.raises(InputError, match=r"source is None and target 'de', and the checkpoint has en to de"):
        translate("one", target="de")
    with pytest.raises(InputError, match=r"source is 'en' and target 'fr', and the checkpoint has en to de"):
        zoo.load(folder, task="translation_en_to_fr")("one")
    with pytest.raises(UnsupportedError, match="num_return_sequences"):
        translate("one", source="en", target="de", num_return_sequences=2, max_new_tokens=3)
    with pytest.raises(InputError, match="takes no pixel_values"):
        zoo.load_model(folder)(np.ones((1, 3), int), decoder_input_ids=[[0]], pixel_values=None)
    for raw, says in (
        ({"relative_attention_num_buckets": 7}, "expected an even number"),
        ({"relative_attention_max_distance": 9}, "more than half of the buckets"),
        ({"d_kv": 0}, "d_kv = 0 is out of range"),
    ):
        with pytest.raises(ConfigError, match=says):
            T5Config.from_dict(raw)
    with pytest.raises(UnsupportedError, match="expected ACTIVATION or gated-ACTIVATION"):
        T5Config.from_dict({"feed_forward_proj": "gelu-gated"})


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"tie_word_embeddings": True},
        {"tie_word_embeddings": False},  # version 1.1 as transformers 4 wrote it
        {"tie_word_embeddings": True, "scale_decoder_outputs": False},  # and as transformers 5 does
        {"tie_word_embeddings": False, "scale_decoder_outputs": True},
        {"scale_decoder_outputs": False},
    ],
)
@pytest.mark.parametrize("kind", ["T5", "MT5"])
def test_scaled_logits_are_those_of_transformers(kind, raw, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 1, "num_heads": 4, "vocab_size": 60}
    torch.manual_seed(0)
    theirs = getattr(transformers, f"{kind}ForConditionalGeneration")(
        getattr(transformers, f"{kind}Config")(**sizes, decoder_start_token_id=0)
    )
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    saved = json.loads(path.read_text())
    for name in ("tie_word_embeddings", "scale_decoder_outputs"):
        saved.pop(name, None)
    path.write_text(json.dumps({**saved, **raw}))
    theirs = type(theirs).from_pretrained(tmp_path).eval()
    ids, written = np.arange(3, 12)[None], np.arange(5, 9)[None]
    with torch.no_grad():
        wanted = theirs(torch.tensor(ids), decoder_input_ids=torch.tensor(written)).logits.numpy()
    model = zoo.load_model(tmp_path)
    np.testing.assert_allclose(model(ids, decoder_input_ids=written).logits, wanted, rtol=1e-4, atol=1e-5)
    zoo.save(model, tmp_path / "again")
    again = type(theirs).from_pretrained(tmp_path / "again").eval()
    with torch.no_grad():
        found = again(torch.tensor(ids), decoder_input_ids=torch.tensor(written)).logits.numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
