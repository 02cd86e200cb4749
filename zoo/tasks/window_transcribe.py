"""WindowTranscribe: the words of a recording by a model that writes them without times (Moonshine).

Long audio is cut where it is quietest near the end of each window, and a window's text is a segment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..audio import AudioInput, reader
from ..audio.features import FILE, fill_up
from ..audio.waveform import WaveformExtractor
from ..errors import InputError, ZooError
from ..generate import GenerationConfig, generate
from ..inputs.encoder_decoder import EncoderDecoder
from ..inputs.waveform import WaveformModel
from ..pretrained import Pretrained
from ..text.tokenizer import Tokenizer
from .arguments import check_count, collect_results, result_or_error
from .base import Task, check_vocabulary
from .image_task import as_images
from .progress import Progress
from .read import complete
from .transcription import Segment, Transcription, Transcriptions

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

FILES = (FILE, "generation_config.json")
WINDOW_SECONDS = 28.0  # at most; 6.5 tokens a second of them are what Moonshine's smaller models have positions for
CUT_SECONDS = 5.0  # the last part of a window, in which it is cut
FRAME_SECONDS = 0.1  # how long it must be quiet there
TOKENS_PER_SECOND = 6.5  # at most, as in the models' own code: what is more repeats itself
MAX_TOKENS_PER_SECOND = 100.0


class WindowTranscribe(Task):
    """Recordings to their words.

    >>> transcribe = zoo.load("UsefulSensors/moonshine-base")
    >>> transcribe("speech.mp3").text
    'The weather is lovely today.'
    """

    name = "automatic-speech-recognition"
    reads = "audio"
    results = Transcriptions()
    tokenizer: Tokenizer

    def __init__(
        self,
        model: Pretrained,
        features: WaveformExtractor,
        tokenizer: Tokenizer,
        generation: GenerationConfig,
        checkpoint: Checkpoint | None = None,
    ):
        super().__init__(model, checkpoint)
        self.pair, self.features, self.tokenizer = cast(EncoderDecoder, model), features, tokenizer
        check_vocabulary(tokenizer, self.config.vocab_size)
        features.check(self.config)
        self.generation = complete(generation, self.config)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        classes = {"features": WaveformExtractor, "tokenizer": Tokenizer, "generation": GenerationConfig}
        return {name: part.from_folder(checkpoint.contents) for name, part in classes.items()}

    def extra_files(self) -> list[str]:
        return [name for name in FILES if self.checkpoint is not None and self.checkpoint.contents.has(name)]

    def __call__(
        self,
        audio: AudioInput | Iterable[AudioInput],
        *,
        timestamps: bool = True,
        word_timestamps: bool = False,
        language: str | None = None,
        translate: bool = False,
        prompt: str | None = None,
        language_model: None = None,
        num_beams: int = 1,
        vad_filter: bool = False,
        tokens_per_second: float = TOKENS_PER_SECOND,
        batch_size: int = 8,
        progress: bool | None = None,
    ) -> Any:
        """A Transcription for one recording, a list of them for several; its language is None.

        audio: a path, the bytes of a file, an open file, or an array of floats (samples,) at the checkpoint's rate
        (16,000 a second).  A segment is a window of at most 28 s, cut where it is quiet; with timestamps=False there is
        one, all of the text.  num_beams: the width of the beam search.  tokens_per_second: at most so many are written;
        for languages with a token for each letter, 13 is a good value.  batch_size: the number of recordings whose
        windows of one length are computed together.  A recording of any length takes bounded memory.

        word_timestamps, language, translate, prompt, vad_filter, language_model: of Whisper, and of models that write
        by CTC; the model hears one language and no times, and anything else is an error.
        """
        for name, value, plain in (
            ("word_timestamps", word_timestamps, False),
            ("language", language, None),
            ("translate", translate, False),
            ("prompt", prompt, None),
            ("language_model", language_model, None),
            ("vad_filter", vad_filter, False),
        ):
            if value != plain:
                raise InputError(f"{name} is {value!r}, expected {plain}: {self!r} writes what it hears, without times")
        if not isinstance(timestamps, bool):
            raise InputError(f"timestamps is {timestamps!r}, expected True or False: {self!r} hears no times of words")
        rate: Any = tokens_per_second
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= MAX_TOKENS_PER_SECOND:
            raise InputError(f"tokens_per_second is {rate!r}, expected a number up to {MAX_TOKENS_PER_SECOND:g}")
        config, batch_size = self.generation.replace(num_beams=num_beams), check_count(batch_size, "batch_size")
        given, single = as_images(audio, "audio")
        out: list[Any] = [None] * len(given)
        waiting, active = list(enumerate(given))[::-1], dict[int, _Hearing]()
        with Progress(len(given), progress, "recordings") as advance:
            while waiting or active:
                while waiting and len(active) < batch_size:
                    i, recording = waiting.pop()
                    begun = result_or_error(self._begin, recording, i, len(given), "audio")
                    if isinstance(begun, ZooError):
                        out[i] = begun
                        advance(1)
                    else:
                        active[i] = begun
                for i, one in list(active.items()):
                    step = result_or_error(_Hearing.advance, one, i, len(given), "audio")
                    if isinstance(step, ZooError) or one.window is None:
                        out[i] = step if isinstance(step, ZooError) else one.transcription(timestamps)
                        del active[i]
                        advance(1)
                self._write(list(active.values()), config, rate)
        return collect_results(out, single)

    def _begin(self, recording: AudioInput) -> _Hearing:
        rate = self.features.sampling_rate
        return _Hearing(reader(recording, rate)(), rate)

    def _write(self, active: list[_Hearing], config: GenerationConfig, rate: float) -> None:
        """Write the window of each recording, those of one length together."""
        least = cast(WaveformModel, self.pair.encoder).count_samples(1)
        groups: dict[int, list[_Hearing]] = {}
        for one in active:
            assert one.window is not None
            if len(one.window) >= least:  # nothing is heard in less
                groups.setdefault(len(one.window), []).append(one)
        decoder = self.runner.decoder(self.pair.decoder)
        for size, group in groups.items():
            most = math.ceil(size / self.features.sampling_rate * rate)
            limits = [most, self.pair.max_positions - 1, *filter(None, [config.max_new_tokens, config.max_length])]
            limited = config.replace(max_new_tokens=min(limits), max_length=None)
            values = np.stack([self.features(cast(np.ndarray, one.window)) for one in group])
            start = np.full((len(group), 1), config.decoder_start_token_id)
            seen: dict[str, Any] = self.pair.context(values)
            for one, (best,) in zip(group, generate(decoder, start, limited, **seen), strict=True):
                one.texts[-1] = self.tokenizer.decode(best.ids).strip()


class _Hearing:
    """A recording that is being heard, window by window."""

    def __init__(self, blocks: Iterator[np.ndarray], rate: int):
        self.rate, self.texts, self.ends = rate, list[str](), list[int]()  # of windows, in samples
        self.window: np.ndarray | None = None
        self._windows = quiet_windows(blocks, *(round(s * rate) for s in (WINDOW_SECONDS, CUT_SECONDS, FRAME_SECONDS)))

    def advance(self) -> None:
        """Make the next window `window`; None after the last."""
        self.window = next(self._windows, None)
        if self.window is not None:
            self.ends.append((self.ends[-1] if self.ends else 0) + len(self.window))
            self.texts.append("")

    def transcription(self, timestamps: bool) -> Transcription:
        text, ends = " ".join(filter(None, self.texts)), [end / self.rate for end in (0, *self.ends)]
        segments = [Segment(*one) for one in zip(ends, ends[1:], self.texts, strict=False) if one[2]]
        if not timestamps:
            segments = [Segment(0.0, ends[-1], text)] if text else []
        return Transcription(text, None, segments, None, ends[-1])


def quiet_windows(blocks: Iterator[np.ndarray], size: int, cut: int, frame: int) -> Iterator[np.ndarray]:
    """Yield parts of a recording of at most `size` samples, which end in the middle of the quietest `frame` samples of
    their last `cut`; the recording's last part does not.
    """
    rest = np.zeros(0, np.float32)
    while True:
        rest = fill_up(rest, blocks, size + 1)
        if len(rest) <= size:
            yield rest
            return
        powers = np.cumsum(np.append(0.0, rest[size - cut : size].astype(np.float64) ** 2))
        end = size - cut + int(np.argmin(powers[frame:] - powers[:-frame])) + frame // 2
        yield rest[:end]
        rest = rest[end:]
