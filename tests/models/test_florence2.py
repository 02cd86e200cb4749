"""Florence-2: answers and their places as transformers has them, and what is refused."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.specs import SPECS, config_of
from tests.image_text_checkpoint import write_florence2_checkpoint
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.florence2 import Florence2Config
from zoo.text.florence_tasks import OCR_PATTERN, QUESTIONS_ALONE, QUESTIONS_WITH_INPUT, question_of, read_places

RAW = config_of(SPECS["Florence-2-base"], "tiny")


def noise(seed: int, height: int = 60, width: int = 90) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_florence2_checkpoint(tmp_path_factory.mktemp("florence"))


@pytest.fixture(scope="module")
def read(folder) -> Any:
    return zoo.load(folder)


def their_processor(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    rules = json.loads((folder / "processor_config.json").read_text())["post_processor_config"]
    images = transformers.CLIPImageProcessorPil.from_pretrained(folder)
    images.image_seq_length = 65  # 8 x 8 patches, and their mean
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return transformers.Florence2Processor(images, tokenizer, post_processor_config=rules)


@pytest.mark.parametrize("asked", ["<OD>", "<CAPTION_TO_PHRASE_GROUNDING>a cat", "What is it?"])
def test_answers_are_those_of_transformers(read, folder, asked):
    processor = their_processor(folder)
    import torch
    import transformers

    model = transformers.Florence2ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    image = noise(1)
    given = processor(text=asked, images=image, return_tensors="pt")
    for beams in (1, 3):
        new = model.generate(**given, max_new_tokens=12, num_beams=beams, do_sample=False)[0]
        text = processor.tokenizer.decode(new, skip_special_tokens=False)
        found = read(image, asked, max_new_tokens=12, num_beams=beams)
        assert found == text.replace("<s>", "").replace("</s>", "").replace("<pad>", "")
        if beams == 1:
            assert "".join(read.stream(image, asked, max_new_tokens=12)) == found
        if asked.startswith("<"):
            task = asked[: asked.index(">") + 1]
            wanted = processor.post_process_generation(text, task=task, image_size=image.size)
            assert read(image, asked, parsed=True, max_new_tokens=12, num_beams=beams) == wanted
    with pytest.raises(InputError, match="has no task's token"):
        read(image, "What is it?", parsed=True, max_new_tokens=2)


def test_places_are_those_of_transformers(folder):
    processor, rng = their_processor(folder), random.Random(0)
    parts = [
        "cat",
        "it",
        " a dog ",
        "<sep>",
        "<poly>",
        "</poly>",
        "<s>",
        "</s>",
        "<pad>",
        "<od>",
        "\u00e9",
        "\n",
        "x<y",
        ">",
    ]

    def text() -> str:
        places = ("".join(f"<loc_{rng.randint(0, 999)}>" for _ in range(rng.choice((1, 3, 4, 8, 9)))) for _ in range(7))
        return "".join(rng.choice(parts) if rng.random() < 0.5 else one for one in places)

    for _ in range(300):
        answer, size = text(), (rng.randint(1, 3000), rng.randint(1, 3000))
        for task in (*QUESTIONS_ALONE, *QUESTIONS_WITH_INPUT):
            wanted = processor.post_process_generation(answer, task=task, image_size=size[::-1])
            assert read_places(answer, task, size, frozenset(["it"])) == wanted, (task, answer)


def test_places_of_a_page():
    answer = "TOTAL<loc_0><loc_0><loc_499><loc_0><loc_499><loc_999><loc_0><loc_999>"
    assert read_places(answer, "<OCR_WITH_REGION>", (200, 1000)) == {
        "<OCR_WITH_REGION>": {"quad_boxes": [[0, 0, 499, 0, 499, 199, 0, 199]], "labels": ["TOTAL"]}
    }
    assert read_places("<s>A cat.</s>", "<CAPTION>", (1, 1)) == {"<CAPTION>": "A cat."}
    assert question_of("<REGION_TO_OCR>{input}<loc_1>") == "What text is in the region {input}<loc_1>?"
    with pytest.raises(InputError, match="<OD> is a prompt by itself"):
        question_of("<OD> of cats")


def test_rows_of_other_lengths_are_those_alone(read):
    asked = ["<OD>", "<REGION_TO_OCR><loc_7><loc_7><loc_998><loc_998>", "Who?"]
    images = [noise(seed) for seed in range(3)]
    for beams in (1, 2):
        options = {"max_new_tokens": 10, "num_beams": beams}
        assert read(images, asked, **options) == [read(*pair, **options) for pair in zip(images, asked, strict=True)]


def test_saving_keeps_the_answer(read, tmp_path):
    read.save(tmp_path / "saved")
    again = zoo.load(tmp_path / "saved")
    assert again(noise(0), "<OD>", parsed=True) == read(noise(0), "<OD>", parsed=True)


@pytest.mark.parametrize(("key", "value"), [("AREA_THRESHOLD", 0.01), ("PATTERN", "(.*)<loc_1>")])
def test_other_rules_for_places_are_refused(folder, tmp_path, key, value):
    shutil.copytree(folder, tmp_path / "other")
    raw = json.loads((folder / "processor_config.json").read_text())
    for name, given in (("AREA_THRESHOLD", 0.0), ("PATTERN", OCR_PATTERN), (key, value)):
        raw["post_processor_config"]["ocr"][name] = given
        (tmp_path / "other" / "processor_config.json").write_text(json.dumps(raw))
        read = zoo.load(tmp_path / "other")
        if name == key and given == value:
            with pytest.raises(UnsupportedError, match=rf"post_processor_config\.ocr\.{key} = .* is not implemented"):
                read(noise(1), "<OCR_WITH_REGION>", parsed=True, max_new_tokens=3)
        else:
            assert read(noise(1), "<OCR_WITH_REGION>", parsed=True, max_new_tokens=3)


def test_images_and_places_that_do_not_fit(read):
    model, pixels = read.model, np.zeros((1, 64, 64, 3), np.float32)
    start = np.array([[2]])
    with pytest.raises(InputError, match="input_ids have 0 places of images, and the images take 65"):
        model(np.array([[4, 5]]), start, pixel_values=pixels)
    with pytest.raises(InputError, match="an image of 128 x 64 has 16 x 8 patches"):
        model(np.array([[4, 5]]), start, pixel_values=np.zeros((1, 128, 64, 3), np.float32))


VISION, TEXT = RAW["vision_config"], RAW["text_config"]


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"text_config": {**TEXT, "model_type": "t5"}}, UnsupportedError, "text_config is of the model_type 't5'"),
        ({"vision_config": {**VISION, "num_groups": [5, 2]}}, ConfigError, "num_groups = 5 do not divide"),
        ({"vision_config": {**VISION, "patch_prenorm": [True]}}, ConfigError, "patch_prenorm = [True], expected 2"),
        ({"vision_config": {**VISION, "depths": [1]}}, ConfigError, "depths = [1] is not a list of 2 numbers"),
        (
            {"vision_config": {**VISION, "projection_dim": 48}},
            ConfigError,
            "projection_dim = 48, and text_config.d_model",
        ),
        ({"image_token_id": 700}, ConfigError, "image_token_id = 700 is out of range"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        Florence2Config.from_dict({**RAW, **change})
    assert problem in str(found.value)
