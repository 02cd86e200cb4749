"""Read: what an image of a line of text says.

Shapes: B images of a batch, S tokens of the encoder, E the width of their states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np

from .. import ops
from ..errors import ConfigError, InputError, UnsupportedError, ZooError
from ..generate import Generated, GenerationConfig, generate
from ..generate.sampling import log_softmax
from ..images import MAX_PIXELS, ImageFile, ImageInput, ImageProcessor, open_pixels
from ..images.lines import is_blank, resample_views, split_lines, split_words, stretch
from ..pretrained import Pretrained
from ..registry import family_of
from ..text.tokenizer import Tokenizer
from ..typing import Array
from ..warning import warn
from .arguments import collect_results, map_good, result_or_error
from .base import check_vocabulary
from .image_task import ImageOptions, ImageTask, as_images, floats
from .line_texts import LineReading, LineText, Reading, Readings, group_parts, join_lines
from .progress import Progress
from .scripts import FILE as SCRIPTS
from .scripts import MAX_CONFIDENCE, ScriptCheck, line_features

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..checkpoint.files import Checkpoint
    from .protocols import Reader

# Tokens of a line, where neither the caller nor the checkpoint says how many: thrice those of a full line of print.
# (transformers stops at 20 by itself, in the middle of a line.)
NEW_TOKENS = 128
# Each step of writing reads all of the weights, so that lines had better share it: as many as fit into so many bytes of
# the cross-attention's keys and values, which for trocr-base are 9.
BATCH_BYTES, MAX_LINES = 512 << 20, 64
# A line, or a part of one, with a lower confidence is read again at these widths, or resampled if it is lower than this
# share of the model's height, and the text that is likeliest in all views together counts.
MIN_CONFIDENCE, WIDTHS, MIN_HEIGHT_SHARE = 0.98, (1.12, 1.2, 0.9), 0.5
MIN_LENGTH_SHARE = 0.6  # lengths of the longest of these texts: a shorter one has left something out
MAX_LINE_PIXELS = 128  # pixels: a higher image may have several lines


class _Line(NamedTuple):
    """The text that was read from a line, or from a part of one."""

    text: str
    logprobs: np.ndarray  # each token's
    ended: bool
    odds: float  # in favour of a script that the model does not know, see `ScriptCheck`
    ids: tuple[int, ...]
    states: Array  # (1, S, E)


class ReadOptions(ImageOptions, total=False):
    """Options of `Read`, which explains them."""

    lines: bool
    max_new_tokens: int | None
    num_beams: int | None


class Read(ImageTask):
    """Images of lines of text to what they say.

    >>> reader = zoo.load("microsoft/trocr-base-printed")
    >>> reader("line.png")
    Reading(text='INDUSTRIES, LTD', confidence=0.9...)
    >>> print(reader("paragraph.png", lines=True).text)

    `generation` is what generation_config.json says, with the end and the start that the decoder's config adds.
    `scripts` is what scripts.json says of the scripts that the model knows, or None; `scripts.scripts` has their names.
    """

    name = "read"
    results = Readings()
    tokenizer: Tokenizer

    def __init__(
        self,
        model: Pretrained,
        processor: ImageProcessor,
        tokenizer: Tokenizer,
        generation: GenerationConfig | None = None,
        checkpoint: Checkpoint | None = None,
        scripts: ScriptCheck | None = None,
    ):
        super().__init__(model, processor, checkpoint)
        self.scripts = scripts
        check_vocabulary(tokenizer, self.config.decoder.vocab_size)
        self.tokenizer = tokenizer
        self.generation = complete(generation or GenerationConfig(), self.config.decoder)
        made, wanted = processor.output_size(480, 640), self.config.encoder.image
        if made != wanted and family_of(self.config.encoder.model_type).image_sizes != "any":
            raise ConfigError(
                f"the image processor makes images of {made[0]} x {made[1]}, but the encoder reads {wanted[0]} x "
                f"{wanted[1]}: is preprocessor_config.json another checkpoint's?"
            )

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        config: Any = checkpoint.config
        return {
            "tokenizer": Tokenizer.from_folder(checkpoint.contents),
            "processor": ImageProcessor.from_folder(checkpoint.contents, config.encoder.model_type),
            "generation": GenerationConfig.from_folder(checkpoint.contents),
            "scripts": ScriptCheck.from_folder(checkpoint.contents, getattr(config.encoder, "hidden_size", 0)),
        }

    def extra_files(self) -> list[str]:
        files = super().extra_files()
        assert self.checkpoint is not None
        return files + [name for name in ("generation_config.json", SCRIPTS) if self.checkpoint.contents.has(name)]

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[ReadOptions]) -> Reading: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[ReadOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[ReadOptions]) -> list[Reading]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        lines: bool = False,
        max_new_tokens: int | None = None,
        num_beams: int | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
        **generation: Any,
    ) -> Any:
        """A Reading for one image, a list of them for several.

        Text in a script that the model does not know, as far as `scripts` can tell, is warned of, and has a confidence
        of at most 0.5.  An image of one colour says "": its confidence is what the model itself gives to an end before
        any text.
        lines: True if each image is a block of several lines, to be cut into them first (`zoo.images.lines` says
        what it takes); the text has a line each.  With a processor that pads lines (zoo-read's), a line wider than its
        size is read in parts, cut between words, and an uncertain one in several widths.  max_new_tokens: of a line, or
        a part; by default what the checkpoint's generation config says, or 128; a text that is cut there is warned of.
        num_beams: 1 for greedy choice.
        generation: other fields of `generate.GenerationConfig`.  data_format, max_pixels: as in `open_image`.
        """
        config = self._generation(max_new_tokens, num_beams, generation)
        given, single = as_images(images, "images")
        out, check, foreign = list[Any](), self.scripts, False
        for of in self._lines(given, config, lines, progress, data_format, max_pixels):
            if isinstance(of, ZooError):
                out.append(of)
                continue
            text, confidence = join_lines(of)[:2]
            if check is not None and any(check.find_unknown([join_lines([line]) for line in of])):
                confidence, foreign = min(confidence, MAX_CONFIDENCE), True
            out.append(Reading(text, confidence))
        if foreign and check is not None:
            warn(check.warning(self.source))
        return collect_results(out, single)

    @property
    def source(self) -> str:
        """The name of the checkpoint, for messages."""
        return "the model" if self.checkpoint is None else self.checkpoint.name

    def read_lines(self, images: Sequence[np.ndarray]) -> list[LineReading]:
        """What the images (h, w, 3) of single lines say, with the odds of their scripts, which the caller judges."""
        config = self._generation(None, None, {})
        found = self._lines(images, config, False, False, None, MAX_PIXELS)
        return collect_results(map_good(join_lines, found), False)

    def _lines(
        self,
        given: Sequence[ImageInput | ZooError],
        config: GenerationConfig,
        lines: bool,
        progress: bool | None,
        data_format: str | None,
        max_pixels: int,
    ) -> list[Any]:
        """The lines of each image, a list of LineText, or an error for an image that cannot be used."""
        found: list[Any] = [[] for _ in given]
        waiting: list[tuple[int, np.ndarray]] = []  # image, line
        opened = partial(open_pixels, data_format=data_format, max_pixels=max_pixels)
        cut = count = shown = 0
        with Progress(len(given), progress, "images") as advance:
            for i, image in enumerate(given):
                array = result_or_error(opened, image, i, len(given))
                if isinstance(array, ZooError):
                    found[i] = array
                else:
                    waiting += [(i, line) for line in self._line_images(array, lines)]
                while waiting and (len(waiting) >= self.batch_lines or i == len(given) - 1):
                    batch, waiting = waiting[: self.batch_lines], waiting[self.batch_lines :]
                    texts = self._read([line for _, line in batch], config, max_pixels)
                    for (of, _), read in zip(batch, texts, strict=True):
                        found[of].append(read)
                        cut, count = cut + (not read[2]), count + 1
                    done = waiting[0][0] if waiting else i + 1
                    advance(done - shown)
                    shown = done
        if cut:
            most = self._max_tokens(config)
            warn(f"{cut} of {count} lines had more than {most} tokens, and were cut there (max_new_tokens)")
        return found

    def _line_images(self, array: np.ndarray, several: bool) -> list[np.ndarray]:
        """The lines of an image, or all of it; several: it is a block of them."""
        if several:
            return [array[y0:y1, x0:x1] for x0, y0, x1, y1 in split_lines(array)] or [array]
        if len(array) > MAX_LINE_PIXELS and (seen := len(split_lines(array))) > 2:
            warn(f"an image has about {seen} lines of text, and is read as one: lines=True (--lines) reads each")
        return [array]

    @property
    def batch_lines(self) -> int:
        """The number of lines that are written at once."""
        c, of = self.config.decoder, self.config.encoder
        patches = of.image[0] // of.patch[0] * (of.image[1] // of.patch[1])
        each = 8 * c.decoder_layers * c.d_model * (patches + 2)
        return min(max(1, BATCH_BYTES // each), MAX_LINES)

    def _generation(self, max_new_tokens: int | None, num_beams: int | None, more: dict[str, Any]) -> GenerationConfig:
        own = self.generation
        limits = max_new_tokens, own.max_new_tokens, own.max_length, more.get("max_length")
        if all(limit is None for limit in limits):
            max_new_tokens = min(NEW_TOKENS, self.config.decoder.max_position_embeddings - 1)
        options = {"max_new_tokens": max_new_tokens, "num_beams": num_beams}
        config = own.replace(**{k: v for k, v in options.items() if v is not None}, **more)
        if config.num_return_sequences > 1:
            raise InputError(f"num_return_sequences is {config.num_return_sequences}, but a reading is one text")
        if config.stop_strings:
            raise UnsupportedError(f"stop_strings is {config.stop_strings}: a reading ends where the line does")
        if not config.skip_special_tokens:
            raise UnsupportedError("skip_special_tokens is False: a reading has none")
        return config

    def _max_tokens(self, config: GenerationConfig) -> int:
        return config.new_tokens(1, self.config.decoder.max_position_embeddings)

    def _read(self, lines: Sequence[np.ndarray], config: GenerationConfig, max_pixels: int) -> list[LineText]:
        """For each line its text, the log-probabilities of its tokens, True if it came to its end, and its odds.

        Where a processor keeps a line's shape, a line wider than its size is cut between words. A part that the model
        is not sure of is read in several widths (`_agree`).
        """
        if not self.processor.pad_line:
            return [line[:4] for line in self._read_lines(lines, config, max_pixels)]
        Y, X = self.processor.output_size(1, 1)
        cuts = [split_words(line, X / Y) for line in lines]
        parts = [line[:, x0:x1] for line, of in zip(lines, cuts, strict=True) for x0, x1 in of]
        read: list[LineText] = []
        for at in range(0, len(parts), self.batch_lines):
            some = parts[at : at + self.batch_lines]
            found = self._read_lines(some, config, max_pixels)
            unsure = [i for i, line in enumerate(found) if line.text and np.exp(line.logprobs.mean()) < MIN_CONFIDENCE]
            together = max(1, self.batch_lines // (1 + len(WIDTHS)))
            for start in range(0, len(unsure), together):
                few = unsure[start : start + together]
                again = self._agree([some[i] for i in few], [found[i] for i in few], config, max_pixels)
                for i, line in zip(few, again, strict=True):
                    found[i] = line
            read += [line[:4] for line in found]
        return group_parts(read, list(map(len, cuts)))

    def _agree(
        self, parts: Sequence[np.ndarray], first: Sequence[_Line], config: GenerationConfig, max_pixels: int
    ) -> list[_Line]:
        """For each part of a line the reading of it, or of other views of it, that is likeliest in all of them.

        first: what was read of the parts as they are.  The log-probabilities are the means over these views.  What is
        too wide to be read at once is read in pieces, which give a text and are no view.
        """
        Y, X = self.processor.output_size(1, 1)
        lines, of = list[np.ndarray](), list[tuple[int, int]]()  # and the part that each is of, and in how many pieces
        for i, part in enumerate(parts):
            for view in self._views(part):
                cuts = split_words(view, X / Y)
                lines += [view[:, x0:x1] for x0, x1 in cuts]
                of += [(i, len(cuts))] * len(cuts)
        states = self._states(lines, max_pixels)
        written = self._decode_states(states, config)
        views = [[line.states] for line in first]  # for each part the states of each view
        texts = [{line.ids: line.ended} for line in first]  # and its texts, True for a whole one
        at = 0
        while at < len(lines):
            i, count = of[at]
            pieces = written[at : at + count]
            ids = pieces[0].ids.tolist() if count == 1 else self._ids([one.ids for one in pieces], config)
            texts[i][tuple(ids)] = all(one.reason != "length" for one in pieces)
            views[i] += states[at : at + 1] if count == 1 else []
            at += count
        pairs = [(view, text) for of_part, some in zip(views, texts, strict=True) for text in some for view in of_part]
        rows = iter(self._logprobs([view for view, _ in pairs], [text for _, text in pairs], config))
        best = []
        for line, of_part, some in zip(first, views, texts, strict=True):
            means = {text: np.mean([next(rows) for _ in of_part], 0) for text in some}
            # No text that is much shorter than another, for which what it leaves out would count, or without an end.
            ended = [text for text in some if some[text]] or list(some)
            whole = [text for text in ended if len(text) >= MIN_LENGTH_SHARE * max(map(len, ended))]
            ids = max(whole, key=lambda text, means=means: means[text].sum())
            best.append(_Line(self.tokenizer.decode(ids), means[ids], some[ids], line.odds, ids, line.states))
        return best

    def _views(self, part: np.ndarray) -> list[np.ndarray]:
        """A part of a line made wider and narrower, or, in small print, where a pixel is much, resampled."""
        Y, X = self.processor.output_size(1, 1)
        if len(part) < MIN_HEIGHT_SHARE * Y:
            return resample_views(part, Y)
        long = part.shape[1] * max(WIDTHS) > X / Y * len(part)  # its letters are narrow as it is
        return [stretch(part, factor) for factor in WIDTHS if factor > 1 or not long]

    def _ids(self, pieces: Sequence[np.ndarray], config: GenerationConfig) -> list[int]:
        """The ids of one text, from those of its pieces, between which there are spaces."""
        text = " ".join(filter(None, (self.tokenizer.decode(ids).strip() for ids in pieces)))
        most = self._max_tokens(config) - 1
        return [*self.tokenizer.backend.encode(text, add_special_tokens=False).ids[:most], config.eos_token_id[0]]

    def _logprobs(
        self, states: Sequence[Array], texts: Sequence[tuple[int, ...]], config: GenerationConfig
    ) -> list[np.ndarray]:
        """The log-probabilities of the tokens of texts, of each in its image's states (1, S, E)."""
        model = self.runner.decoder(cast("Reader", self.model).decoder)
        out: list[np.ndarray] = []
        for at in range(0, len(texts), self.batch_lines):
            some = texts[at : at + self.batch_lines]
            B, T = len(some), max(map(len, some))
            ids = np.zeros((B, T), np.int64)
            for row, text in zip(ids, some, strict=True):
                row[: len(text)] = text
            cache, start = model.new_cache(B, T), np.full((B, 1), config.decoder_start_token_id)
            known = ops.cat(list(states[at : at + self.batch_lines]), 0)
            logits = floats(model.next_logits(start, None, cache, encoder_hidden_states=known))[:, None]
            if T > 1:
                logits = np.concatenate([logits, floats(model.every_logits(ids[:, :-1], cache))], 1)
            logprobs = np.take_along_axis(log_softmax(logits), ids[..., None], -1)[..., 0]
            out += [row[: len(text)] for row, text in zip(logprobs, some, strict=True)]
        return out

    def _read_lines(self, lines: Sequence[np.ndarray], config: GenerationConfig, max_pixels: int) -> list[_Line]:
        """The readings of lines, or parts of lines, that are not cut."""
        states = self._states(lines, max_pixels)
        blank = [is_blank(line) for line in lines]
        out: list[Any] = [None] * len(lines)
        of_text, of_none = ([i for i, none in enumerate(blank) if none is kind] for kind in (False, True))
        if of_text:
            for i, best in zip(of_text, self._decode_states([states[i] for i in of_text], config), strict=True):
                ids, text = tuple(best.ids.tolist()), self.tokenizer.decode(best.ids)
                odds = self._script_odds(lines[i], states[i], best.logprobs, text)
                out[i] = _Line(text, best.logprobs, best.reason != "length", odds, ids, states[i])
        if of_none:
            known = ops.cat([states[i] for i in of_none], 0)
            for i, logprob in zip(of_none, self._no_text(known, config), strict=True):
                out[i] = _Line("", np.array([logprob]), True, -np.inf, (), states[i])
        return out

    def _script_odds(self, line: np.ndarray, states: Array, logprobs: np.ndarray, text: str) -> float:
        if self.scripts is None:
            return -np.inf
        (h, w), (Y, X) = line.shape[:2], self.processor.output_size(1, 1)
        share = min(1.0, w * Y / (h * X)) if self.processor.pad_line else 1.0
        return self.scripts.log_odds(line_features(line, floats(states)[0], share, logprobs, text))

    def _states(self, lines: Sequence[np.ndarray], max_pixels: int) -> list[Array]:
        """The encoder's states (1, S, E) of each line."""
        model = cast("Reader", self.model)

        def encode(pixel_values: Array, sizes: Any) -> list[Array]:
            states = self.runner.run(model.encoder_states, model.encoder.pixels(pixel_values))
            return [states[i : i + 1] for i in range(len(states))]

        found = self.rows(lines, encode, progress=False, max_pixels=max_pixels)
        if (error := next((one for one in found if isinstance(one, ZooError)), None)) is not None:
            raise InputError(f"a line cannot be read{error.problem}")  # which is of no image alone
        return found

    def _decode_states(self, states: Sequence[Array], config: GenerationConfig) -> list[Generated]:
        """The best text of each line's states (1, S, E)."""
        decoder = self.runner.decoder(cast("Reader", self.model).decoder)
        prompts = np.full((len(states), 1), config.decoder_start_token_id)
        return [best for (best,) in generate(decoder, prompts, config, encoder_hidden_states=ops.cat(list(states), 0))]

    def _no_text(self, states: Array, config: GenerationConfig) -> np.ndarray:
        """The log-probability of an end before any text, after the begin token that some were trained to write first.

        states (B, S, E) -> log-probabilities (B,).
        """
        model = self.runner.decoder(cast("Reader", self.model).decoder)
        B, V = len(states), self.config.decoder.vocab_size
        end = [token for token in config.eos_token_id if token < V]
        cache = model.new_cache(B, 2)
        start = np.full((B, 1), config.decoder_start_token_id)
        first = _probabilities(model.next_logits(start, None, cache, encoder_hidden_states=states))
        at_once, begin = first[:, end].sum(-1), config.bos_token_id
        if begin is not None and begin < V and begin not in end:
            second = _probabilities(model.next_logits(np.full((B, 1), begin), None, cache))
            at_once = at_once + first[:, begin] * second[:, end].sum(-1)
        with np.errstate(divide="ignore"):
            return np.log(at_once)


def _probabilities(logits: Array) -> np.ndarray:
    return np.exp(log_softmax(floats(logits)).astype(np.float64))


def complete(generation: GenerationConfig, decoder: Any) -> GenerationConfig:
    """The config with the decoder's tokens where it says none itself; their defaults are TrOCR's.

    A text starts with bos_token_id where no other token is said to start it, as in transformers.
    """
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id", "eos_token_id")
    missing = {name: getattr(decoder, name, None) for name in names if getattr(generation, name) in (None, ())}
    out = generation.replace(**{name: value for name, value in missing.items() if value is not None})
    if out.decoder_start_token_id is None:
        out = out.replace(decoder_start_token_id=out.bos_token_id)
    if out.decoder_start_token_id is None or not out.eos_token_id:
        raise ConfigError(
            "neither generation_config.json nor the decoder's config says with which token a text starts "
            "(decoder_start_token_id) and ends (eos_token_id)"
        )
    return out
