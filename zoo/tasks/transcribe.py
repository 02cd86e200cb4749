"""Transcribe: the words of a recording, with times and language.

Long audio is read in windows of half a minute, as Radford et al. 2022 (https://arxiv.org/abs/2212.04356, section 4.5)
do: the next window begins where the last segment that is whole ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import numpy as np

from ..audio import AudioInput, FeatureExtractor, Spectrogram, reader
from ..audio.languages import LANGUAGE_CODES
from ..audio.voice import SpeechParts
from ..cache import KVCache
from ..errors import ConfigError, InputError, UnsupportedError, ZooError, check_choice, list_names, nearest
from ..generate import GenerationConfig
from ..generate.speech import DecodedWindows, Fallback, Rules, decode_windows, segments_of
from ..generate.word_times import attention_shares, token_states, words_of
from ..inputs.encoder_decoder import EncoderDecoder
from ..pretrained import Pretrained
from ..text.tokenizer import Tokenizer
from ..warning import warn
from .arguments import check_count, collect_results, result_or_error
from .base import Task, check_vocabulary
from .image_task import as_images
from .progress import Progress
from .transcription import Segment, Transcription, Transcriptions, Word

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

FILES = ("preprocessor_config.json", "generation_config.json")
PREVIOUS = "<|startofprev|>"  # a token: what follows was said before the recording


Timed = TypeVar("Timed", Segment, Word)


class _Asked(NamedTuple):
    """How recordings are to be read.  before: the tokens of the prompt.  heads: those that words' times need."""

    task: str
    timestamps: bool
    before: list[int]
    fallback: Fallback
    heads: Sequence[tuple[int, int]] | None


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
        translate: bool = False,
        timestamps: bool | Literal["word"] = True,
        word_timestamps: bool = False,
        prompt: str | None = None,
        language_model: None = None,
        num_beams: int = 1,
        vad_filter: bool = False,
        batch_size: int = 8,
        progress: bool | None = None,
        **fallback: Any,
    ) -> Any:
        """A Transcription for one recording, a list of them for several.

        audio: a path, the bytes of a file, an open file, or an array of floats (samples,) at the checkpoint's rate
        (16,000 a second).  language: what is spoken, "en" or "english"; by default what the model hears in the first
        window.  translate: True, as task="translate", writes English.  timestamps: False writes texts without times,
        one segment for each half minute, which may cut a word there.  word_timestamps: True, as timestamps="word",
        gives the words with their times too, by the attention of the heads that generation_config.json names.
        prompt: what may have been said before each window: names and rare words that the model shall spell so, or a
        style of writing; a model takes its last 223 tokens.  num_beams: the width of the beam search.  vad_filter:
        True leaves out what is no speech, before the model reads it; it needs the extra `vad`.  batch_size: the number
        of recordings whose windows are computed together.  A recording of any length is read in blocks, and takes
        bounded memory.

        fallback: `temperature`, `compression_ratio_threshold`, `logprob_threshold` and `no_speech_threshold`, which are
        described in `zoo.generate.speech.Fallback`; temperature=0 takes each window's likeliest tokens, whatever they
        are.  What is random is the same each time.
        """
        if language is not None and language not in self.languages:
            language = self._code_of(language)
        if not isinstance(translate, bool):
            raise InputError(f"translate is {translate!r}, expected True or False")
        task = "translate" if translate else task
        check_choice(task, "task", self.tasks or ("transcribe",))
        if language_model is not None:
            raise InputError(
                "language_model is for models that write by CTC; prompt gives words that are to be spelt so"
            )
        known = [field.name for field in fields(Fallback) if field.name != "num_beams"]
        for name in fallback:
            if name not in known:
                raise InputError(f"{name} is not an option of transcribing, expected {', '.join(known)}")
        if not isinstance(timestamps, bool) and timestamps != "word":
            raise InputError(f"timestamps is {timestamps!r}, expected True, False or 'word'")
        for name, value in (("word_timestamps", word_timestamps), ("vad_filter", vad_filter)):
            if not isinstance(value, bool):
                raise InputError(f"{name} is {value!r}, expected True or False")
        heads = self._alignment_heads() if word_timestamps or timestamps == "word" else None
        fallbacks, batch_size = Fallback(num_beams=num_beams, **fallback), check_count(batch_size, "batch_size")
        asked = _Asked(task, bool(timestamps), self._encode_prompt(prompt), fallbacks, heads)
        given, single = as_images(audio, "audio")
        out: list[Any] = [None] * len(given)
        begin = partial(_Reading, self.features, language, None if heads is None else [], vad_filter)
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
                    self._advance([active[i] for i in windows], np.stack(list(windows.values())), asked)
                elif None not in out:
                    return collect_results(out, single)

    def _code_of(self, language: Any) -> str:
        """The checkpoint's code of a language by its English name; InputError for what it does not know."""
        code = LANGUAGE_CODES.get(str(language).lower(), str(language).lower())
        if code not in self.languages:
            known = list_names([*self.languages]) or "none, as the checkpoint has one language"
            names = [name for name, code in LANGUAGE_CODES.items() if code in self.languages]
            guess = nearest(str(language).lower(), [*self.languages, *names])
            raise InputError(f"language is {language!r}, expected its English name or one of {known}{guess}")
        return code

    def _encode_prompt(self, prompt: str | None) -> list[int]:
        """The tokens of a prompt, with the one that says that it was before, none without a prompt."""
        if prompt is None:
            return []
        if not isinstance(prompt, str):
            raise InputError(f"prompt is {prompt!r:.100}, expected a text")
        start = self.generation.extra.get("prev_sot_token_id")
        if start is None:
            start = self.tokenizer.id_of(PREVIOUS)
        _check_ids({"prev_sot_token_id": start}, "", self.config.vocab_size)
        row = self.tokenizer.encode_batch(f" {prompt.strip()}", truncation=False).rows[0]
        ids = [i for i, own in zip(row.ids, row.sequence_ids, strict=True) if own is not None] if prompt.strip() else []
        if special := [i for i in ids if i >= self.config.eos_token_id]:
            raise InputError(f"prompt has the special token {self.tokenizer.tokens(special[:1])[0]}, expected words")
        most = self.config.max_target_positions // 2 - 1
        if len(ids) > most:
            warn(f"the prompt has {len(ids)} tokens, of which the model takes the last {most}")
        return [start, *ids[-most:]] if ids else []

    def _advance(self, active: list[_Reading], features: np.ndarray, asked: _Asked) -> None:
        """Read the next window of each recording; features: of these windows."""

        def prompts(first: np.ndarray) -> list[list[int]]:
            """The tokens of language and task, by the logits (C, V) of the first token."""
            timeless = [self.begin - 1] if not asked.timestamps and self.begin <= first.shape[1] else []
            if not self.languages:
                return [timeless for _ in active]
            for one, logits in zip(active, first, strict=True):
                one.language = one.language or max(self.languages, key=lambda name: logits[self.languages[name]])
            kind = [self.tasks[asked.task]] if self.tasks else []
            return [[self.languages[cast(str, one.language)], *kind, *timeless] for one in active]

        written = decode_windows(
            self.runner.decoder(self.pair.decoder),
            self.pair.context(features),
            asked.before,
            self.config.decoder_start_token_id,
            prompts,
            replace(self.rules, timestamps=asked.timestamps),
            asked.fallback,
            self._text,
            [one.at for one in active],
        )
        frame = self.features.hop_length / self.features.sampling_rate
        for window, (one, tokens) in enumerate(zip(active, written.tokens, strict=True)):
            begin, left = one.at * frame, min(self.config.frames, one.spectrogram.length - one.at)
            length = left * frame
            found, seconds = (
                segments_of(tokens, self.begin, length)
                if asked.timestamps
                else ([(0.0, length, list(range(len(tokens))))], length)
            )
            ends = np.zeros(0)
            if asked.heads is not None and tokens:
                ends = begin + 2 * frame * self._token_states(written, window, asked.heads, max(1, left // 2))
            for start, end, places in found:
                at = [i for i in places if tokens[i] < self.config.eos_token_id]
                ids = [tokens[i] for i in at]
                text = self.tokenizer.decode(ids)
                if not text.strip():
                    continue
                one.segments.append(Segment(begin + start, begin + end, text))
                if one.words is not None:
                    for word, its in words_of(ids, self.tokenizer.decode, one.language):
                        before = at[its[0]] - 1  # the token whose end is the word's beginning
                        times = ends[before] if before >= 0 else begin, ends[at[its[-1]]]
                        one.words.append(Word(round(float(times[0]), 3), round(float(times[1]), 3), word))
            one.at += max(1, round(seconds / frame))

    def _alignment_heads(self) -> list[tuple[int, int]]:
        """The heads (layer, head) of cross-attention that follow what is said."""
        given, limits = self.generation.extra.get("alignment_heads"), self.pair.decoder.cache_shape[:2]
        if given is None:
            raise InputError(
                "times of words need alignment_heads in generation_config.json, which has none: copy those of the "
                "model that this one was trained from"
            )
        width = self.config.median_filter_width
        if width % 2 == 0:
            raise ConfigError(f"median_filter_width = {width}, expected an odd number")
        if not self.runner.has_weights:
            raise UnsupportedError("times of words need the model's weights, and exported graphs have none")
        is_list = isinstance(given, list) and bool(given)
        pairs = [one for one in given if isinstance(one, list) and len(one) == 2] if is_list else []
        if len(pairs) != len(given if is_list else [0]) or not all(
            type(i) is int and 0 <= i < most for one in pairs for i, most in zip(one, limits, strict=True)
        ):
            expected = f"pairs of a layer and a head, [0, 0] ... [{limits[0] - 1}, {limits[1] - 1}]"
            raise ConfigError(f"generation_config.json: alignment_heads is {given!r:.100}, expected {expected}")
        return [(layer, head) for layer, head in pairs]

    def _token_states(
        self, written: DecodedWindows, window: int, heads: Sequence[tuple[int, int]], states: int
    ) -> np.ndarray:
        """Where each token of a window ends: the number of the encoder's state, of which `states` are of sound."""
        prompt, decoder = written.prompts[window], cast(Any, self.pair.decoder)
        ids = np.array([[*prompt, *written.tokens[window]]])
        cache: KVCache = decoder.new_cache(1, ids.shape[1])
        cache.cross = {i: (k[window : window + 1], v[window : window + 1], m) for i, (k, v, m) in written.cross.items()}
        queries: Any = self.runner.run(decoder.cross_queries, decoder.tokens(ids, cache=cache))
        keys = {i: k for i, (k, _, _) in cache.cross.items()}
        shares = attention_shares([q[:, len(prompt) :] for q in queries], keys, heads)
        return token_states(shares[:, :, :states], self.config.median_filter_width)

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

    def __init__(
        self,
        features: FeatureExtractor,
        language: str | None,
        words: list[Word] | None,
        vad_filter: bool,
        recording: AudioInput,
    ):
        self.language, self.at = language, 0
        self.words = None if words is None else [*words]
        self.segments: list[Segment] = []
        read = reader(recording, features.sampling_rate)
        self.speech = SpeechParts(read, features.sampling_rate) if vad_filter else None
        self.spectrogram = Spectrogram(features, read if self.speech is None else self.speech.blocks)

    def window(self) -> np.ndarray:
        """The features of the next window."""
        return self.spectrogram.window(self.at)

    def transcription(self) -> Transcription:
        text = "".join(one.text for one in self.segments).strip()
        samples, segments, words = self.spectrogram.samples, self.segments, self.words
        if (speech := self.speech) is not None:
            samples = speech.samples
            segments = [_in_recording(one, speech) for one in segments]
            words = None if words is None else [_in_recording(one, speech) for one in words]
        return Transcription(text, self.language, segments, words, samples / self.spectrogram.sampling_rate)


def _in_recording(part: Timed, speech: SpeechParts) -> Timed:
    """A segment or word of the parts that are speech, with its times in the recording."""
    times = {"start": speech.original_time(part.start), "end": speech.original_time(part.end, is_end=True)}
    return part._replace(**{name: round(time, 3) for name, time in times.items()})
