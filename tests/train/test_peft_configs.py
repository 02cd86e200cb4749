"""Every option of peft's LoraConfig that changes a result: zoo reads the same adapter as peft does."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from zoo.errors import CheckpointError, UnsupportedError

torch = pytest.importorskip("torch", reason="needs torch, for peft")
pytest.importorskip("peft", reason="needs peft, the reference")
pytest.importorskip("transformers", reason="needs transformers, for peft")

import peft  # noqa: E402 - torch is there
import transformers  # noqa: E402

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"vocab_size": 64, "max_position_embeddings": 64}
SMALL = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64, "n_positions": 64}
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**SIZES, "attention_bias": True}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", SMALL),
    "bert": ("BertForMaskedLM", "BertConfig", SIZES),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": 64},
    ),
    "vit": (
        "ViTForImageClassification",
        "ViTConfig",
        {**SIZES, "image_size": 16, "patch_size": 4, "num_labels": 3},
    ),
}
IDS, WRITTEN = np.arange(3, 14)[None], np.arange(5, 10)[None]
QV = {"target_modules": ["q_proj", "v_proj"]}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """`base(name, tie)`: transformers' class, and the folder of a random checkpoint, its head tied or not."""
    made = {}

    def get(name, tie=True):
        if (name, tie) not in made:
            cls, config, sizes = MODELS[name]
            torch.manual_seed(0)
            model = getattr(transformers, cls)(getattr(transformers, config)(**sizes, tie_word_embeddings=tie))
            for parameter, p in model.named_parameters():
                mean = 1 if p.ndim == 1 and ("norm" in parameter.lower() or "ln_" in parameter) else 0
                p.data.normal_(mean, 0.2)
            model.save_pretrained(folder := tmp_path_factory.mktemp(name))
            made[name, tie] = type(model), folder
        return made[name, tie]

    return get


def logits(model):
    """Of a model of either library."""
    theirs, kind = isinstance(model, torch.nn.Module), model.config.model_type
    if kind == "vit":
        x = np.random.default_rng(0).standard_normal((1, 16, 16, 3)).astype(np.float32)
        given = {"pixel_values": np.moveaxis(x, -1, 1) if theirs else x}
    else:
        given = {"input_ids": IDS, **({"decoder_input_ids": WRITTEN} if kind == "t5" else {})}
    with torch.no_grad():
        found = model(**({name: torch.tensor(x) for name, x in given.items()} if theirs else given))
    return np.asarray(getattr(found, "logits", found))


def trained(base, folder, *, as_bin=False, **options):
    """The folder of an adapter that peft made, its numbers as after some training."""
    cls, of = base
    model = peft.get_peft_model(cls.from_pretrained(of), peft.LoraConfig(**{"r": 4, "lora_alpha": 6, **options}))
    torch.manual_seed(1)
    for p in model.parameters():
        if p.requires_grad:
            p.data += torch.randn_like(p) * 0.1
    model.save_pretrained(folder, safe_serialization=not as_bin)
    return folder


def assert_equal(base, adapter, tmp_path, atol=2e-5):
    """zoo's logits with the adapter are peft's, also once the result is saved; and the adapter changes them."""
    cls, of = base
    wanted = logits(peft.PeftModel.from_pretrained(cls.from_pretrained(of), adapter).eval())
    model = zoo.load_model(of, adapter=adapter, strict=True)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(logits(model), wanted, atol=atol * scale)
    assert np.abs(logits(zoo.load_model(of)) - wanted).max() > 1e-3 * scale
    zoo.save(model, tmp_path / "merged")
    again = cls.from_pretrained(tmp_path / "merged").eval()
    np.testing.assert_allclose(logits(again), wanted, atol=atol * scale)


@pytest.mark.parametrize(
    "options",
    [
        {"init_lora_weights": "gaussian"},
        {"init_lora_weights": False},
        {"init_lora_weights": "orthogonal"},
        {"init_lora_weights": "mica"},
        {"init_lora_weights": "eva"},
        {"init_lora_weights": "pissa"},
        {"init_lora_weights": "olora"},
        {"init_lora_weights": "olora", "use_rslora": True, "rank_pattern": {"v_proj": 3}},
        {"use_rslora": True},
        {"rank_pattern": {"q_proj": 2, "layers.1.self_attn.v_proj": 3}},
        {
            "alpha_pattern": {"q_proj": 2, r".*\.1\.self_attn\.v_proj": 30},
            "rank_pattern": {"^model.layers.0.*q_proj": 2},
        },
        {"use_dora": True},
        {"use_dora": True, "use_rslora": True, "init_lora_weights": "pissa"},
        {"bias": "all"},
        {"bias": "lora_only"},
        {"lora_bias": True},
        {"fan_in_fan_out": True},
        {"layers_to_transform": [1]},
        {"layers_to_transform": 0, "layers_pattern": "layers"},
        {"target_modules": "all-linear"},
        {"target_modules": r".*\.(q|k)_proj", "exclude_modules": ["model.layers.0.self_attn.q_proj"]},
        {"modules_to_save": ["norm", "mlp.up_proj"]},
    ],
    ids=str,
)
def test_options(options, base, tmp_path):
    assert_equal(base("llama"), trained(base("llama"), tmp_path / "a", **{**QV, **options}), tmp_path)


