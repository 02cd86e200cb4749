"""LED: its encoder's windows and global tokens on odd lengths, what it writes with them, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError
from zoo.loading import load_model
from zoo.models.led import LEDConfig

SMALL = {"vocab_size": 50, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
SMALL |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 20, "attention_window": [4, 8]}
SMALL |= {"max_encoder_position_embeddings": 96, "max_decoder_position_embeddings": 24}


def reference(folder):
    """transformers' model of a random checkpoint, whose tensors are not small."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    model = transformers.LEDForConditionalGeneration(transformers.LEDConfig(**SMALL)).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.normal_(std=0.3)
    model.save_pretrained(folder)
    return model


def inputs(rng, T):
    ids = rng.integers(3, 50, (3, T))
    mask = (np.arange(T) < np.array([[T], [max(1, T // 2)], [1]])).astype(np.int64)
    marks = (rng.random((3, T)) < np.array([[0.3], [0.0], [1.0]])).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": marks}


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_global_tokens_of_the_encoder(tmp_path, device, rng):
    theirs, ours = reference(tmp_path), load_model(tmp_path, device=device)
    import torch

    for T in (1, 7, 8, 45):
        given = inputs(rng, T)
        decoder_ids = rng.integers(3, 50, (3, 5))
        with torch.no_grad():
            named = {name: torch.from_numpy(x) for name, x in given.items()}
            wanted = theirs(**named, decoder_input_ids=torch.from_numpy(decoder_ids))
        found = ours(**given, decoder_input_ids=decoder_ids)
        for a, b in ((found.logits, wanted.logits), (found[1], wanted.encoder_last_hidden_state)):
            assert np.abs(zoo.ops.to_numpy(a) - b.numpy()).max() <= 1e-4


def test_what_is_written_depends_on_global_tokens(tmp_path, rng):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    ours = load_model(build("led-base-16384", tmp_path))
    theirs = transformers.LEDForConditionalGeneration.from_pretrained(tmp_path).eval()
    import torch

    given, texts = inputs(rng, 45), []
    for marks in (given["global_attention_mask"], None):
        more = {} if marks is None else {"global_attention_mask": marks}
        arrays = {"input_ids": given["input_ids"], "attention_mask": given["attention_mask"], **more}
        named = {name: torch.from_numpy(x) for name, x in arrays.items()}
        wanted = theirs.generate(**named, max_new_tokens=8, min_new_tokens=8, do_sample=False, num_beams=1)
        texts.append(wanted[:, 1:].tolist())
        context = ours.context(**arrays)
        cache, last, rows = ours.new_cache(3), np.full((3, 1), 2), []
        for _ in range(8):
            logits = np.array(ours.next_logits(last, None, cache, **context))
            logits[:, 2] = -np.inf  # not yet the end
            last, context = logits.argmax(1)[:, None], {}
            rows.append(last)
        assert np.concatenate(rows, 1).tolist() == texts[-1]
    assert texts[0] != texts[1]


@pytest.mark.filterwarnings("ignore:.*were cut there")
def test_summaries_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build("led-base-16384", tmp_path)
    model = transformers.LEDForConditionalGeneration.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = ["the old town by the water", "who was it ? they said no"]
    rows = model.generate(**tokenizer(texts, return_tensors="pt", padding=True), max_new_tokens=9, num_beams=3)
    wanted = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    assert zoo.load(folder, task="summarization")(texts, max_new_tokens=9, num_beams=3) == wanted


def test_what_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="attention_window = 5, expected an even number"):
        LEDConfig.from_dict({**SMALL, "attention_window": 5})
    with pytest.raises(ConfigError, match="max_decoder_position_embeddings"):
        LEDConfig.from_dict({**SMALL, "max_decoder_position_embeddings": 0})
    model = load_model(build("led-base-16384", tmp_path))
    ids = np.full((1, 5), 7)
    with pytest.raises(InputError, match="global_attention_mask has shape"):
        model(ids, ids, global_attention_mask=np.ones((1, 4)))
    with pytest.raises(InputError, match="97 tokens, but the checkpoint has positions for 96"):
        model(np.full((1, 97), 7), ids)
    with pytest.raises(InputError, match="41 tokens, but the checkpoint has positions for 40"):
        model(ids, np.full((1, 41), 7))
