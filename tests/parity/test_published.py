"""Figures that others published for a real checkpoint."""

from __future__ import annotations

import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity import published
from parity.checkpoints import build
from parity.published import NOT_AT_HAND, answers, label_of, part
from zoo.errors import ZooError
from zoo.hub import find
from zoo.loading import load_model
from zoo.registry import architectures
from zoo.text.tokenizer import Tokenizer

TOKENIZERS = Path(__file__).parents[1] / "data" / "tokenizers"
ANSWERS = answers()
TEXTS = [answer for answer in ANSWERS if answer.get("kind") == "ids" or {"text", "input_ids"} <= set(answer["input"])]
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
    printed = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(vectors @ vectors.T, printed, rtol=0, atol=5.1e-5)  # four digits are printed


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS, ids=label_of)
def test_a_checkpoint_gives_the_figures_of_transformers(answer: dict[str, Any]) -> None:
    """Each entry's "source" says which test or script of transformers expects it."""
    if needs := published.missing_need(answer):
        pytest.skip(f"needs {needs} ({answer['repo']})")
    assert published.difference(answer) is None


@pytest.mark.parametrize("answer", TEXTS, ids=label_of)
def test_a_text_gives_the_known_ids(answer: dict[str, Any], tmp_path: Path) -> None:
    packed = PACKED.get(answer["repo"])
    if packed is None:
        try:
            folder = find(answer["repo"], local_files_only=True, with_weights=False).folder
        except ZooError:
            pytest.skip(f"needs the hub: {answer['repo']} in its cache")
    else:
        folder = tmp_path
        content = lzma.decompress((TOKENIZERS / f"{packed}.tokenizer.json.xz").read_bytes())
        (folder / "tokenizer.json").write_bytes(content)
    assert published.ids_of(answer, folder) == answer["input"].get("input_ids", answer["expected"])


def test_every_answer_can_be_run_or_says_what_it_needs() -> None:
    assert {answer["needs"] for answer in ANSWERS if "needs" in answer} == set(NOT_AT_HAND)
    for answer in ANSWERS:
        assert answer["model_class"] in architectures() or answer["kind"] == "ids"
        image = answer["input"].get("image")
        assert image is None or (published.IMAGES / image).is_file() == ("needs" not in answer)


def test_a_figure_that_differs_is_told(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "cached_folder", lambda repo, weights=True: minilm)
    ids = [[101, 2009, 2003, 11559, 2651, 102]]
    states: Any = load_model(minilm)(np.array(ids)).last_hidden_state  # pyright: ignore[reportCallIssue]
    answer = {
        "repo": "sentence-transformers/all-MiniLM-L6-v2",
        "model_class": "BertModel",
        "input": {"input_ids": ids},
        "slice": "last_hidden_state[0, :2, 1:3]",
        "output_shape": [1, 6, 384],
        "expected": states[0, :2, 1:3].tolist(),
        "atol": 1e-5,
    }
    assert (published.missing_need(answer), published.difference(answer)) == (None, None)
    assert "1.0e-01 apart" in str(published.difference({**answer, "expected": states[0, :2, 1:3] + 0.1}))
    assert "expected [1, 6, 385]" in str(published.difference({**answer, "output_shape": [1, 6, 385]}))
    assert published.missing_need({**answer, "needs": "jpeg"}) == NOT_AT_HAND["jpeg"]


def test_texts_beside_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build("siglip-base-patch16-224", tmp_path)
    monkeypatch.setattr(published, "cached_folder", lambda repo, weights=True: folder)
    answer = next(answer for answer in ANSWERS if answer["model_class"] == "SiglipModel")
    length = load_model(folder).config.text_config.max_position_embeddings
    answer = {**answer, "input": {**answer["input"], "max_length": length}}
    given = published.arguments(answer)
    assert given["input_ids"].shape == (2, length)
    assert given["pixel_values"].shape[0] == 1
    assert "apart, expected 0.001 or less" in str(published.difference(answer))  # of random weights


def test_a_repository_that_is_not_cached_needs_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert published.missing_need(ANSWERS[0]) == "the hub's files"


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


@pytest.mark.parametrize(
    ("spec", "model_class", "says"),
    [
        ("stories260k", "GPT2LMHeadModel", "expected ' was found"),
        ("opus-mt-en-de", "MarianMTModel", "expected \\['Ich bin ein kleiner Frosch"),
        ("t5-small", "T5ForConditionalGeneration", "apart, expected 0.001 or less"),
        ("siglip2-base-patch16-naflex", "Siglip2Model", "apart, expected 0.05 or less"),
    ],
)
def test_written_texts_scores_and_drawn_images(spec, model_class, says, tmp_path, monkeypatch) -> None:
    """A checkpoint of other weights, so that nothing is right."""
    folder = find(spec).folder if spec == "stories260k" else build(spec, tmp_path)
    monkeypatch.setattr(published, "cached_folder", lambda repo, weights=True: folder)
    answer = next(answer for answer in ANSWERS if answer["model_class"] == model_class)
    if "max_length" in answer["input"]:
        answer = {**answer, "input": {**answer["input"], "max_length": 40}}
    assert re.search(says, str(published.difference(answer)))


def test_a_score_is_that_of_transformers(tmp_path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    folder = build("t5-small", tmp_path)
    answer = {"input": {"text": "the old town", "target": "by the water"}}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids, labels = (tokenizer(answer["input"][name], return_tensors="pt").input_ids for name in ("text", "target"))
    with torch.no_grad():
        loss = transformers.T5ForConditionalGeneration.from_pretrained(folder)(ids, labels=labels).loss.item()
    assert published.score(answer, folder, load_model(folder)) == pytest.approx(-loss * labels.shape[1], rel=1e-5)