@pytest.mark.parametrize("tie", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"target_modules": ["q_proj", "lm_head"]},
        {"target_modules": ["embed_tokens", "lm_head"]},
        {"target_modules": ["q_proj", "embed_tokens"], "ensure_weight_tying": True},
        {"target_modules": ["q_proj", "embed_tokens"], "use_dora": True},
        {"modules_to_save": ["embed_tokens"]},
        {"modules_to_save": ["lm_head"]},
        {"modules_to_save": ["lm_head", "embed_tokens"]},
        {"modules_to_save": ["embed_tokens"], "ensure_weight_tying": True},
        {"modules_to_save": ["lm_head"], "ensure_weight_tying": True},
        {"trainable_token_indices": [3, 5]},
        {"trainable_token_indices": {"embed_tokens": [3, 9]}},
        {"trainable_token_indices": {"lm_head": [3, 9]}},
        {"trainable_token_indices": {"lm_head": [3, 9], "embed_tokens": [3, 9]}},
        {"trainable_token_indices": {"lm_head": [3, 9], "embed_tokens": [4, 10]}},
    ],
    ids=str,
)
def test_words_and_heads(options, tie, base, tmp_path):
    """A tied head sees a change of the words only where peft says so."""
    assert_equal(base("llama", tie), trained(base("llama", tie), tmp_path / "a", **{**QV, **options}), tmp_path)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gpt2", {"target_modules": ["c_attn", "c_proj"]}),
        ("gpt2", {"target_modules": ["c_attn"], "use_dora": True, "fan_in_fan_out": True}),
        ("gpt2", {"target_modules": ["c_attn", "wte"], "init_lora_weights": "pissa"}),
        ("gpt2", {"target_modules": ["attn.c_proj"], "init_lora_weights": "olora"}),
        ("gpt2", {"target_modules": ["c_attn"], "modules_to_save": ["mlp.c_fc", "wte"]}),
        ("bert", {"target_modules": ["query", "word_embeddings"]}),
        ("bert", {"target_modules": ["query", "decoder"]}),
        ("bert", {"target_modules": ["query"], "modules_to_save": ["cls"], "bias": "all"}),
        ("t5", {"target_modules": ["q", "shared"]}),
        ("t5", {"target_modules": ["q"], "modules_to_save": ["embed_tokens"]}),
        ("t5", {"target_modules": ["q", "lm_head"]}),
        ("t5", {"target_modules": ["q"], "trainable_token_indices": [3, 5]}),
        ("vit", {"target_modules": ["q_proj", "projection"]}),
        ("vit", {"target_modules": ["projection"], "use_dora": True}),
    ],
    ids=str,
)
def test_other_models(name, options, base, tmp_path):
    """GPT-2's matrices lie the other way round, T5's words have three names, ViT's patches are convolved."""
    assert_equal(base(name), trained(base(name), tmp_path / "a", **options), tmp_path)


def test_a_file_of_torch(base, tmp_path):
    folder = trained(base("llama"), tmp_path / "a", as_bin=True, **QV)
    assert (folder / "adapter_model.bin").is_file()
    assert_equal(base("llama"), folder, tmp_path)


def test_a_vocabulary_of_its_own_is_refused(base, tmp_path):
    cls, of = base("llama")
    model = cls.from_pretrained(of)
    model.resize_token_embeddings(70)
    peft.get_peft_model(model, peft.LoraConfig(**QV)).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedError, match="has 70 rows, one for each token, and the checkpoint has 64 tokens"):
        zoo.load_model(of, adapter=tmp_path)


@pytest.mark.parametrize(
    ("made_with", "changed", "message"),
    [
        ({"use_dora": True}, {"use_dora": False}, "has a magnitude, but use_dora = False"),
        ({}, {"use_dora": True}, "has no magnitude, but use_dora = True"),
        ({"lora_bias": True}, {"lora_bias": False}, "has a bias, but lora_bias = False"),
        ({}, {"r": 3}, "the rank of .* is 3, and its lora_A has 4 rows"),
        ({"layers_to_transform": [1]}, {"layers_to_transform": [0]}, r"layers_to_transform = \[0\] leaves out"),
        (
            {},
            {"modules_to_save": ["k_proj"]},
            "has no 'model.layers.0.self_attn.k_proj.bias', which is in modules_to_save",
        ),
        ({"trainable_token_indices": [3, 5]}, {"trainable_token_indices": [3, 64]}, "2 rows up to 64 .* does not fit"),
    ],
)
def test_a_config_that_contradicts_the_file(made_with, changed, message, base, tmp_path):
    folder = trained(base("llama"), tmp_path, **QV, **made_with)
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    with pytest.raises(CheckpointError, match=message):
        zoo.load_model(base("llama")[1], adapter=folder)
