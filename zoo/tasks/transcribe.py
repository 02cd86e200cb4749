"""Transcribe: the words of a recording, with times and language.

Long audio is read in windows of half a minute, as Radford et al. 2022 (https://arxiv.org/abs/2212.04356, section 4.5)
do: the next window begins where the last segment that is whole ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import partial
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from ..audio import AudioInput, FeatureExtractor, Spectrogram, reader
from ..errors import ConfigError, InputError, ZooError, check_choice, nearest
from ..generate import GenerationConfig
from ..generate.speech import Fallback, Rules, decode_windows, segments_of
from ..inputs.encoder_decoder import EncoderDecoder
from ..pretrained import Pretrained
from ..text.tokenizer import Tokenizer
from .arguments import check_count, collect_results, result_or_error
from .base import Task, check_vocabulary
from .image_task import as_images
from .notebook import html_table
from .progress import Progress
from .results import Lines, ResultFormat

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

FILES = ("preprocessor_config.json", "generation_config.json")


class Segment(NamedTuple):
    start: float  # seconds
    end: float
    text: str


class Transcription(NamedTuple):
    """The text of a recording.  language: its code, None for a checkpoint of one language."""

    text: str
    language: str | None
    segments: list[Segment]

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.text)}</p>{html_table(self.segments)}"


class Transcriptions(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {
        "text": "string",
        "language": "string",
        "segments": [{"start": "double", "end": "double", "text": "string"}],
    }

    def row(self, result: Transcription, top_k: bool = False) -> dict[str, Any]:
        return {**result._asdict(), "segments": [one._asdict() for one in result.segments]}

    def lines(self, result: Transcription) -> Lines:
        return [(f"{one.start:.2f}-{one.end:.2f}", one.text.strip()) for one in result.segments]


class Transcribe(Task):
    """Recordings to their words.

    >>> transcribe = zoo.load("openai/whisper-base")
    >>> found = transcribe("speech.mp3")
    >>> found.language, found.segments[0]
    ('en', Segment(start=0.0, end=3.2, text='The weather is lovely today.'))
    """

    name = "automatic-speech-recognition"
    reads = "audio"
    results = Transcriptions()
    tokenizer: Tokenizer

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
        features.check(self.config)
        vocab = self.config.vocab_size
        languages, self.tasks = (_ids(generation, name, vocab) for name in ("lang_to_id", "task_to_id"))
        self.languages = {name.strip("<|>"): i for name, i in languages.items()}
        timeless = {"no_timestamps_token_id": generation.extra.get("no_timestamps_token_id", vocab - 1)}
        self.begin = _check_ids(timeless, "", vocab)["no_timestamps_token_id"] + 1  # the token of 0.00 s
        self.rules = Rules(generation, self.begin, self.config.eos_token_id)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        classes = {"features": FeatureExtractor, "tokenizer": Tokenizer, "generation": GenerationConfig}
        return {name: part.from_folder(checkpoint.contents) for name, part in classes.items()}

    def extra_files(self) -> list[str]:
        return [name for name in FILES if self.checkpoint is not None and self.checkpoint.contents.has(name)]

    def __call__(
        self,
        audio: AudioInput | Iterable[AudioInput],
        *,
        language: str | None = None,
        task: str = "transcribe",
        timestamps: bool = True,
        batch_size: int = 8,
        progress: bool | None = None,
        **fallback: Any,
    ) -> Any:
        """A Transcription for one recording, a list of them for several.

        audio: a path, the bytes of a file, an open file, or an array of floats (samples,) at the checkpoint's rate
        (16,000 a second).  language: the code of what is spoken, "en"; by default what the model hears in the first
        window.  task: "translate" writes English.  timestamps: False writes texts without times, one segment for each
        half minute, which may cut a word there.  batch_size: the number of recordings whose windows are computed
        together.  A recording of any length is read in blocks, and takes bounded memory.

        fallback: `temperature`, `compression_ratio_threshold`, `logprob_threshold` and `no_speech_threshold`, which are
        described in `zoo.generate.speech.Fallback`; temperature=0 takes each window's likeliest tokens, whatever they
        are.  What is random is the same each time.
        """
        if language is not None and language not in self.languages:
            known = ", ".join(self.languages) or "none, as the checkpoint has one language"
            raise InputError(f"language is {language!r}, expected one of {known}{nearest(language, self.languages)}")
        check_choice(task, "task", self.tasks or ("transcribe",))
        known = [field.name for field in fields(Fallback)]
        for name in fallback:
            if name not in known:
                raise InputError(f"{name} is not an option of transcribing, expected {', '.join(known)}")
        if not isinstance(timestamps, bool):
            raise InputError(f"timestamps is {timestamps!r}, expected True or False")
        options, batch_size = Fallback(**fallback), check_count(batch_size, "batch_size")
        given, single = as_images(audio, "audio")
        out: list[Any] = [None] * len(given)
        begin = partial(_Reading, self.features, language)
        waiting, active = iter(enumerate(given)), dict[int, _Reading]()
        with Progress(len(given), progress, "recordings") as advance:
            while True:
                for i, recording in islice(waiting, batch_size - len(active)):
                    begun = result_or_error(begin, recording, i, len(given), "audio")
                    if isinstance(begun, ZooError):
                        out[i] = begun
                        advance(1)
                    else:
                        active[i] = begun
                windows: dict[int, np.ndarray] = {}
                for i, one in list(active.items()):
                    over = one.at >= one.spectrogram.length
                    step: Any = _Reading.transcription if over else _Reading.window
                    found = result_or_error(step, one, i, len(given), "audio")
                    if over or isinstance(found, ZooError):
                        out[i] = found
                        del active[i]
                        advance(1)
                    else:
                        windows[i] = found
                if windows:
                    features = np.stack(list(windows.values()))
                    self._advance([active[i] for i in windows], features, task, timestamps, options)
                elif None not in out:
                    return collect_results(out, single)

    def _advance(
        self, active: list[_Reading], features: np.ndarray, task: str, timestamps: bool, options: Fallback
    ) -> None:
        """Read the next window of each recording; features: of these windows."""

        def prompts(first: np.ndarray) -> list[list[int]]:
            """The tokens of language and task, by the logits (C, V) of the first token."""
            timeless = [self.begin - 1] if not timestamps and self.begin <= first.shape[1] else []
            if not self.languages:
                return [timeless for _ in active]
            for one, logits in zip(active, first, strict=True):
                one.language = one.language or max(self.languages, key=lambda name: logits[self.languages[name]])
            kind = [self.tasks[task]] if self.tasks else []
            return [[self.languages[cast(str, one.language)], *kind, *timeless] for one in active]

        written = decode_windows(
            self.runner.decoder(self.pair.decoder),
            self.pair.context(features),
            self.config.decoder_start_token_id,
            prompts,
            replace(self.rules, timestamps=timestamps),
            options,
            self._text,
            [one.at for one in active],
        )
        frame = self.features.hop_length / self.features.sampling_rate
        for one, tokens in zip(active, written, strict=True):
            begin, left = one.at * frame, min(self.config.frames, one.spectrogram.length - one.at)
            length = left * frame
            found, seconds = (
                segments_of(tokens, self.begin, length) if timestamps else ([(0.0, length, tokens)], length)
            )
            for start, end, ids in found:
                text = self._text(ids)
                if text.strip():
                    one.segments.append(Segment(begin + start, begin + end, text))
            one.at += max(1, round(seconds / frame))

    def _text(self, tokens: list[int]) -> str:
        return self.tokenizer.decode([token for token in tokens if token < self.config.eos_token_id])


def _ids(generation: GenerationConfig, name: str, vocab: int) -> dict[str, int]:
    """An object of generation_config.json with the ids of tokens."""
    found = generation.extra.get(name) or {}
    if not isinstance(found, dict):
        raise ConfigError(
            f"generation_config.json: {name} is {found!r:.100}, expected an object of tokens and their ids"
        )
    return _check_ids(found, f"{name}.", vocab)


def _check_ids(ids: dict[str, Any], where: str, vocab: int) -> dict[str, int]:
    for name, value in ids.items():
        if type(value) is not int or not 0 <= value < vocab:
            found = f"{where}{name} is {value!r}"
            raise ConfigError(f"generation_config.json: {found:.200}, expected the id of a token, 0 ... {vocab - 1}")
    return dict(ids)


class _Reading:
    """A recording that is being read, up to the frame `at`."""

    def __init__(self, features: FeatureExtractor, language: str | None, recording: AudioInput):
        self.language, self.at = language, 0
        self.segments: list[Segment] = []
        self.spectrogram = Spectrogram(features, reader(recording, features.sampling_rate))

    def window(self) -> np.ndarray:
        """The features of the next window."""
        return self.spectrogram.window(self.at)

    def transcription(self) -> Transcription:
        return Transcription("".join(one.text for one in self.segments).strip(), self.language, self.segments)
