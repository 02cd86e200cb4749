"""Images and a prompt to a text by encoder-decoders: as transformers does it, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from tests.image_text_checkpoint import write_donut_checkpoint
from zoo.apps.cli import main
from zoo.errors import InputError, UnsupportedError
from zoo.inputs.image_prompt import ids_of
from zoo.tasks.image_text import user_messages
from zoo.text.donut_tags import read_tags

TOKENS = {"max_new_tokens": 12}


def noise(seed: int, height: int = 40, width: int = 70) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_donut_checkpoint(tmp_path_factory.mktemp("donut"))


@pytest.fixture(scope="module")
def read(folder) -> Any:
    return zoo.load(folder)


@pytest.mark.parametrize("asked", ["<s_cord-v2>", "<s_docvqa><s_question>How much?</s_question><s_answer>"])
def test_donut_answers_as_transformers_does(read, folder, asked):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.DonutProcessor(transformers.DonutImageProcessorPil.from_pretrained(folder), tokenizer)
    model = transformers.VisionEncoderDecoderModel.from_pretrained(folder, dtype=torch.float32).eval()
    for seed, shape in enumerate(((40, 70), (90, 31), (200, 300))):
        image = noise(seed, *shape)
        pixels = processor(image, return_tensors="pt").pixel_values
        ids = tokenizer(asked, add_special_tokens=False, return_tensors="pt").input_ids
        assert ids_of(read.chat_ids(user_messages([image], asked), {})[0]).tolist() == ids[0].tolist()
        new = model.generate(pixels, decoder_input_ids=ids, max_new_tokens=12, do_sample=False)[0]
        text = tokenizer.decode(new, skip_special_tokens=False).replace(tokenizer.eos_token, "")
        found = read(image, asked, **TOKENS)
        assert asked + found == text
        assert "".join(read.stream(image, asked, **TOKENS)) == found
        wanted = processor.token2json(text.replace(asked[: asked.index(">") + 1], "", 1).strip())
        assert read(image, asked, parsed=True, **TOKENS) == wanted


def test_an_empty_prompt_is_the_token_that_texts_start_with(read):
    assert read(noise(0), "", **TOKENS) == read(noise(0), "<s_cord-v2>", **TOKENS)


def test_rows_beams_and_caches_give_what_each_gives_alone(read):
    images, asked = [noise(0), noise(1, 90, 31), noise(2)], "<s_docvqa><s_question>"
    for options in ({}, {"num_beams": 3}):
        alone = [read(image, asked, **TOKENS, **options) for image in images]
        assert read(images, asked, **TOKENS, **options) == alone
    mixed = ["<s_cord-v2>", asked, asked + "Who?"]
    assert read(images, mixed, **TOKENS) == [read(*pair, **TOKENS) for pair in zip(images, mixed, strict=True)]
    cache = read.prompt_cache()
    for image in (images[0], images[1], images[1], images[0]):
        assert "".join(read.stream(image, asked, cache=cache, **TOKENS)) == read(image, asked, **TOKENS)


def test_rows_of_a_server_are_those_alone(read):
    from zoo.generate.continuous import Request

    batch, images = read.continuous_batch(), [noise(0), noise(1), noise(0)]
    config = read.generation.replace(**TOKENS)
    requests = [Request(read.chat_ids(user_messages([one], "<s_cord-v2>"), {})[0], config) for one in images]
    for one in requests:
        batch.add(one)
    while batch.rows or batch.waiting:
        batch.step()
    ends = read.generation.eos_token_id
    texts = [read.tokenizer.decode([i for i in one.generated_ids if i not in ends], skip_special_tokens=False)
             for one in requests]  # fmt: skip
    assert texts == [read(image, "<s_cord-v2>", **TOKENS) for image in images]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<s_menu><s_nm>Tea</s_nm><s_price>3<sep/>4</s_price></s_menu>", {"menu": {"nm": "Tea", "price": ["3", "4"]}}),
        ("<s_a><s_b>1</s_b><sep/><s_b>2</s_b></s_a>", {"a": [{"b": "1"}, {"b": "2"}]}),
        ("<s_a>1</s_a><sep/><s_a>2</s_a>", [{"a": "1"}, {"a": "2"}]),
        ("<s_a><yes/></s_a><s_b>x", {"a": "yes"}),
        ("no tags", {"text_sequence": "no tags"}),
        ("<s_a>", {"text_sequence": ""}),
        ("", {"text_sequence": ""}),
    ],
)
def test_tags_are_read(text, wanted):
    assert read_tags(text, {"<yes/>"}) == wanted


def test_tags_are_read_as_by_transformers():
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

    class Words:
        @staticmethod
        def get_added_vocab() -> dict[str, int]:
            return {"<yes/>": 1, "<s_a>": 2}

    class Processor(transformers.DonutProcessor):
        def __init__(self) -> None:
            self.tokenizer = Words()

    rng, theirs = random.Random(0), Processor()
    parts = ["<s_a>", "</s_a>", "<s_b>", "</s_b>", "<sep/>", "x", " y ", "<yes/>", "<S_a>", "</S_A>", "<s_c", "\n", ">"]
    for _ in range(3000):
        text = "".join(rng.choice(parts) for _ in range(rng.randint(0, 14)))
        assert read_tags(text, {"<yes/>", "<s_a>"}) == theirs.token2json(text), text


def test_tags_within_tags_end_somewhere():
    with pytest.raises(UnsupportedError, match="within each other more than 100 times"):
        read_tags("".join(f"<s_{i}>" for i in range(300)) + "".join(f"</s_{i}>" for i in reversed(range(300))))
    assert len(read_tags("<s_a>1</s_a><sep/>" * 3000)) == 3000


def test_what_is_no_question_about_one_image_is_refused(read):
    with pytest.raises(InputError, match="found 2 images, and this model answers prompts about one"):
        read([[noise(0), noise(1)]], "<s_cord-v2>")
    with pytest.raises(InputError, match="found 0 images"):
        read.chat([{"role": "user", "content": "<s_cord-v2>"}])
    with pytest.raises(UnsupportedError, match="one prompt, not a chat"):
        read.chat([*user_messages([noise(0)], "a"), {"role": "assistant", "content": "b"}])
    with pytest.raises(InputError, match="parsed is for a whole answer"):
        read.stream(noise(0), "<s_cord-v2>", parsed=True)
    with pytest.raises(InputError, match="parsed and details are both True"):
        read(noise(0), "<s_cord-v2>", parsed=True, details=True, **TOKENS)
    with pytest.raises(InputError, match="after a prompt of 1 tokens"):
        read(noise(0), "<s_cord-v2>", max_new_tokens=100)


def test_zoo_run_and_saving(read, folder, tmp_path, capsys):
    noise(3).save(tmp_path / "page.png")
    answer = read(noise(3), "<s_cord-v2>", **TOKENS)
    more = ["--max-new-tokens", "12"]
    assert main(["run", str(folder), str(tmp_path / "page.png"), "<s_cord-v2>", *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer
    assert main(["run", str(folder), str(tmp_path / "page.png"), "<s_cord-v2>", *more, "--parsed"]) == 0
    assert json.loads(capsys.readouterr().out) == read(noise(3), "<s_cord-v2>", parsed=True, **TOKENS)
    read.save(tmp_path / "saved")
    assert zoo.load(tmp_path / "saved")(noise(3), "<s_cord-v2>", **TOKENS) == answer
