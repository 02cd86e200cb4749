"""Image and text to text, by a model whose decoder attends to what an encoder has read: Donut and its like."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import InputError, UnsupportedError
from ..generate import ContinuousBatch, Generated, GenerationConfig
from ..text.chat import Messages
from ..text.donut_tags import read_tags
from ..text.florence_tasks import OCR_PATTERN, read_places
from ..text.image_questions import QUESTIONS
from .image_text import ImageText, split_images
from .read import complete
from .results import Texts


class Asked(NamedTuple):
    """What was asked about an image, and its height and width in pixels."""

    prompt: str
    size: tuple[int, int]


class Answers(Texts):
    """Answers, or what their tags and places say, as objects."""

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        return {"generated": self.lines(result)}

    def lines(self, result: Any) -> str:
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1)


class ImageQuestionTask(ImageText):
    """A model that answers one prompt about one image.

    parsed=True gives the objects that an answer's tags are (Donut), or what a task's answer says, with places in pixels
    (Florence-2), as transformers' processors return them.  A stream is greedy, whatever the checkpoint's num_beams.

    >>> read = zoo.load("naver-clova-ix/donut-base-finetuned-cord-v2")
    >>> read("receipt.png", "<s_cord-v2>", parsed=True)
    {'menu': [{'nm': 'Tea', 'cnt': '2', 'price': '3.00'}, ...], 'total': {'total_price': '9.50'}}
    """

    results = Answers()
    template_options: ClassVar[tuple[str, ...]] = ("data_format", "max_pixels", "parsed")

    def check_parts(self) -> None:
        decoder = getattr(self.config, "decoder", None) or getattr(self.config, "text_config", self.config)
        own = {name: self.config.extra.get(name) for name in ("decoder_start_token_id", "eos_token_id")}
        stated = {
            name: value
            for name, value in own.items()
            if value is not None and getattr(self.generation, name) in (None, ())
        }
        if (end := getattr(decoder, "sep_token_id", None)) is not None:  # BLIP's, whatever its files say
            stated = {"eos_token_id": end, "decoder_start_token_id": decoder.bos_token_id}
        self.generation = complete(self.generation.replace(**stated), decoder)
        if self.reader.keeps_tags:
            self.generation = dataclasses.replace(self.generation, skip_special_tokens=False)

    @property
    def reader(self) -> AnswerReader:
        return READERS[self.config.model_type]

    def continuous_batch(self, max_rows: int = 8, *, kept: int = 0) -> ContinuousBatch:
        """As `Generate.continuous_batch`, row after row: each attends to an encoder's states of its own."""
        return ContinuousBatch(self._model, max_rows, alone=True)

    def chat_ids(self, messages: Messages, options: Mapping[str, Any]) -> tuple[Any, GenerationConfig]:
        if "parsed" in options:
            raise InputError("parsed is for a whole answer, not for a stream of its pieces")
        ids, config = super().chat_ids(messages, options)
        if config.num_beams > 1 and "num_beams" not in options:  # the checkpoint's, which a stream has not
            config = config.replace(num_beams=1)
        return ids, config

    @cached_property
    def unwanted_phrases(self) -> frozenset[str]:
        """Phrases that name nothing in an image, of processor_config.json (Florence-2)."""
        name = "processor_config.json"
        has = self.checkpoint is not None and self.checkpoint.contents.has(name)
        found: Any = self.checkpoint.contents.json(name) if has and self.checkpoint else {}
        rules = _object_in(found, "post_processor_config")
        for key, known in (("PATTERN", (None, OCR_PATTERN)), ("AREA_THRESHOLD", (None, 0))):
            if (value := _object_in(rules, "ocr").get(key)) not in known:
                raise UnsupportedError(
                    f"{name}: post_processor_config.ocr.{key} = {value!r:.100} is not implemented, only {known[1]!r} is"
                )
        phrases = _object_in(rules, "phrase_grounding").get("banned_grounding_tokens")
        return frozenset(one for one in phrases if isinstance(one, str)) if isinstance(phrases, list) else frozenset()

    def _chat_prompt(self, messages: Messages, shown: Mapping[str, Any]) -> Any:
        """The decoder's tokens, and what its encoder reads, of one message of a user about one image."""
        plain, images, bounds = split_images(messages)
        if len(plain) != 1 or plain[0].get("role") != "user":
            raise UnsupportedError("this model answers one prompt, not a chat: expected one user message")
        if len(images) != 1:
            raise InputError(f"found {len(images)} images, and this model answers prompts about one")
        content = plain[0]["content"]
        text = "".join(part["text"] for part in content if part["type"] == "text")
        options = {name: shown[name] for name in ("data_format", "max_pixels") if name in shown}
        batch = self.read_image(images[0], bounds[0], "image", **options)
        question = QUESTIONS[self.config.model_type](text)
        arguments = {"pixel_values": batch.pixel_values}
        if question.encoder is not None:
            count = self.pair.image_length(self.pair.vision_model.grid(batch.pixel_values))
            words = self.prompt_ids(question.encoder, add_special_tokens=False)
            arguments["input_ids"] = np.array([[self.config.image_token_id] * count + words])
        ids = self.prompt_ids(question.decoder, add_special_tokens=False) if question.decoder else []
        if question.has_start or not ids:
            ids = [self.generation.decoder_start_token_id, *ids]
        prompt = self.pair.prompt(ids, **arguments)
        if shown.get("parsed"):
            prompt.asked = Asked(text, batch.sizes[0])
        return prompt

    @property
    def pair(self) -> Any:
        return self.model

    def _result_of(self, prompt: Any, found: Generated, config: GenerationConfig, details: bool) -> Any:
        result = super()._result_of(prompt, found, config, details)
        if prompt.asked is None:
            return result
        if details:
            raise InputError("parsed and details are both True: expected one of them")
        return self.reader.read(self, result, prompt.asked)


class AnswerReader(NamedTuple):
    """How the answers of a family are read.  keeps_tags: whether special tokens are in them.

    read: the objects of a task's answer to what was asked.
    """

    keeps_tags: bool
    read: Callable[[ImageQuestionTask, str, Asked], Any]


def _read_donut(task: ImageQuestionTask, answer: str, asked: Asked) -> Any:
    """The object that the tags of prompt and answer are, without the tag that names the task."""
    text = re.sub("<[^>]*>", "", asked.prompt + answer, count=1)
    return read_tags(text.strip(), task.tokenizer.added_tokens())


def _refuse(task: ImageQuestionTask, answer: str, asked: Asked) -> Any:
    raise UnsupportedError("parsed is True: this model answers in plain text, without tags or places")


def _read_florence(task: ImageQuestionTask, answer: str, asked: Asked) -> Any:
    """What the answer says to the task whose token is in the prompt, with places in pixels."""
    return read_places(answer, asked.prompt, asked.size, task.unwanted_phrases)


# model_type of config.json -> how answers are read.
READERS: dict[str, AnswerReader] = {
    "blip": AnswerReader(False, _refuse),
    "florence2": AnswerReader(True, _read_florence),
    "vision-encoder-decoder": AnswerReader(True, _read_donut),
}


def _object_in(found: Any, key: str) -> Mapping[str, Any]:
    """The object that a JSON object has for a key, an empty one where it has none."""
    value = found.get(key) if isinstance(found, Mapping) else None
    return value if isinstance(value, Mapping) else {}
