"""Transcribe: what is said in a sound, with times and language.

Long sounds are read in windows of half a minute, as Radford et al. 2022 (https://arxiv.org/abs/2212.04356, section 4.5)
do: the next window begins where the last segment that is whole ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import ConfigError, InputError, nearest
from ..generate import GenerationConfig
from ..generate.sampling import log_softmax
from ..inputs.encoder_decoder import EncoderDecoder
from ..options import DEFAULTS, Options
from ..pretrained import Pretrained
from ..sounds import FeatureExtractor, SoundInput, read_sound
from ..text.tokenizer import Tokenizer
from .base import Progress, Task, check_vocabulary
from .image_task import as_images, floats

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..files.folder import CheckpointFolder

STEP = 0.02  # seconds from one time's token to the next
SILENT, UNSURE = 0.6, -1.0  # a window is silence above this probability, where its text is below this log-probability
FILES = ("preprocessor_config.json", "generation_config.json")


class Segment(NamedTuple):
    start: float  # seconds
    end: float
    text: str


class Transcription(NamedTuple):
    """The text of a sound.  language: its code, None for a checkpoint of one language."""

    text: str
    language: str | None
    segments: list[Segment]


class Transcribe(Task):
    """Sounds to what is said in them.

    >>> transcribe = zoo.load("openai/whisper-base")
    >>> found = transcribe("speech.mp3")
    >>> found.language, found.segments[0]
    ('en', Segment(start=0.0, end=3.2, text='The weather is lovely today.'))
    """

    name = "automatic-speech-recognition"
    inputs = ("sounds",)

    def __init__(
        self,
        model: Pretrained,
        features: FeatureExtractor,
        tokenizer: Tokenizer,
        generation: GenerationConfig,
        checkpoint: Checkpoint | None = None,
    ):
        super().__init__(model, checkpoint)
        self.pair, self.features, self.tokenizer, self.generation = (
            cast(EncoderDecoder, model),
            features,
            tokenizer,
            generation,
        )
        check_vocabulary(tokenizer, self.config.vocab_size)
        if (
            features.samples // features.hop_length != self.config.frames
            or features.feature_size != self.config.num_mel_bins
        ):
            raise ConfigError(
                f"the feature extractor makes {features.feature_size} bins x {features.samples // features.hop_length} "
                f"frames, and the model reads {self.config.num_mel_bins} x {self.config.frames}"
            )
        special = generation.extra
        self.languages = {name.strip("<|>"): i for name, i in (special.get("lang_to_id") or {}).items()}
        self.tasks = dict(special.get("task_to_id") or {})
        self.begin = int(special.get("no_timestamps_token_id", self.config.vocab_size - 1)) + 1  # the token of 0.00 s

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, head: str | None = None, options: Options = DEFAULTS
    ) -> Transcribe:
        from ..loading import model_of

        files = checkpoint.contents
        parts = FeatureExtractor.from_folder(files), Tokenizer.from_folder(files), GenerationConfig.from_folder(files)
        return cls(model_of(checkpoint, options, head=head), *parts, checkpoint)

    def copied_files(self) -> list[tuple[CheckpointFolder, str]]:
        return [*super().copied_files(), *((self.tokenizer.folder, name) for name in self.tokenizer.files)]

    def extra_files(self) -> list[str]:
        return [name for name in FILES if self.checkpoint is not None and self.checkpoint.contents.has(name)]

    def __call__(
        self,
        sounds: SoundInput | Iterable[SoundInput],
        *,
        language: str | None = None,
        task: str = "transcribe",
        progress: bool | None = None,
    ) -> Any:
        """A Transcription for one sound, a list of them for several.

        sounds: a path, the bytes of a file, an open file, or an array of floats (samples,) at the checkpoint's rate
        (16,000 a second).  language: the code of what is spoken, "en"; by default what the model hears in the first
        window.  task: "translate" writes English.  A sound of any length is read in blocks, and takes bounded memory.
        """
        if language is not None and language not in self.languages:
            known = ", ".join(self.languages) or "none, as the checkpoint has one language"
            raise InputError(f"language is {language!r}, expected one of {known}{nearest(language, self.languages)}")
        if task not in (self.tasks or ("transcribe",)):
            raise InputError(f"task is {task!r}, expected {' or '.join(self.tasks or ('transcribe',))}")
        given, single = as_images(sounds, "sounds")
        out = []
        with Progress(len(given), progress, "sounds") as advance:
            for i, sound in enumerate(given):
                try:
                    out.append(self._transcribed(sound, language, task))
                except InputError as e:
                    raise e if single else e.about("sounds", i) from None
                advance(1)
        return out[0] if single else out

    def _transcribed(self, sound: SoundInput, language: str | None, task: str) -> Transcription:
        segments: list[Segment] = []
        rate, most = self.features.sampling_rate, self.features.samples
        rest, begin, blocks = np.zeros(0, np.float32), 0, read_sound(sound, rate)
        while True:
            rest = _filled(rest, blocks, most)
            if not len(rest):
                return Transcription("".join(one.text for one in segments).strip(), language, segments)
            window = rest[:most]
            language, tokens = self._written(self.features(window), language, task)
            found, seconds = segments_of(tokens, self.begin, len(window) / rate)
            for start, end, ids in found:
                text = self.tokenizer.decode([token for token in ids if token < self.config.eos_token_id])
                if text.strip():
                    segments.append(Segment(begin / rate + start, begin / rate + end, text))
            step = round(seconds * rate) if len(rest) >= most else len(rest)
            begin, rest = begin + step, rest[step:]

    def _written(self, features: np.ndarray, language: str | None, task: str) -> tuple[str | None, list[int]]:
        """The language of a window, and its tokens: the likeliest at each step, none for silence."""
        config, decoder = self.config, self.runner.decoder(self.pair.decoder)
        cache = decoder.new_cache(1, config.max_target_positions)
        states = self.pair.context(features[None])
        first = floats(decoder.next_logits(np.array([[config.decoder_start_token_id]]), None, cache, **states))[0]
        odds = log_softmax(first[None])[0]
        prompt = []
        if self.languages:
            language = language or max(self.languages, key=lambda name: first[self.languages[name]])
            prompt = [self.languages[language], self.tasks[task]] if self.tasks else [self.languages[language]]
        logits = first if not prompt else floats(decoder.next_logits(np.array([prompt]), None, cache))[0]
        tokens: list[int] = []
        total = 0.0
        for _ in range(min(config.max_target_positions // 2, config.max_target_positions - 1 - len(prompt))):
            scores = self._allowed(logits, tokens)
            token = int(scores.argmax())
            total += float(log_softmax(logits[None])[0][token])
            if token == config.eos_token_id:
                break
            tokens.append(token)
            logits = floats(decoder.next_logits(np.array([[token]]), None, cache))[0]
        silent = self.begin - 2  # the token before "no timestamps"
        if self.begin < config.vocab_size and odds[silent] > np.log(SILENT) and total / (len(tokens) + 1) < UNSURE:
            return language, []
        return language, tokens

    def _allowed(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        """Logits (V,) with -inf for what must not follow."""
        scores = logits.copy()
        never = [*self.generation.suppress_tokens, *(() if tokens else self.generation.begin_suppress_tokens)]
        scores[[token for token in never if token < len(scores)]] = -np.inf
        if self.begin >= len(scores):
            return scores
        initial = self.generation.extra.get("max_initial_timestamp_index")
        return with_times(scores, tokens, self.begin, self.config.eos_token_id, initial)


def _filled(rest: np.ndarray, blocks: Iterator[np.ndarray], most: int) -> np.ndarray:
    """The samples that wait, with blocks added until there is a window of them or the sound ends."""
    parts, count = [rest], len(rest)
    while count < most and (block := next(blocks, None)) is not None:
        parts.append(block)
        count += len(block)
    return np.concatenate(parts)


def with_times(scores: np.ndarray, tokens: Sequence[int], begin: int, end: int, initial: int | None) -> np.ndarray:
    """Scores (V,) with -inf for what would break the order of times: they come in pairs and do not fall, a text begins
    with one, and one must come where all of them together are likelier than any word.

    tokens: those of the window so far.  begin: the token of 0.00 s.  end: that of the end, after those of words.
    initial: the highest index of the first time.
    """
    scores = scores.copy()
    scores[begin - 1] = -np.inf  # "no timestamps"
    is_time = [token >= begin for token in tokens]
    last, before = is_time[-1:] == [True], len(tokens) < 2 or is_time[-2]
    if last:
        scores[slice(begin, None) if before else slice(0, end)] = -np.inf
    times = [token for token in tokens if token >= begin]
    if times:
        scores[begin : times[-1] if last and not before else times[-1] + 1] = -np.inf
    if not tokens:
        scores[:begin] = -np.inf
        if initial is not None:
            scores[begin + initial + 1 :] = -np.inf
    odds = log_softmax(scores[None])[0]
    top = odds[begin:].max(initial=-np.inf)
    if top > -np.inf and top + np.log(np.exp(odds[begin:] - top).sum()) > odds[:begin].max():
        scores[:begin] = -np.inf
    return scores


def segments_of(tokens: Sequence[int], begin: int, length: float) -> tuple[list[tuple[float, float, list[int]]], float]:
    """The segments of a window of `length` seconds (start, end, tokens), and the second where the next one begins."""
    is_time = [token >= begin for token in tokens]
    cuts = [i + 1 for i in range(len(tokens) - 1) if is_time[i] and is_time[i + 1]]
    ends_alone = is_time[-2:] == [False, True]
    if not cuts:
        times = [token for token in tokens if token >= begin]
        end = (times[-1] - begin) * STEP if len(times) > 1 else length
        return [(0.0, end, [token for token in tokens if token < begin])], length
    found, at = [], 0
    for cut in [*cuts, *([len(tokens)] if ends_alone else [])]:
        part = tokens[at:cut]
        found.append(((part[0] - begin) * STEP, (part[-1] - begin) * STEP, [token for token in part if token < begin]))
        at = cut
    seconds = length if ends_alone else (tokens[at - 1] - begin) * STEP
    return found, seconds if seconds > 0 else length
