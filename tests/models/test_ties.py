"""Tensors that share one array: what a file and its config say, as transformers reads it, and as version 4 wrote it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

import transformers

from parity.checkpoints import build
from parity.inputs import given_to
from parity.reference import BadReferenceError, Reference
from parity.specs import SPECS
from parity.taps import outputs
from tests.kinds import ONE_OF_A_KIND, nights
from zoo.errors import MissingWeightError
from zoo.loading import load_model
from zoo.weights import RawTensor, RenamedSource
from zoo.weights.files import open_weights
from zoo.weights.safetensors import write_safetensors

# The first checkpoint of each class that ties anything (of DeBERTa v3 nothing is tied, see the last test).  Of gpt-oss
# one tensor has all experts: it is left out.
TIED = {
    spec.architecture: name
    for name, spec in reversed(SPECS.items())
    if spec.model_class.tied and spec.config.get("legacy", True) and not spec.model_class.name_map.stacks_experts
}
# One of each way to tie; the others run at night.
FEW = [
    TIED[architecture]
    for architecture in (
        "BertForMaskedLM",
        "BartForConditionalGeneration",
        "MarianModel",
        "T5ForConditionalGeneration",
        "LlamaForCausalLM",
    )
]
# What version 5 draws at random where the config unties and the file, of version 4, has one array for both.
ONE_BEFORE_5 = (".bias", "embed_tokens.weight", "shared.weight")


class Checkpoint:
    """A checkpoint in a folder, whose tied tensors and config are rewritten."""

    def __init__(self, spec: str, folder: Path):
        self.spec, self.folder = SPECS[spec], build(spec, folder / "built")
        self.made = folder
        cls, source = self.spec.model_class, open_weights(self.folder)
        named = RenamedSource(source, cls.name_map, is_base_model=cls.is_base_model, tied={})
        self.tensors: dict[str, Any] = {}
        for name, of_file in named.origin.items():
            found: Any = source.read(of_file)
            self.tensors[name] = RawTensor(np.array(found.array), found.dtype)
        self.config = json.loads((self.folder / "config.json").read_text())
        self.groups: dict[str, list[str]] = {}  # the owner of an array -> all names of it
        for target, owner in cls.tied.items():
            self.groups.setdefault(owner, [owner]).append(target)

    def write(self, keep: tuple[str, ...], are_equal: bool, tie: bool | None) -> Path:
        """A folder whose file has these of the names of one array, and one name of each other array."""
        folder = self.made / f"{'+'.join(keep)}-{are_equal}-{tie}"
        folder.mkdir()
        tensors = dict(self.tensors)
        for owner, names in self.groups.items():
            like = next(tensors[name] for name in names if name in tensors)
            for name in names:
                tensors.pop(name, None)
            if not set(keep) & set(names):
                tensors[owner] = like
            for i, name in enumerate(name for name in names if name in keep):
                order = np.random.default_rng(0 if are_equal else i).permutation(len(like.array))
                tensors[name] = RawTensor(np.ascontiguousarray(like.array[order]), like.dtype)
        write_safetensors(folder / "model.safetensors", tensors)
        config = json.loads(json.dumps(self.config))
        for part in (config, config.get("decoder", {})):  # of a VisionEncoderDecoderModel
            part.pop("tie_word_embeddings", None)
            part |= {} if tie is None else {"tie_word_embeddings": tie}
        (folder / "config.json").write_text(json.dumps(config))
        for file in self.folder.iterdir():
            if (
                file.suffix in (".json", ".txt", ".model")
                and not (folder / file.name).exists()
                and "index" not in file.name
            ):
                (folder / file.name).write_bytes(file.read_bytes())
        return folder

    def agree(self, folder: Path, reference: Reference) -> None:
        """Assert that zoo reads a folder as the reference does."""
        model = load_model(folder)
        batches = (batch for batch in given_to(model, folder, 0).batches if not batch.switches)
        arrays = min(batches, key=lambda batch: sum(array.size for array in batch.arrays.values())).arrays
        theirs, ours = reference.stages(arrays), outputs(model, model(**arrays))
        for name, array in ours.items():
            wanted = theirs[name]
            difference = np.linalg.norm(array - wanted) / np.linalg.norm(wanted)
            assert difference < 1e-4, f"{folder.name}: {name} differs by {difference:.1e}"


def files(names: list[str]):
    """(names to keep, are they equal) of the names of one array, the first being the owner's."""
    kept = (keep for count in range(1, len(names) + 1) for keep in itertools.combinations(names, count))
    return [*((keep, False) for keep in kept), (tuple(names), True)]


