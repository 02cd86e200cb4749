"""CtcTranscribe: the words of a recording by a model that hears a character at each state (CTC).

Long audio is read in windows that overlap, as transformers' pipeline reads it: of each window the states in the middle
count, which have heard what is around them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..audio import AudioInput, reader
from ..audio.features import FILE
from ..audio.frames import FrameExtractor
from ..audio.mel_frames import MelExtractor
from ..audio.waveform import WaveformExtractor, windows
from ..errors import InputError, ZooError
from ..inputs.frames import FrameModel
from ..inputs.waveform import WaveformModel
from ..pretrained import Pretrained
from ..text.ctc_beams import HOTWORD_WEIGHT, CtcBeams
from ..text.ctc_pieces import CtcPieces
from ..text.ctc_vocabulary import CtcVocabulary, Span
from ..text.ngrams import FOLDER, NgramModel
from ..warning import warn
from .arguments import as_texts, check_count, collect_results, result_or_error
from .base import Task
from .image_task import as_images, floats
from .progress import Progress
from .transcription import PARTS, Alternative, Segment, Transcription, Transcriptions, Word

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

Extractor = WaveformExtractor | FrameExtractor | MelExtractor
CHUNK_SECONDS = 30.0  # a window; a recording that is not longer is one
STRIDES = 6  # a window's length by that of what it shares with a neighbour, as in transformers' pipeline
MAX_CHUNK_SECONDS = 600.0  # memory grows with the square of a window's length
PAUSE = 0.6  # seconds without a character between two phrases
MAX_PHRASE = 84  # characters of a phrase: two lines of subtitles
BEAMS = 100  # the texts that are followed with a language model or hotwords, as in pyctcdecode
MAX_BEAMS = 10_000


class CtcTranscribe(Task):
    """Recordings to their words.

    >>> transcribe = zoo.load("facebook/wav2vec2-base-960h")
    >>> transcribe("speech.flac", timestamps="word").words[0]
    Word(start=0.62, end=0.7, text='THE')
    """

    name = "automatic-speech-recognition"
    reads = "audio"
    results = Transcriptions()
    model: WaveformModel | FrameModel
    tokenizer: CtcVocabulary

    def __init__(
        self,
        model: Pretrained,
        features: Extractor,
        tokenizer: CtcVocabulary,
        checkpoint: Checkpoint | None = None,
    ):
        super().__init__(model, checkpoint)
        self.features, self.tokenizer = features, tokenizer
        self._ngrams: tuple[str, NgramModel] | None = None  # the last that was read, by its path
        features.check(self.config)
        tokenizer.check(self.config.vocab_size)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        files, kind = checkpoint.contents, WaveformExtractor
        if hasattr(checkpoint.config, "frame_size"):
            kind = MelExtractor if hasattr(checkpoint.config, "num_mel_bins") else FrameExtractor
        pieces = files.has(CtcPieces.file) and not files.has(CtcVocabulary.file)
        tokenizer = (CtcPieces if pieces else CtcVocabulary).from_folder(files)
        return {"features": kind.from_folder(files), "tokenizer": tokenizer}

    def extra_files(self) -> list[str]:
        return [FILE]

    def __call__(
        self,
        audio: AudioInput | Iterable[AudioInput],
        *,
        timestamps: bool | Literal["word", "char"] = True,
        word_timestamps: bool = False,
        language: str | None = None,
        translate: bool = False,
        prompt: str | None = None,
        hotwords: str | Iterable[str] | None = None,
        hotword_weight: float = HOTWORD_WEIGHT,
        language_model: bool | str | os.PathLike[str] | NgramModel | None = None,
        num_beams: int | None = None,
        n_best: int = 1,
        vad_filter: bool = False,
        chunk_length_s: float = CHUNK_SECONDS,
        stride_length_s: float | tuple[float, float] | None = None,
        batch_size: int = 8,
        progress: bool | None = None,
    ) -> Any:
        """A Transcription for one recording, a list of them for several; its language is None.

        audio: a path, the bytes of a file, an open file, or an array of floats (samples,) at the checkpoint's rate
        (16,000 a second).  A segment has the words up to a pause of 0.6 s; with timestamps=False there is one, all of
        the text.  word_timestamps: True, as timestamps="word", gives the words with their times too; timestamps="char"
        gives the characters.  A character's time is from where the model begins to hear it until it hears another one
        or nothing, in steps of 20 ms.

        chunk_length_s: seconds of a window, at most 600.  stride_length_s: seconds that it shares with the one before
        and the one after, or one number for both; by default a sixth of its length.  A recording of any length is
        read in windows, and takes bounded memory.  batch_size: the most windows of one length that are computed
        together.  language, translate, prompt, vad_filter: Whisper's; the model writes the characters that it hears, in
        one language, and anything else is an error.

        num_beams: above 1, the texts are searched whose paths together are the likeliest, and so many are followed; 100
        where hotwords, a language model or several texts are asked for.  hotwords: words that are likelier than others,
        a list or a text of them; hotword_weight: what each adds to a text's score, a logarithm.  language_model: the
        path of a file of n-grams (.arpa, .bin) or of a folder as pyctcdecode writes it; or an `NgramModel`, which says
        how much it weighs; True: the checkpoint's own, in its folder language_model.  It needs the extra `ngrams`.
        n_best: above 1, the number of the best texts in `alternatives`.
        """
        if language is not None:
            raise InputError(f"language is {language!r}, expected None: {self!r} has one language")
        for name, value, plain in (
            ("translate", translate, False),
            ("prompt", prompt, None),
            ("vad_filter", vad_filter, False),
        ):
            if value != plain:
                raise InputError(f"{name} is {value!r}, expected {plain}: {self!r} writes what it hears")
        if not isinstance(timestamps, bool) and timestamps not in PARTS:
            raise InputError(f"timestamps is {timestamps!r}, expected True, False, 'word' or 'char'")
        if not isinstance(word_timestamps, bool):
            raise InputError(f"word_timestamps is {word_timestamps!r}, expected True or False")
        units = {timestamps, "word"} if word_timestamps else {timestamps}
        sizes, batch_size = self._sizes(chunk_length_s, stride_length_s), check_count(batch_size, "batch_size")
        search = self._search(hotwords, hotword_weight, language_model, num_beams, check_count(n_best, "n_best"))
        given, single = as_images(audio, "audio")
        out: list[Any] = [None] * len(given)
        begin, waiting = partial(_Hearing, self.features, sizes, search), list(enumerate(given))[::-1]
        # As many seconds at once as the longest window has, so that memory is that of one.
        most, active = sizes[0], dict[int, _Hearing]()
        with Progress(len(given), progress, "recordings") as advance:
            while waiting or active:
                while waiting and len(active) < batch_size:
                    i, recording = waiting.pop()
                    begun = result_or_error(begin, recording, i, len(given), "audio")
                    if isinstance(begun, ZooError):
                        out[i] = begun
                        advance(1)
                    else:
                        active[i] = begun
                for i, one in list(active.items()):
                    step = result_or_error(_Hearing.advance, one, i, len(given), "audio")
                    if isinstance(step, ZooError) or one.window is None:
                        out[i] = step if isinstance(step, ZooError) else self._transcription(one, units, n_best)
                        del active[i]
                        advance(1)
                self._hear(list(active.values()), most)
        return collect_results(out, single)

    def _search(
        self, hotwords: Any, weight: Any, language_model: Any, num_beams: Any, n_best: int
    ) -> Callable[[], CtcBeams] | None:
        """What begins the search for a recording's texts; None: each state's likeliest character is taken."""
        hotwords = [] if hotwords is None else self.tokenizer.hotwords(as_texts(hotwords, "hotwords")[0])
        if not _is_number(weight) or not math.isfinite(weight):
            raise InputError(f"hotword_weight is {weight!r}, expected a number")
        ngrams = language_model
        if ngrams is None and self.has_language_model:
            warn(f"{self!r} has a language model, which language_model=True searches with and False leaves out")
        if ngrams is True:
            if self.checkpoint is None or not self.has_language_model:
                download = f'hf download NAME --include "{FOLDER}/*"'
                raise InputError(f"language_model is True, and {self!r} has no folder {FOLDER} ({download})")
            ngrams = self.checkpoint.contents.at(FOLDER)
        if isinstance(ngrams, str | os.PathLike):
            path = os.fspath(ngrams)
            if self._ngrams is None or self._ngrams[0] != path:  # a file may have gigabytes
                self._ngrams = path, NgramModel.from_path(path)
            ngrams = self._ngrams[1]
        elif ngrams is not None and ngrams is not False and not isinstance(ngrams, NgramModel):
            raise InputError(f"language_model is {ngrams!r:.100}, expected a path, an NgramModel, True, False or None")
        searches = bool(ngrams or hotwords) or n_best > 1
        width = check_count((BEAMS if searches else 1) if num_beams is None else num_beams, "num_beams")
        if not searches and width == 1:
            return None
        if not n_best <= width <= MAX_BEAMS:
            raise InputError(f"num_beams is {width}, expected n_best, {n_best}, up to {MAX_BEAMS:,}")
        return partial(CtcBeams, self.tokenizer, width, ngrams or None, hotwords, weight)

    @property
    def has_language_model(self) -> bool:
        """True if the checkpoint's folder has a language model of its own."""
        return self.checkpoint is not None and bool(self.checkpoint.contents.names(FOLDER))

    def _sizes(self, chunk: float, stride: Any) -> tuple[int, int, int]:
        """The samples of a window, and of what it shares on the left and on the right, in whole states."""
        rate, step = self.features.sampling_rate, self.model.samples_per_state
        if not _is_number(chunk) or not 0 < chunk <= MAX_CHUNK_SECONDS:
            raise InputError(f"chunk_length_s is {chunk!r}, expected seconds, at most {MAX_CHUNK_SECONDS:g}")
        both: Any = chunk / STRIDES if stride is None else stride
        parts = tuple(both) if isinstance(both, list | tuple) else (both, both)
        if len(parts) != 2 or not all(_is_number(one) and one >= 0 for one in parts):
            raise InputError(f"stride_length_s is {stride!r}, expected seconds, or two numbers of them")
        size, left, right = (round(one * rate / step) * step for one in (chunk, *parts))
        if size <= left + right or size < self.model.count_samples(1):
            raise InputError(
                f"chunk_length_s is {chunk!r}, expected more than stride_length_s on both sides, {parts[0]:g} and "
                f"{parts[1]:g}, and at least {self.model.count_samples(1) / rate:g}"
            )
        return size, left, right

    def _hear(self, active: list[_Hearing], most: int) -> None:
        """Compute a window of each recording, those of one length together, at most `most` samples at once."""
        least = self.model.count_samples(1)
        groups: dict[int, list[tuple[_Hearing, np.ndarray]]] = {}
        for one in active:
            if one.window is not None and len(one.window) >= least:  # nothing is heard in less
                groups.setdefault(len(one.window), []).append((one, one.window))
        for size, group in groups.items():
            count = max(1, most // size)
            for k in range(0, len(group), count):
                part = group[k : k + count]
                values = np.stack([self.features(window) for _, window in part])
                for (one, _), logits in zip(part, floats(self.runner(self.model, values)), strict=True):
                    one.add(logits, self.model.samples_per_state)

    def _transcription(self, one: _Hearing, units: set[bool | str], n_best: int) -> Transcription:
        """What was heard of a recording; units: what its times are asked for."""
        alternatives = None
        if one.beams is None:
            characters = self.tokenizer.spans(np.concatenate(one.ids) if one.ids else np.zeros(0, np.int64))
        else:
            found = one.beams.finish()[:n_best]
            characters = found[0].spans
            if n_best > 1:
                alternatives = [Alternative(self.tokenizer.text(text.spans), text.score) for text in found]
        step, rate, case = self.model.samples_per_state, self.features.sampling_rate, self.tokenizer.case
        space, seconds = self.tokenizer.space, one.samples / rate
        text, words = self.tokenizer.text(characters), list(self.tokenizer.words(characters))
        phrases = [words] if False in units and words else list(_phrases(words, PAUSE * rate / step, len(space)))
        segments = [
            Segment(first.start * step / rate, last.end * step / rate, case(space.join(word.text for word in phrase)))
            for phrase in phrases
            for first, last in [(phrase[0], phrase[-1])]
        ]
        if False in units:
            segments = [Segment(0.0, seconds, text)] if text else []

        def add_times(spans: Iterable[Span], before: str = "") -> list[Word]:
            return [
                Word(span.start * step / rate, span.end * step / rate, case(before * (i > 0) + span.text))
                for i, span in enumerate(spans)
            ]

        heard = [word for phrase in phrases for word in add_times(phrase, space)] if "word" in units else None
        timed = add_times(characters) if "char" in units else None
        return Transcription(text, None, segments, heard, seconds, timed, alternatives)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _phrases(words: Iterable[Span], pause: float, space: int) -> Iterator[list[Span]]:
    """Yield words up to a pause (in states), or to the length of two lines.  space: characters between two words."""
    phrase, length = list[Span](), 0
    for word in words:
        if phrase and (word.start - phrase[-1].end >= pause or length + space + len(word.text) > MAX_PHRASE):
            yield phrase
            phrase, length = [], -space
        phrase.append(word)
        length += space + len(word.text)
    if phrase:
        yield phrase


class _Hearing:
    """A recording that is being heard, window by window."""

    def __init__(
        self,
        features: Extractor,
        sizes: tuple[int, int, int],
        search: Callable[[], CtcBeams] | None,
        recording: AudioInput,
    ):
        self.samples, self.ids = 0, list[np.ndarray]()
        self.beams = None if search is None else search()
        self.window: np.ndarray | None = None
        self._sides = 0, 0
        self._windows = windows(self._count(reader(recording, features.sampling_rate)()), *sizes)

    def _count(self, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        for block in blocks:
            self.samples += len(block)
            yield block

    def advance(self) -> None:
        """Make the next window `window`; None after the last."""
        self.window, *self._sides = next(self._windows, (None, 0, 0))

    def add(self, logits: np.ndarray, samples_per_state: int) -> None:
        """Hear the window's states that it has for itself.  logits (T, V)."""
        assert self.window is not None
        count = round(len(self.window) / samples_per_state)
        left, right = (round(side / samples_per_state) for side in self._sides)
        own = logits[left : count - right if right else None]
        if self.beams is None:
            self.ids.append(own.argmax(-1))
        else:
            self.beams.advance(own)
