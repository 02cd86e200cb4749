"""Figures that others published for a real checkpoint."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.taps import outputs
from zoo.errors import ZooError
from zoo.hub import find
from zoo.loader import load_model
from zoo.processors import ImageProcessor
from zoo.registry import FAMILIES, architectures
from zoo.tokenizers import Tokenizer

DATA = Path(__file__).parents[1] / "data"
ANSWERS: list[dict[str, Any]] = json.loads((DATA / "known_answers.json").read_text("utf-8"))["entries"]
SLICES = [answer for answer in ANSWERS if "kind" not in answer]
(FILLED,) = (answer for answer in ANSWERS if answer.get("kind") == "tokens")
TEXTS = [answer for answer in ANSWERS if answer.get("kind") == "ids" or {"text", "input_ids"} <= set(answer["input"])]

# What an entry's "needs" stands for, which keeps it from being run whatever the hub's cache holds.
NOT_AT_HAND = {
    "ade20k": "the first test picture of the data set hf-internal-testing/fixtures_ade20k",
    "jpeg": "the JPEG file of COCO val2017 39769: the PNG that is here has slightly other pixels",
    "old pillow": "Pillow 8, whose pixels are not those of the versions that zoo runs with",
    "relative positions": "relative positions in BERT, which zoo refuses, as transformers 5 computes without them",
    "repository": "the name of a repository: the conversion script knows only unilm's own file",
}
# Of which repositories the tokenizer is among the test data.
PACKED = {"FacebookAI/roberta-base": "roberta", "FacebookAI/xlm-roberta-base": "xlm_roberta"}


def test_minilm_gives_the_similarities_of_the_sentence_transformers_readme(minilm: Path) -> None:
    """https://github.com/UKPLab/sentence-transformers, README, "Embedding Models": mean pooling and cosine."""
    encoded = Tokenizer.from_folder(minilm)(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    model: Any = load_model(minilm)
    states = model(encoded.input_ids, encoded.attention_mask).last_hidden_state
    vectors = (states * encoded.attention_mask[:, :, None]).sum(1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    published = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(vectors @ vectors.T, published, rtol=0, atol=5.1e-5)  # four digits are printed


def cached(repo: str, weights: bool = True) -> Path:
    """The folder of a repository in the hub's cache."""
    try:
        return find(repo, local_files_only=True, weights=weights).folder
    except ZooError:
        pytest.skip(f"needs the hub: {repo} in its cache")


def load(answer: dict[str, Any], folder: Path) -> Any:
    """The model of an entry's class, which need not be the one that the repository's config names."""
    family = FAMILIES[architectures()[answer["model_class"]]]
    return load_model(folder, head=answer["model_class"].removeprefix(family.prefix))


def arguments(answer: dict[str, Any]) -> dict[str, Any]:
    """What the model is called with, of an entry's input."""
    given = answer["input"]
    if "input_ids" in given:
        return {name: np.array(given[name]) for name in ("input_ids", "attention_mask") if name in given}
    processor = ImageProcessor.from_folder(cached(given.get("processor", answer["repo"]), weights=False))
    if "size" in given:
        processor = replace(processor, size={"height": given["size"], "width": given["size"]})
    found: dict[str, Any] = {"pixel_values": processor(DATA / "images" / given["picture"]).pixel_values}
    if "masked_patches" in given:
        found["bool_masked_pos"] = np.ones((1, given["masked_patches"]), bool)
    if given.get("interpolate_pos_encoding"):
        found["interpolate_pos_encoding"] = True
    return found


def part(fields: dict[str, np.ndarray], expression: str) -> np.ndarray:
    """What an expression such as "logits[0, :3]" means."""
    name, _, index = expression.rstrip("]").partition("[")
    if not index:
        return fields[name]
    axes = [[int(n) if n else None for n in axis.strip().split(":")] for axis in index.split(",")]
    return fields[name][tuple(axis[0] if len(axis) == 1 else slice(*axis) for axis in axes)]


def named(answer: dict[str, Any]) -> str:
    return f"{answer['repo']}-{answer['model_class']}"


@pytest.mark.slow
@pytest.mark.parametrize("answer", SLICES, ids=named)
def test_a_checkpoint_gives_the_figures_of_transformers(answer: dict[str, Any]) -> None:
    """Each entry's "source" says which test or script of transformers expects it."""
    if "needs" in answer:
        pytest.skip(f"needs {NOT_AT_HAND[answer['needs']]}")
    folder, given = cached(answer["repo"]), arguments(answer)
    model = load(answer, folder)
    fields = outputs(model, model(**given))
    found = part(fields, answer["slice"])
    whole = fields[answer["slice"].partition("[")[0]]
    assert list(whole.shape) == answer.get("output_shape", list(whole.shape))
    np.testing.assert_allclose(found, answer["expected"], rtol=0, atol=answer["atol"])
    if "argmax" in answer:
        assert whole[0].argmax() == answer["argmax"]


@pytest.mark.slow
def test_roberta_fills_the_mask_as_in_transformers_own_test() -> None:
    folder, given = cached(FILLED["repo"]), FILLED["input"]
    tokenizer, model = Tokenizer.from_folder(folder), load(FILLED, folder)
    encoded = tokenizer(given["text"], padding=given["max_length"])
    logits = model(encoded.input_ids, encoded.attention_mask)
    likeliest = np.argsort(-logits[0, 6])[:5]
    assert FILLED["slice"] == "top-5 tokens of logits[0, 6]"
    assert tokenizer.decode(likeliest).split() == FILLED["expected"]


@pytest.mark.parametrize("answer", TEXTS, ids=named)
def test_a_text_gives_the_known_ids(answer: dict[str, Any], tmp_path: Path) -> None:
    packed = PACKED.get(answer["repo"])
    if packed is None:
        folder = cached(answer["repo"], weights=False)
    else:
        folder = tmp_path
        content = lzma.decompress((DATA / "tokenizers" / f"{packed}.tokenizer.json.xz").read_bytes())
        (folder / "tokenizer.json").write_bytes(content)
    given = answer["input"]
    rows = Tokenizer.from_folder(folder).encode_batch(given.get("texts", given.get("text"))).rows
    assert [list(row.ids) for row in rows] == given.get("input_ids", answer["expected"])


def test_every_answer_can_be_run_or_says_what_it_needs() -> None:
    assert {answer["needs"] for answer in ANSWERS if "needs" in answer} == set(NOT_AT_HAND)
    for answer in ANSWERS:
        assert answer["model_class"] in architectures() or answer["kind"] == "ids"
        picture = answer["input"].get("picture")
        assert picture is None or (DATA / "images" / picture).is_file() == ("needs" not in answer)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("x", np.s_[:]),
        ("x[0, :3]", np.s_[0, :3]),
        ("x[:, 1:4, 1:4]", np.s_[:, 1:4, 1:4]),
        ("x[:, :, -1]", np.s_[:, :, -1]),
    ],
)
def test_an_expression_means_what_it_does_in_numpy(expression: str, wanted: Any) -> None:
    x = np.arange(120).reshape(4, 5, 6)
    np.testing.assert_array_equal(part({"x": x}, expression), x[wanted])
