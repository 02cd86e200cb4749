"""Image and text to text: a model that reads images with what is asked about them, and answers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ..errors import ConfigError, InputError, UnsupportedError, ZooError, nearest, quantity
from ..generate import GenerationConfig
from ..generate.table_tags import TableTags
from ..images import MAX_PIXELS, ImageBatch, ImageProcessor
from ..images.data_uri import data_uri_bytes
from ..inputs.image_text import ImageTextCausalLM
from ..pretrained import Pretrained
from ..text.chat import Messages
from ..text.given import check_text
from ..text.image_places import PLACES, Expansion, Grid
from .generate import Generate
from .image_task import PROCESSOR_FILES, as_images

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.tokenizer import Tokenizer

# What names the image of a part of a message, as in transformers, and in OpenAI's interface.
PART_KEYS = ("image", "path", "url", "base64")
# Least and most pixels that the image of a part is resized to, of Qwen's processors, and what OpenAI's interface adds
# as a hint, which changes nothing here.
PIXEL_KEYS, HINTS = ("min_pixels", "max_pixels"), ("detail", "cache_control")
# A model of documents whose vocabulary has this special token answers in tags, all of which are special tokens.
DOCTAG = "<otsl>"


class ImageText(Generate):
    """A model of images and texts that answers.

    Options are those of `Generate`; skip_special_tokens=False keeps special tokens in the answer, which is the default
    where its tags are special tokens (DocTags).  Tables among these have rows of one length; table_tags=None lets go.

    >>> read = zoo.load("ibm-granite/granite-docling-258M")
    >>> read("page.png", "Convert this page to docling.")
    """

    name = "image-text-to-text"
    reads = "image"
    prompts_at_once = 4  # the tiles of all are in memory
    template_options: ClassVar[tuple[str, ...]] = (*Generate.template_options, "data_format", "max_pixels")

    def __init__(
        self,
        model: Pretrained,
        processor: ImageProcessor,
        tokenizer: Tokenizer,
        checkpoint: Checkpoint | None = None,
        generation: GenerationConfig | None = None,
    ):
        super().__init__(model, tokenizer, checkpoint, generation)
        self.processor, self.writer = processor, cast(ImageTextCausalLM, model)
        self.check_parts()
        if DOCTAG in (added := tokenizer.added_tokens()):
            tags = {"skip_special_tokens": False, "table_tags": TableTags.of(added)}
            self.generation = dataclasses.replace(self.generation, **tags)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        encoder = getattr(checkpoint.config, "encoder", checkpoint.config)
        processor = ImageProcessor.from_folder(checkpoint.contents, encoder.model_type)
        return {"processor": processor, **super().parts_of(checkpoint)}

    def check_parts(self) -> None:
        """ConfigError where the tokenizer's or the processor's files are another checkpoint's."""
        self.places = PLACES[self.config.model_type]
        found, wanted = self.tokenizer.backend.token_to_id(self.places.token), self.config.image_token_id
        if found is None:
            raise ConfigError(f"{self.tokenizer.source}: there is no {self.places.token}, which stands for an image")
        if self.tokenizer.backend.token_to_id(self.places.repeated) != wanted:
            raise ConfigError(
                f"{self.tokenizer.source} has {self.places.repeated} as "
                f"{self.tokenizer.backend.token_to_id(self.places.repeated)}, and config.json image_token_id = {wanted}"
            )
        self._check_tiles()

    def extra_files(self) -> list[str]:
        found = [name for name in PROCESSOR_FILES if self.checkpoint and self.checkpoint.contents.has(name)]
        return [*super().extra_files(), *found]

    def __call__(  # type: ignore[override]
        self,
        images: Any,
        prompt: str | Iterable[str],
        *,
        details: bool = False,
        progress: bool | None = None,
        **options: Any,
    ) -> Any:
        """The answer to what is asked about an image; a list of answers to a list of images.

        A list in the place of an image is several images of one prompt.  prompt: one for all, or one for each image.
        """
        given, single = images_of_prompts(images)
        texts = [check_text(prompt, "prompt")] * len(given) if isinstance(prompt, str) else list(prompt)
        if len(texts) != len(given):
            raise InputError(
                f"{quantity(len(texts), 'prompt')} for {quantity(len(given), 'image')}: expected as many, or one"
            )
        prompts: list[Any] = [
            one if isinstance(one, ZooError) else user_messages(one, asked)
            for one, asked in zip(given, texts, strict=True)
        ]
        config, shown = self._split(options)
        return self._generate_all(
            prompts, lambda chat: self._chat_prompt(chat, shown), config, details, progress, "images", single
        )

    def stream(self, images: Any, prompt: str | None = None, *, cache: Any = None, **options: Any) -> Iterator[str]:  # type: ignore[override]
        """The answer in pieces as they come, to a prompt about one image, or about a list of them; or to messages.

        cache: as for `Generate.stream`.
        """
        if prompt is None:
            ids, config = self.chat_ids(images, options)
            return self.stream_ids(ids, config, cache)
        several = images if isinstance(images, list | tuple) else [images]
        ids, config = self.chat_ids(user_messages(several, check_text(prompt, "prompt")), options)
        return self.stream_ids(ids, config, cache)

    def _chat_prompt(self, messages: Messages, shown: Mapping[str, Any]) -> Any:
        """The tokens of messages, whose contents may have parts {"type": "image", "image": ...}."""
        plain, images, bounds = split_images(messages)
        options = {name: shown[name] for name in ("data_format", "max_pixels") if name in shown}
        tiles, grids = self._process(images, bounds, **options)
        expansion = Expansion(self.places, grids)
        ids = self._prompt_ids(plain, expansion, {k: v for k, v in shown.items() if k not in options})
        if expansion.used != len(images):
            raise InputError(
                f"the prompt has {expansion.used} places for images, and {len(images)} are given: the chat template "
                f"must write {self.places.token} for each part of the type image, and a text none of its own"
            )
        if images and len(ids) >= self.max_tokens:
            raise self._overflow(grids, f", the whole prompt {len(ids)}")
        return self.writer.prompt(ids, tiles) if images else ids

    def _prompt_ids(self, messages: list[dict[str, Any]], expansion: Expansion, shown: dict[str, Any]) -> list[int]:
        if self.template is not None:
            source = next(iter(self.template.sources.values()))
            asked = not shown.get("continue_final_message", False)
            return self.template.encode(
                as_parts(messages, source), expand=expansion, add_generation_prompt=asked, **shown
            )
        if len(messages) > 1 or messages[0].get("role") != "user":
            raise UnsupportedError("the checkpoint has no chat template: it answers one text about images, not a chat")
        content = messages[0]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "".join(self.places.token if part["type"] == "image" else part["text"] for part in parts)
        if (prompt := self.places.prompt) is None:
            return self.prompt_ids(expansion(text))
        if self.places.token not in text:
            raise InputError("the prompt has no image: this model answers texts about images alone")
        return self.prompt_ids(expansion(prompt(text)), add_special_tokens=False)

    def _process(
        self,
        images: Sequence[Any],
        bounds: Sequence[Mapping[str, int]],
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> tuple[list[np.ndarray], list[tuple[Grid, int]]]:
        """The tiles of each image, and their grid with the vectors of one; InputError where they fill the context."""
        tiles: list[np.ndarray] = []
        grids: list[tuple[Grid, int]] = []
        total = 0
        for i, (image, own) in enumerate(zip(images, bounds, strict=True)):
            name = "image" if len(images) == 1 else f"image {i} of {len(images)}"
            done = self.read_image(image, own, name, data_format, max_pixels)
            pixels = done.pixel_values
            patches = self.writer.vision_model.grid(pixels)
            each = self.writer.image_length(patches)
            tiles.append(pixels)
            grids.append((self.writer.token_grid(patches) if self.places.by_rows else done.grids[0], each))
            total += len(pixels) * each
            if total >= self.max_tokens:
                more = "" if i + 1 == len(images) else f" without {len(images) - i - 1} further ones"
                raise self._overflow(grids, more)
        return tiles, grids

    def read_image(
        self,
        image: Any,
        bounds: Mapping[str, int],
        name: str,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> ImageBatch:
        """The tiles of an image, or of a data URI.  bounds: of its pixels; name: in messages."""
        if isinstance(image, str) and image.startswith("data:"):
            image = data_uri_bytes(image, name)
        try:
            processor = self.processor.with_pixel_bounds(bounds) if bounds else self.processor
            return processor(image, data_format=data_format, max_pixels=max_pixels)
        except InputError as e:
            if e.argument is None or name == "image":
                raise
            raise type(e)(f"{name}{str(e).removeprefix('image')}") from None

    def _overflow(self, grids: Sequence[tuple[Grid, int]], more: str) -> InputError:
        """The error for images that leave no room: their tiles, their tokens and the limit."""
        tiles = [
            (rows * columns + 1 if rows and not self.places.by_rows else 1, each) for (rows, columns), each in grids
        ]
        tokens = sum(count * each for count, each in tiles)
        return InputError(
            f"the images ({len(grids)}, in {sum(count for count, _ in tiles)} tiles) take {tokens} tokens{more}, and "
            f"the checkpoint takes {self.max_tokens} tokens: give fewer images, or smaller ones"
        )

    def _check_tiles(self) -> None:
        """ConfigError where the processor makes tiles of another size than the encoder takes."""
        tiling, image = self.processor.tiling, self.config.image
        if tiling is not None and image != tiling.size:
            # 378 of 384 pixels, say, are whole patches, and the rest is left out.
            raise ConfigError(
                f"the processor makes tiles of {tiling.size[0]} x {tiling.size[1]}, and the images of config.json are "
                f"{image[0]} x {image[1]}: one of the two is another checkpoint's"
            )


def images_of_prompts(value: Any) -> tuple[list[Any], bool]:
    """The images of each prompt, or an error in the place of some, and True if it is one image alone."""
    if not isinstance(value, list | tuple) or not any(isinstance(one, list | tuple) for one in value):
        items, single = as_images(value, "images")
        return [one if isinstance(one, ZooError) else [one] for one in items], single
    given: list[Any] = [list(one) if isinstance(one, list | tuple) else [one] for one in value]
    if not all(given):
        raise InputError("images holds an empty list, expected images")
    return given, False


def user_messages(images: Sequence[Any], text: str) -> list[dict[str, Any]]:
    """The chat of one message: images, and a text about them, unless that is empty."""
    parts: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}] if text else parts}]