@pytest.mark.parametrize("name", nights(TIED.values(), FEW))
def test_files_and_configs(name, tmp_path):
    """Every file with some names of an array, equal or not, and every config, reads as it does in transformers."""
    checkpoint, compared = Checkpoint(name, tmp_path), 0
    for names in checkpoint.groups.values():
        for (keep, are_equal), tie in itertools.product(files(names), (None, True, False)):
            folder = checkpoint.write(keep, are_equal, tie)
            try:
                reference = Reference(folder, checkpoint.spec.architecture)
            except BadReferenceError as e:  # transformers would draw a tensor at random
                assert tie is not True
                missing = str(e).split("finds no ")[1].split(" in /")[0].split(", ")
                if not all(one.endswith(ONE_BEFORE_5) for one in missing):
                    with pytest.raises(MissingWeightError):
                        load_model(folder)
                continue
            checkpoint.agree(folder, reference)
            compared += 1
    assert compared >= 6


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("name", nights(TIED.values(), {*FEW, *ONE_OF_A_KIND}))
def test_saved_by_transformers(name, tie, tmp_path):
    checkpoint = Checkpoint(name, tmp_path)
    keep = tuple(name for names in checkpoint.groups.values() for name in (names[:1] if tie else names))
    reference = Reference(checkpoint.write(keep, False, tie), checkpoint.spec.architecture)
    reference.model.save_pretrained(tmp_path / "saved")
    for file in reference.folder.iterdir():
        if not (tmp_path / "saved" / file.name).exists():
            (tmp_path / "saved" / file.name).write_bytes(file.read_bytes())
    checkpoint.agree(tmp_path / "saved", reference)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("bart-large-cnn", ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")),
        ("bart-base", ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")),
        ("bart-squad2", ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")),
        ("opus-mt-en-de", ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")),
        ("marian-bare", ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")),
        ("bert-base-uncased", (".decoder.bias",)),
        ("roberta-base", (".decoder.bias",)),
        ("albert-base-v2", (".decoder.bias",)),
        ("mpnet-base", (".decoder.bias",)),
        ("deberta-v2-xlarge", (".decoder.bias",)),
        ("nomic-bert-2048", (".decoder.bias",)),
    ],
)
def test_untied_as_version_4_wrote_it(name, left_out, tmp_path):
    """There a head's matrix is its own, but the two sides have one table of words, and a head one bias."""
    checkpoint = Checkpoint(name, tmp_path)
    every = tuple(name for names in checkpoint.groups.values() for name in names)
    folder = checkpoint.write(tuple(name for name in every if not name.endswith(left_out)), False, False)
    whole = checkpoint.write(every, False, False)
    reference = Reference(whole, checkpoint.spec.architecture)
    state = reference.model.state_dict()
    found = {name: open_weights(folder).read(name) for name in open_weights(folder).names()}
    for owner, names in checkpoint.groups.items():
        for name in names:
            array: Any = found.get(name, found.get(owner))
            state[name].copy_(reference.torch.from_numpy(np.array(array.array, np.float32)))
    checkpoint.agree(folder, reference)


def test_a_head_of_deberta_v3_is_always_the_embeddings(tmp_path):
    config = transformers.DebertaV2Config(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        legacy=False,
        tie_word_embeddings=False,
        initializer_range=0.3,
    )
    theirs = transformers.DebertaV2ForMaskedLM(config).eval()
    theirs.save_pretrained(tmp_path)
    ids = np.arange(3, 12)[None]
    wanted = theirs(theirs.dummy_inputs["input_ids"].new_tensor(ids)).logits.detach().numpy()
    np.testing.assert_allclose(load_model(tmp_path, strict=True)(ids), wanted, atol=1e-5)
