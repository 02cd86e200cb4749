"""BERT, RoBERTa and XLM-R against transformers, on checkpoints that transformers itself wrote: what the parity report
(`zoo parity --all`, each head on NumPy) leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.loading import load_model

torch = pytest.importorskip("torch", reason="needs torch, the reference")
transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

SMALL = {
    "vocab_size": 120,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 40,
}
HEADS = [
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
]
FAMILIES = {
    "Bert": {},
    "Roberta": {"layer_norm_eps": 1e-5},
    "XLMRoberta": {"layer_norm_eps": 1e-5, "type_vocab_size": 1},
}
CLASSES = [f + h for f in FAMILIES for h in HEADS] + ["BertForPreTraining", "BertForNextSentencePrediction"]


def reference(name: str, folder, **config):
    """A random model of transformers, saved in `folder`; biases and norms away from 0 and 1."""
    family = name.split("For")[0].removesuffix("Model").removesuffix("LMHead")
    config = {**SMALL, **FAMILIES[family], **config}
    torch.manual_seed(0)
    cls = getattr(transformers, name)
    model = cls(getattr(transformers, family + "Config")(**config, attn_implementation="eager")).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    model.save_pretrained(folder)
    return model


def batch(rng, rows=3, tokens=17, pad=1, vocab=120, segments=2):
    ids = rng.integers(5, vocab, (rows, tokens))
    mask = np.ones((rows, tokens), bool)
    for row in range(1, rows):
        mask[row, tokens - 3 * row :] = False
    ids[~mask] = pad
    return ids, mask, rng.integers(0, segments, (rows, tokens))


def outputs(value):
    """Whatever a model returns, as a dict of float64 arrays."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif not hasattr(value, "keys"):
        value = {"logits": value}
    return {
        k: np.asarray(v.numpy() if hasattr(v, "numpy") else v, np.float64) for k, v in value.items() if v is not None
    }


def assert_close(found, wanted, mask=None):
    """Within float32 rounding of a few layers: the norms of these models are of order one."""
    found, wanted = outputs(found), outputs(wanted)
    assert found.keys() <= wanted.keys()
    for key, a in found.items():
        b = wanted[key]
        assert a.shape == b.shape, key
        if mask is not None and a.ndim >= 2 and a.shape[:2] == mask.shape:
            a, b = a[mask], b[mask]  # what padding becomes is nobody's result
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * np.abs(b).max(), err_msg=key)


@pytest.mark.parametrize("name", CLASSES)
def test_equals_transformers_on_torch(name, tmp_path, rng):
    model = reference(name, tmp_path)
    segments = 1 if name.startswith("XLM") else 2
    ids, mask, types = batch(rng, pad=0 if name.startswith("Bert") else 1, segments=segments)
    if name.endswith("MultipleChoice"):
        ids, mask, types = (a.reshape(3, 1, -1).repeat(2, 1) for a in (ids, mask, types))
        ids = ids.copy()
        ids[:, 1, 0] = 7
    with torch.no_grad():
        wanted = model(
            *(torch.from_numpy(a) for a in (ids,)),
            attention_mask=torch.from_numpy(mask).long(),
            token_type_ids=torch.from_numpy(types),
        )
    ours = load_model(tmp_path, device="torch:cpu", strict=True)
    assert ours.architecture == name
    assert_close(ours(ids, mask, types), wanted, mask)


@pytest.mark.parametrize("act", ["gelu_pytorch_tanh", "quick_gelu", "relu", "silu", "gelu_10", "mish"])
def test_activations(act, tmp_path, rng):
    model = reference("BertModel", tmp_path, hidden_act=act)
    ids, mask, types = batch(rng, pad=0)
    with torch.no_grad():
        wanted = model(torch.from_numpy(ids), torch.from_numpy(mask).long(), torch.from_numpy(types))
    assert_close(load_model(tmp_path)(ids, mask, types), wanted, mask)


def test_position_ids_and_inputs_embeds(tmp_path, rng):
    for name in ("BertModel", "RobertaModel"):
        model = reference(name, tmp_path / name)
        ours = load_model(tmp_path / name)
        at = rng.integers(2, 30, (2, 9))
        embeds = rng.standard_normal((2, 9, 48)).astype(np.float32)
        with torch.no_grad():
            placed = model(torch.from_numpy(rng.integers(5, 120, (2, 9)) * 0 + 9), position_ids=torch.from_numpy(at))
            embedded = model(inputs_embeds=torch.from_numpy(embeds))
        assert_close(ours(np.full((2, 9), 9), position_ids=at), placed)
        assert_close(ours(inputs_embeds=embeds), embedded)


def test_padding_in_the_middle_of_a_roberta_text(tmp_path, rng):
    model = reference("RobertaModel", tmp_path)
    ids = rng.integers(5, 120, (2, 9))
    ids[:, 4:6] = 1
    with torch.no_grad():
        wanted = model(torch.from_numpy(ids))
    assert_close(load_model(tmp_path)(ids), wanted)


@pytest.mark.parametrize("name", ["BertLMHeadModel", "RobertaForCausalLM", "XLMRobertaForCausalLM"])
@pytest.mark.parametrize("cross", [False, True])
def test_decoder_step_by_step(name, cross, tmp_path, rng):
    """A causal decoder gives, token by token with a cache, what transformers gives for the whole text at once."""
    model = reference(name, tmp_path, is_decoder=True, add_cross_attention=cross, use_cache=False)
    ids = rng.integers(5, 120, (2, 12))
    extra = {}
    if cross:
        states = rng.standard_normal((2, 7, 48)).astype(np.float32)
        seen = np.ones((2, 7), bool)
        seen[1, 5:] = False
        extra = {"encoder_hidden_states": states, "encoder_attention_mask": seen}
    with torch.no_grad():
        wanted = model(torch.from_numpy(ids), **{k: torch.from_numpy(v) for k, v in extra.items()}).logits.numpy()
    for device in ("cpu", "torch:cpu"):
        ours = load_model(tmp_path, strict=True, device=device)
        given = {k: torch.from_numpy(v) if device != "cpu" else v for k, v in extra.items()}
        assert_close(ours(ids, **given), {"logits": wanted})
        body = ours.base_model
        cache = body.new_cache(2, 12)
        steps = [ours(ids[:, :5], cache=cache, **given)]
        # The cache has the encoder's keys and values by now.
        steps += [ours(ids[:, i : i + 1], cache=cache, logits_to_keep=1) for i in range(5, 12)]
        joined = np.concatenate([np.asarray(s) for s in steps], 1)
        assert_close({"logits": joined}, {"logits": wanted})
        with pytest.raises(zoo.ZooError, match="12 tokens"):
            ours(ids[:, :1], cache=cache, **given)
