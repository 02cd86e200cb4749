"""Sound files as blocks of samples, so that a file of any length takes bounded memory."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from ..errors import InputError
from ..optional import optional

# FFmpeg's names of the formats that are read: none of its playlists, which name other files and addresses to open.
FORMATS = "aac,ac3,aiff,amr,asf,au,avi,caf,flac,matroska,webm,mov,mp4,m4a,mp3,mpegts,ogg,w64,wav"

SoundInput = str | os.PathLike[str] | bytes | IO[bytes] | np.ndarray


def reader(source: SoundInput, rate: int) -> Callable[[], Iterator[np.ndarray]]:
    """A function that reads a sound, as `read_sound` does, from its beginning as often as it is called."""
    seek: Any = getattr(source, "seek", None)
    if hasattr(source, "read"):
        file: Any = source
        if seek is None or not getattr(file, "seekable", lambda: True)():
            source = file.read()
        else:
            begin = file.tell()
            return lambda: (seek(begin), read_sound(file, rate))[1]
    return lambda: read_sound(source, rate)


def read_sound(source: SoundInput, rate: int) -> Iterator[np.ndarray]:
    """Yield blocks of samples, float32 in -1 ... 1, of one channel at `rate` samples a second.

    source: a path, the bytes of a file, an open file, or an array (n,) of floats that has this rate already.  Files are
    read by PyAV (the extra `audio`), in the formats of FORMATS.  InputError: there is no sound in it.
    """
    if isinstance(source, np.ndarray):
        if source.ndim != 1 or source.dtype.kind != "f" or not np.isfinite(source).all():
            raise InputError(
                f"the sound has shape {source.shape} and dtype {source.dtype}, expected finite floats (samples,), of "
                f"one channel at {rate} a second"
            )
        yield source.astype(np.float32, copy=False)
        return
    av: Any = optional("av", "reading a sound file", "audio")
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else "the sound"
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    if isinstance(source, str | os.PathLike) and not os.path.isfile(source):
        raise InputError(f"{name}: there is no such file")
    try:
        opened = os.fspath(file) if isinstance(file, str | os.PathLike) else file
        with av.open(opened, options={"format_whitelist": FORMATS}) as container:
            if not container.streams.audio:
                raise InputError(f"{name} has no sound in it, expected a file such as .wav, .mp3, .flac or .m4a")
            resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
            for frame in container.decode(audio=0):
                for part in resampler.resample(frame):
                    yield part.to_ndarray().reshape(-1)
            for part in resampler.resample(None):
                yield part.to_ndarray().reshape(-1)
    except InputError:
        raise
    except (av.FFmpegError, ValueError) as e:
        why = " ".join(str(e).split())
        raise InputError(f"{name} cannot be read as a sound (.wav, .mp3, .flac, .ogg, .m4a and so on): {why}") from None
