"""Figures that others published for a real checkpoint."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from zoo.errors import ZooError
from zoo.hub import find
from zoo.loader import load_model
from zoo.processors import ImageProcessor
from zoo.tokenizers import Tokenizer

PICTURE = "ZOO_COCO_39769"


def test_minilm_gives_the_similarities_of_the_sentence_transformers_readme(minilm):
    """https://github.com/UKPLab/sentence-transformers, README, "Embedding Models": mean pooling and cosine."""
    encoded = Tokenizer.from_folder(minilm)(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    states = load_model(minilm)(encoded.input_ids, encoded.attention_mask).last_hidden_state
    vectors = (states * encoded.attention_mask[:, :, None]).sum(1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    published = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(vectors @ vectors.T, published, rtol=0, atol=5.1e-5)  # four digits are printed


class Known(NamedTuple):
    """What a test of transformers expects: figures at the beginning of an output, and how far others may be away."""

    repo: str
    processor: str  # the repository whose processor prepares the picture
    output: str
    figures: list[Any]
    atol: float
    largest: int | None = None  # where the logits have their maximum


BEIT = "microsoft/beit-base-patch16-224"
KNOWN = (
    Known("google/vit-base-patch16-224", "", "logits", [-0.2744, 0.8215, -0.0836], 1e-4),
    Known("facebook/deit-base-distilled-patch16-224", "", "logits", [-1.0266, 0.1912, -1.2861], 1e-4),
    Known(BEIT, BEIT, "logits", [-1.2385, -1.0987, -1.0108], 1e-4, 281),
    Known("microsoft/beit-large-patch16-224-pt22k-ft22k", BEIT, "logits", [1.6881, -0.2787, 0.5901], 1e-4, 2396),
    Known(
        "microsoft/beit-base-patch16-224-pt22k",
        BEIT,
        "masked logits",
        [[-3.2437, 0.5072, -13.9174], [-3.2456, 0.4948, -13.9401], [-3.2033, 0.5121, -13.855]],
        1e-2,
    ),
    Known(
        "facebook/dino-vits8",
        "",
        "states at 480",
        [[4.2325, 4.3882, -6.6678], [4.5372, 1.8933, -6.7355], [4.4454, 0.8514, -5.8747]],
        1e-3,
    ),
)


def cached(repo: str) -> Any:
    try:
        return find(repo, local_files_only=True)
    except ZooError:
        pytest.skip(f"needs the hub: {repo} in its cache")


@pytest.mark.slow
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.repo)
def test_a_picture_gives_the_figures_of_transformers_own_tests(known):
    """tests/models/{vit,deit,beit}/test_modeling_*.py of transformers, the classes that end in IntegrationTest."""
    folder = cached(known.repo).folder
    processor = ImageProcessor.from_folder(cached(known.processor or known.repo).folder)
    picture = os.environ.get(PICTURE)
    if not picture:
        pytest.skip(f"needs ${PICTURE}: the path of transformers' tests/fixtures/tests_samples/COCO/000000039769.png")
    model: Any = load_model(folder)
    if known.output == "states at 480":
        processor = replace(processor, size={"height": 480, "width": 480})
        out = model(processor(picture).pixel_values, interpolate_pos_encoding=True).last_hidden_state[0, :3, :3]
    elif known.output == "masked logits":
        out = model(processor(picture).pixel_values, np.ones((1, 196), bool))[0, :3, :3]
    else:
        result = model(processor(picture).pixel_values)
        logits = getattr(result, "logits", result)[0]
        out = logits[:3]
        assert known.largest in (None, logits.argmax())
    np.testing.assert_allclose(out, known.figures, rtol=0, atol=known.atol)
