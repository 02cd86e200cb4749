"""Audio files as blocks of samples, so that a file of any length takes bounded memory.

FFmpeg decodes each file in a confined process of its own (`audio_job`), which asks for its bytes part by part.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import InputError
from ..guards.confined import Confined, FailedError, Job, StoppedError
from ..optional import import_optional

# FFmpeg's names of the formats that are read: none of its playlists, which name other files and addresses to open.
FORMATS = "aac,ac3,aiff,amr,asf,au,avi,caf,flac,matroska,webm,mov,mp4,m4a,mp3,mpegts,ogg,w64,wav"
# The ends of files' names that are those of recordings.
SUFFIXES = (".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a", ".aac", ".aiff", ".amr", ".wma", ".mp4", ".mkv", ".webm")
BLOCK = 1 << 20  # bytes of samples
HOURS, BYTES, MAX_HOURS = 1, 20, 100  # a recording may last HOURS plus a second for each BYTES, at most MAX_HOURS

JOB = Job(
    Path(__file__).with_name("audio_job.py"),
    "run",
    "reading audio files",
    packages=("av",),
    extra="audio",
    wall_seconds=30.0,
    prestart=True,
)

# A dictionary as the package datasets has it: {"array": samples, "sampling_rate": 16000}.
AudioInput = str | os.PathLike[str] | bytes | IO[bytes] | np.ndarray | Mapping[str, Any]


def reader(source: AudioInput, rate: int) -> Callable[[], Iterator[np.ndarray]]:
    """A function that reads a recording, as `read_audio` does, from its beginning as often as it is called."""
    seek: Any = getattr(source, "seek", None)
    if hasattr(source, "read"):
        file: Any = source
        if seek is None or not getattr(file, "seekable", lambda: True)():
            source = file.read()
        else:
            begin = file.tell()
            return lambda: (seek(begin), read_audio(file, rate))[1]
    return lambda: read_audio(source, rate)


def read_audio(source: AudioInput, rate: int) -> Iterator[np.ndarray]:
    """Yield blocks of samples, float32 in -1 ... 1, of one channel at `rate` samples a second.

    source: a path, the bytes of a file, an open file that can seek, or an array (n,) of floats that has this rate
    already, alone or in a dictionary with its sampling_rate.  Files are read by PyAV (the extra `audio`), in the
    formats of FORMATS.  InputError: it is no audio.
    """
    if isinstance(source, Mapping):
        source = _samples_of(source, rate)
    if isinstance(source, np.ndarray):
        if source.ndim != 1 or source.dtype.kind != "f" or not np.isfinite(source).all():
            raise InputError(
                f"the audio has shape {source.shape} and dtype {source.dtype}, expected finite floats (samples,), of "
                f"one channel at {rate} a second"
            )
        for at in range(0, len(source), BLOCK // 4):
            yield source[at : at + BLOCK // 4].astype(np.float32, copy=False)
        return
    if not isinstance(source, str | os.PathLike | bytes) and not all(
        hasattr(source, name) for name in ("read", "seek", "tell")
    ):
        raise InputError(
            f"the audio is {type(source).__name__}, expected a path, bytes, an open file or an array of floats"
        )
    import_optional("av", "reading an audio file", "audio")
    if not isinstance(source, str | os.PathLike):
        yield from _decode(io.BytesIO(source) if isinstance(source, bytes) else source, "the audio", rate)
        return
    name = os.fspath(source)
    if not os.path.isfile(name):
        raise InputError(f"{name}: there is no such file")
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as e:
        raise InputError(f"{name} cannot be read: {e.strerror}") from None
    with file:
        yield from _decode(file, name, rate)


def _samples_of(given: Mapping[str, Any], rate: int) -> np.ndarray:
    """The samples of {"array" or "raw": samples, "sampling_rate": rate}; InputError for another rate."""
    samples = given.get("array", given.get("raw"))
    if samples is None:
        raise InputError(f"the audio has the keys {', '.join(map(str, given))}, expected array and sampling_rate")
    if given.get("sampling_rate", rate) != rate:
        raise InputError(
            f"the audio has sampling_rate {given['sampling_rate']}, expected {rate}: resample it, or give the file"
        )
    return np.asarray(samples)


def _decode(file: IO[bytes], name: str, rate: int) -> Iterator[np.ndarray]:
    begin, count = file.tell(), 0

    def fetch(offset: int, most: int) -> bytes:
        try:
            file.seek(begin + offset)
            return file.read(most)
        except (OSError, OverflowError) as e:
            raise InputError(f"{name} cannot be read: {e}") from None

    size = file.seek(0, io.SEEK_END) - begin
    hours = min(HOURS + size / BYTES / 3600, MAX_HOURS)
    process = Confined(JOB, "open", f"recording{Path(name).suffix}", size, FORMATS, rate, BLOCK, fetch=fetch)
    try:
        while answer := process.ask("next", count, most=BLOCK):
            count += len(answer)
            if count > 4 * rate * 3600 * hours:
                raise InputError(f"{name}: longer than {hours:.1f} hours, the most of a file of {size} bytes")
            if len(answer) % 4:
                raise InputError(f"{name}: damaged: the process that reads it gives a wrong answer")
            samples = np.frombuffer(answer, np.float32)
            if not np.isfinite(samples).all():
                raise InputError(f"{name}: the audio has samples that are infinite or not a number")
            yield samples
    except FailedError as e:
        if e.kind == "LookupError":
            raise InputError(f"{name} has no audio in it, expected a file such as .wav, .mp3, .flac or .m4a") from None
        raise InputError(f"{name} cannot be read as audio (.wav, .mp3, .flac, .ogg, .m4a and so on): {e.why}") from None
    except StoppedError as e:
        raise InputError(f"{name}: damaged or hostile: FFmpeg is stopped, since {e}") from None
    finally:
        process.close()
