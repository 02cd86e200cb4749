"""Image and text to text, by a model whose decoder attends to what an encoder has read: Donut and its like."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import InputError, UnsupportedError
from ..generate import ContinuousBatch, Generated, GenerationConfig
from ..text.chat import Messages
from ..text.donut_tags import read_tags
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

    parsed=True gives the objects that an answer's tags are (Donut), as transformers' processors return them.

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
        return super().chat_ids(messages, options)

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
            arguments["input_ids"] = np.array([self.prompt_ids(question.encoder)])
        ids = self.prompt_ids(question.decoder, add_special_tokens=False) if question.decoder else []
        prompt = self.pair.prompt(ids or [self.generation.decoder_start_token_id], **arguments)
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


# model_type of config.json -> how answers are read.
READERS: dict[str, AnswerReader] = {"vision-encoder-decoder": AnswerReader(True, _read_donut)}