def split_images(messages: Messages) -> tuple[list[dict[str, Any]], list[Any], list[dict[str, int]]]:
    """The messages as chat templates take them, and the images in their order, with the bounds of each.

    A part of an image is {"type": "image"} with the image as image, path, url or base64, or OpenAI's image_url, and may
    have min_pixels and max_pixels.  InputError for a field that zoo does not know.
    """
    found: list[Any] = []
    bounds: list[dict[str, int]] = []

    def plain_part(part: Any, where: str) -> Any:
        if isinstance(part, Mapping) and part.get("type") in ("video", "video_url"):
            raise UnsupportedError(f"{where} is a video: zoo reads images alone, so give some of its frames as images")
        if not isinstance(part, Mapping) or part.get("type") not in ("image", "image_url"):
            return part
        given: Any = part if part["type"] == "image" else part.get("image_url")
        given = given if isinstance(given, Mapping) else {"url": given}
        known = ("type", "image_url", *PART_KEYS, *PIXEL_KEYS, *HINTS)
        for key, value in {**part, **given}.items():
            if key not in known and value is not None:
                raise InputError(
                    f"{where} is an image with {key} = {value!r:.40}, which zoo does not know{nearest(key, known)}"
                )
        named = [key for key in PART_KEYS if given.get(key) is not None]
        if len(named) != 1:
            has = f"has {' and '.join(named)}" if named else "has no image"
            raise InputError(f"{where} is an image and {has}: expected one of {', '.join(PART_KEYS)}")
        value = given[named[0]]
        found.append(f"data:image/*;base64,{value}" if named[0] == "base64" else value)
        bounds.append({key: own for key in PIXEL_KEYS if (own := given.get(key, part.get(key))) is not None})
        return {"type": "image"}

    plain: list[dict[str, Any]] = []
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(content := message.get("content"), list | tuple):
            plain.append(cast(Any, message))
            continue
        parts = [plain_part(part, f"messages[{i}], part {k},") for k, part in enumerate(content)]
        plain.append({**message, "content": parts})
    return plain, found, bounds


def as_parts(messages: list[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """Messages for a template that goes through the parts of every content, and would take a text for its letters."""
    if re.search(r"is\s+(not\s+)?string", source) or not re.search(
        r"in\s+message(\.content|\[['\"]content['\"]\])", source
    ):
        return messages
    return [
        {**one, "content": [{"type": "text", "text": one["content"]}]} if isinstance(one.get("content"), str) else one
        for one in messages
    ]
