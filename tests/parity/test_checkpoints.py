"""The random checkpoints have the tensors of the real files, follow from the seed, and load in zoo without torch."""

from __future__ import annotations

import hashlib
import math

import pytest

from parity.checkpoints import build, parameters
from parity.drawing import HEAD
from parity.specs import FULL_SPECS, SPECS, config_of, tensors
from parity.specs.text import SPECS as TEXTS
from zoo.errors import InputError
from zoo.loading import load_model
from zoo.registry import architectures
from zoo.text.tokenizer import Tokenizer
from zoo.weights.files import open_weights

MOST = 2.5e9  # parameters of a checkpoint that is run at full size
WITHOUT_TORCH = [name for name, spec in TEXTS.items() if spec.format in ("safetensors", "sharded")]


@pytest.mark.parametrize(
    ("name", "count", "size"),
    [
        # Sizes in bytes of model.safetensors or pytorch_model.bin on the hub.
        ("bert-base-uncased", 206, 440_449_768),
        ("all-MiniLM-L6-v2", 103, 90_868_376),
        ("roberta-base", 202, 498_818_054),
        ("xlm-roberta-base", 204, 1_115_567_652),
        ("vit-base-patch16-224", 200, 346_293_852),
        ("vit-base-patch16-224-in21k", 200, 345_579_424),
        ("trocr-base-handwritten", 478, 1_333_384_464),
        ("table-transformer-detection", 367, 115_396_053),
        ("table-transformer-structure-recognition", 367, 115_512_789),
    ],
)
def test_a_full_size_has_the_bytes_of_the_file_on_the_hub(name, count, size):
    """The difference is the header, or what torch's zip takes for each tensor."""
    spec = SPECS[name]
    config = config_of(spec, "full")
    buffers = 8 * config["max_position_embeddings"] if getattr(spec, "position_ids", False) else 0
    least, most = (150, 350) if name.startswith("table") else (80, 140)  # bytes of a tensor in a zip, in a header
    assert len(tensors(spec, config)) == count
    assert least * count < size - 4 * parameters(spec, "full") - buffers < most * count


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_zoo_loads_all_of_it(tmp_path, name):
    build(name, tmp_path)
    model = load_model(tmp_path, strict=True)
    assert model.architecture == SPECS[name].architecture
    ids = Tokenizer.from_folder(tmp_path)("The weather is lovely today.").input_ids
    assert 0 < ids.max() < model.config.vocab_size


def test_the_strays_of_real_files_are_there(tmp_path):
    names = set(open_weights(build("bert-base-uncased", tmp_path / "a")).names())
    assert "bert.embeddings.LayerNorm.gamma" in names
    assert "bert.pooler.dense.bias" in names
    assert "cls.predictions.decoder.weight" not in names
    names = set(open_weights(build("xlm-roberta-base", tmp_path / "b")).names())
    assert "roberta.pooler.dense.weight" in names
    assert not any(name.endswith("position_ids") for name in names)
    names = set(open_weights(build("all-MiniLM-L6-v2", tmp_path / "c")).names())
    assert {"embeddings.position_ids", "pooler.dense.weight"} <= names


def test_the_content_follows_from_the_seed(tmp_path):
    def digest(folder, seed):
        build("roberta-ner", folder, seed=seed)
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}

    one, again, other = digest(tmp_path / "a", 1), digest(tmp_path / "b", 1), digest(tmp_path / "c", 2)
    assert one == again
    assert one["model.safetensors"] != other["model.safetensors"]


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(InputError, match="did you mean 'roberta-base'"):
        build("roberta-bse", tmp_path)


def test_every_class_has_a_checkpoint():
    assert {spec.architecture for spec in SPECS.values()} == set(architectures())


def test_a_full_size_of_each_family_on_the_hub_is_run():
    """Of those of which the hub has a checkpoint of at most 2.5 billion parameters.

    But for SLANet and SLANeXt: with random weights two tokens may be as likely, and all that follow are then others;
    for Parakeet, of whose 24 random layers each doubles what rounding has done, until nothing can be compared; and for
    RF-DETR, of whose 300 best places two may be as good, and its queries differ by their rank.
    """
    run = {SPECS[name].model_type for name in FULL_SPECS}
    others = [spec for spec in SPECS.values() if spec.like != "save_pretrained" and spec.model_type not in run]
    small = {spec.model_type for spec in others if parameters(spec, "full") <= MOST}
    assert small == {"slanet", "slanext", "parakeet_ctc", "rf_detr"}


@pytest.mark.nightly
def test_full_sizes_that_are_run_are_no_larger():
    sizes = {name: parameters(SPECS[name], "full") for name in FULL_SPECS if SPECS[name].like != "save_pretrained"}
    assert {SPECS[name].model_type for name in FULL_SPECS} == {SPECS[n].model_type for n in sizes if sizes[n] <= MOST}


def test_convolutions_that_follow_each_other_are_no_heads():
    """Twice the gain of each of a neck's would multiply: eight of them make numbers of 256."""
    spec = SPECS["detr-segmentation"]
    found = tensors(spec, config_of(spec, "tiny"))
    gains = {
        name.removeprefix("mask_head."): role.deviation * math.sqrt(math.prod(role.shape[1:]))
        for name, role in found.items()
        if name.startswith("mask_head.") and len(role.shape) == 4
    }
    assert gains.pop("out_lay.weight") >= HEAD  # the spec's own gains come on top
    assert len(gains) > 6
    assert all(gain == pytest.approx(1) for gain in gains.values())
    alone = tensors(SPECS["vit-mim"], config_of(SPECS["vit-mim"], "tiny"))["decoder.0.weight"]
    assert alone.deviation * math.sqrt(math.prod(alone.shape[1:])) == pytest.approx(HEAD)
