"""Configs: what is read, what is refused, what is written back."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from zoo.checkpoint.config_file import read_config
from zoo.errors import ConfigError, UnsupportedError
from zoo.model_types import describe_other
from zoo.models.bert import BertConfig
from zoo.models.roberta import RobertaConfig
from zoo.registry import FAMILIES, NATIVE_TYPES, architecture_of, architectures, family_of, model_class


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("hidden_size", 10**9, r"num_attention_heads = 12 does not divide|hidden_size"),
        ("hidden_size", 2**31, "out of range"),
        ("num_hidden_layers", 10**6, "num_hidden_layers = 1000000 is out of range"),
        ("vocab_size", 0, "vocab_size = 0 is out of range"),
        ("num_attention_heads", 7, "num_attention_heads = 7 does not divide hidden_size = 768"),
        ("layer_norm_eps", -1e-5, "layer_norm_eps = -1e-05 is out of range"),
        ("hidden_size", "768", "hidden_size = '768' has type str, expected int"),
        ("hidden_size", True, "has type bool"),
        ("hidden_size", None, "has type NoneType"),
        ("hidden_size", 768.0, "has type float"),
        ("is_decoder", 1, "has type int, expected bool"),
        ("id2label", {"0": "a", "2": "b"}, r"missing: \[1\]"),
        ("id2label", {"zero": "a"}, "key that is not an integer"),
        ("id2label", ["a"], "id2label is a list"),
        ("num_labels", -1, "num_labels"),
        ("architectures", "BertModel", "architectures = 'BertModel', expected a list"),
        ("architectures", [1], "expected a list of class names"),
    ],
)
def test_refused(field, value, says):
    with pytest.raises(ConfigError, match=says):
        BertConfig.from_dict({field: value})


@pytest.mark.parametrize("model_type", FAMILIES)
def test_an_epsilon_is_above_zero(model_type):
    cls = FAMILIES[model_type].load("Config")
    for name in (field.name for field in dataclasses.fields(cls) if field.name.endswith(("eps", "epsilon"))):
        with pytest.raises(ConfigError, match=f"{name} = -1e-05 is out of range, expected a number above 0"):
            cls.from_dict({"model_type": model_type, name: -1e-5})


@pytest.mark.parametrize("model_type", FAMILIES)
def test_fields_have_the_other_names_that_transformers_has(model_type):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    cls = FAMILIES[model_type].load("Config")
    known = {field.name for field in dataclasses.fields(cls)}
    others = getattr(transformers.CONFIG_MAPPING[model_type], "attribute_map", None) or {}
    wanted = {alias: name for alias, name in others.items() if name in known and alias not in known}
    assert {alias: cls.aliases.get(alias) for alias in wanted} == wanted


def test_what_is_not_implemented_is_refused():
    with pytest.raises(UnsupportedError, match="position_embedding_type = 'relative_key'"):
        BertConfig.from_dict({"position_embedding_type": "relative_key"})
    assert BertConfig.from_dict({"position_embedding_type": "absolute"}).extra == {
        "position_embedding_type": "absolute"
    }


def test_labels():
    assert BertConfig.from_dict({}).id2label == {0: "LABEL_0", 1: "LABEL_1"}
    assert BertConfig.from_dict({"num_labels": 3}).num_labels == 3
    config = BertConfig.from_dict({"id2label": {"1": "no", "0": "yes"}})
    assert config.id2label == {0: "yes", 1: "no"}
    assert config.label2id == {"yes": 0, "no": 1}


# What transformers writes of its own accord, and windows that `use_sliding_window` turns off.
NOT_COMPARED = {"architectures", "id2label", "label2id", "tie_word_embeddings", "backbone_config", "sliding_window"}
NOT_COMPARED |= {"pooler_output_size", "out_indices", "out_features"}
# Their fields are configs.
OF_PARTS = (
    "clip",
    "chinese_clip",
    "align",
    "siglip",
    "siglip2",
    "vision-encoder-decoder",
    "blip",
    "florence2",
    "idefics3",
    "smolvlm",
    "got_ocr2",
    "slanext",
    "internvl",
    "glm_ocr",
    "lighton_ocr",
    "paddleocr_vl",
    "llava",
    "mistral3",
    "metaclip_2",
    "clap",
    "clipseg",
    "gemma3",
    "paligemma",
    "parakeet_ctc",
    "pp_doclayout_v2",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_vl",
    "owlvit",
    "owlv2",
    "grounding-dino",
    "mm-grounding-dino",
    "sam",
    "vitpose",
    "sam2",
    "sam2_video",
)


@pytest.mark.parametrize("model_type", [name for name in FAMILIES if name not in OF_PARTS])
def test_defaults_are_those_of_transformers(model_type):
    """Ours may be None where transformers writes what follows from other fields."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    configs = transformers.AutoConfig.for_model(model_type), FAMILIES[model_type].load("Config")()
    theirs, ours = (json.loads(json.dumps(config.to_dict())) for config in configs)
    names = ours.keys() & theirs.keys() - NOT_COMPARED
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}


def test_nothing_is_lost():
    raw = {
        "model_type": "bert",
        "hidden_size": 48,
        "num_attention_heads": 4,
        "made_up": {"a": [1, 2]},
        "auto_map": {"AutoModel": "x.Y"},
    }
    written = json.loads(json.dumps(BertConfig.from_dict(raw).to_dict()))
    assert raw.items() <= written.items()
    assert BertConfig.from_dict(written) == BertConfig.from_dict(raw)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ('{"model_type": "bret"}', UnsupportedError, "did you mean 'bert'"),
        ('{"architectures": ["BertModel"]}', ConfigError, "no model_type"),
        ('{"model_type": ["bert"]}', ConfigError, "no model_type"),
        ("[1]", ConfigError, "config.json"),
        ('{"model_type": "bert", "layer_norm_eps": NaN}', ConfigError, "config.json"),
        ('{"model_type": "bert", "hidden_size": 1e400}', ConfigError, "config.json"),
        ("{", ConfigError, "config.json"),
    ],
)
def test_files(tmp_path, text, error, says):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(error, match=says) as e:
        read_config(tmp_path)
    assert str(tmp_path / "config.json") in str(e.value)


def test_custom_code_is_never_run(tmp_path):
    (tmp_path / "modeling.py").write_text("raise SystemExit('executed')")
    (tmp_path / "config.json").write_text(
        '{"model_type": "bert", "architectures": ["BertModel"], "auto_map": {"AutoModel": "modeling.Evil"}}'
    )
    assert model_class(read_config(tmp_path)).__name__ == "BertModel"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            {"model_type": "new", "auto_map": {"AutoConfig": "configuration.NewConfig"}},
            r"code of its own \(configuration.NewConfig\), which zoo does not run: .* 'gte' .*gte-multilingual-base",
        ),
        ({"model_type": "Yi"}, "'Yi' is not one that zoo has: the same architecture is 'llama'"),
        (
            {"model_type": "chatglm", "auto_map": {"AutoModel": "m.GLM", "AutoTokenizer": ["t.Tokenizer", None]}},
            r"'chatglm' is not one that zoo has .*code of its own \(m.GLM, t.Tokenizer\).*adding-a-model",
        ),
        ({"auto_map": {"AutoModel": "m.Own"}}, r"no model_type.*code of its own \(m.Own\)"),
        (
            {"model_type": "bert", "architectures": ["JinaBertModel"], "auto_map": {"AutoModel": "j.JinaBertModel"}},
            r"'JinaBertModel', which zoo does not have.*code of its own \(j.JinaBertModel\)",
        ),
        ({"model_type": "qwen2", "is_causal": False}, "is_causal = False is not implemented"),
    ],
)
def test_custom_code_is_refused_with_what_to_take(tmp_path, config, says):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises((UnsupportedError, ConfigError), match=says):
        model_class(read_config(tmp_path))


def test_every_model_type_of_transformers_is_a_family_or_described():
    from transformers import CONFIG_MAPPING

    for model_type in set(CONFIG_MAPPING) - set(FAMILIES):
        what = describe_other(model_type)
        assert what, f"{model_type}: run python -m checks.model_types"
        near = re.search("the nearest that zoo has is '(.+)'", what)
        assert near is None or near[1] in FAMILIES
    with pytest.raises(
        UnsupportedError, match=r"'persimmon'.*it continues texts, and the nearest that zoo has is 'llama'"
    ):
        family_of("persimmon")


ABSENT = {"gpt2": "GPT2DoubleHeadsModel"}


@pytest.mark.parametrize(("model_type", "architecture"), ABSENT.items())
def test_heads_that_zoo_has_not_are_refused_by_name(model_type, architecture):
    """All that transformers has for these families and zoo has not."""
    config = BertConfig(model_type=model_type, architectures=[architecture])
    with pytest.raises(
        UnsupportedError, match=f"the architecture '{architecture}', which zoo does not have.*of {model_type} it"
    ):
        model_class(config)


@pytest.mark.parametrize("native", [native for native, _ in NATIVE_TYPES.values()])
def test_native_equivalents_exist(native):
    assert native in FAMILIES


def test_a_value_that_a_class_has_for_itself_is_refused_too():
    """`require` looks at fields of the class and of those that it descends from, not at unknown ones alone."""
    config = RobertaConfig(hidden_act="relu")
    with pytest.raises(UnsupportedError, match="roberta: hidden_act = 'relu' is not implemented, only 'gelu' is"):
        config.require(hidden_act="gelu")
    config.require(hidden_act="relu", of_another=1)


def test_architectures_exist():
    for name, kind in architectures().items():
        cls = model_class(BertConfig(model_type=kind, architectures=(name,)))
        assert architecture_of(cls, kind) == name
    with pytest.raises(
        UnsupportedError, match=r"'BertForTokenClassifcation'.*did you mean 'BertForTokenClassification'"
    ):
        model_class(BertConfig(architectures=("BertForTokenClassifcation",)))
