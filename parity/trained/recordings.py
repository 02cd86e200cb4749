"""Recordings of public repositories with what is said in them: which they are, and their sounds.

recordings.json lists sets of one licence: files of a repository at a commit, in recordings that join some of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo.audio import read_audio
from zoo.errors import ZooError

from .material import PublicFile, read_public
from .outcome import Missing

RATE = 16000
PAUSE = np.zeros(RATE // 2, np.float32)  # between the files of a recording
LEVEL_DIFFERENCE = 5  # dB, of speech above what is behind it
Sound = np.ndarray


class Recording(NamedTuple):
    """A sound (samples,), its language's code, and what is said in it."""

    group: str
    language: str
    sound: Sound
    text: str


def read_recordings(folder: Path) -> Iterator[Recording | Missing]:
    """All recordings, and in place of a set that cannot be had, or has other bytes, why."""
    for given in json.loads(Path(__file__).with_name("recordings.json").read_text(encoding="utf-8")):
        try:
            yield from _read_set(folder, given)
        except ZooError as e:
            yield Missing(f"{given['name']} ({given['repository']})", e)


def _read_set(folder: Path, given: dict[str, Any]) -> list[Recording]:
    behind = _sound(folder, given["behind"]) if "behind" in given else None
    found = []
    for files in given["recordings"]:
        parts = [_sound(folder, {**given, **file}) for file in files]
        sound = np.concatenate([part for one in parts for part in (one, PAUSE)][:-1])
        sound = sound if behind is None else mix(sound, behind)
        found.append(Recording(given["name"], given["language"], sound, " ".join(file["text"] for file in files)))
    return found


def mix(speech: Sound, background: Sound) -> Sound:
    """The speech with the background behind it, repeated to its length, and weaker."""
    behind = np.resize(background, speech.shape)
    levels = [float(np.sqrt(np.mean(np.square(sound, dtype=np.float64)))) for sound in (speech, behind)]
    return (speech + behind * (levels[0] / levels[1] / 10 ** (LEVEL_DIFFERENCE / 20))).astype(np.float32)


def _sound(folder: Path, file: dict[str, Any]) -> Sound:
    """The sound of a file, or its part between two seconds."""
    repository, path = file["repository"], file["path"]
    name = f"speech/{repository.replace('/', '+')}/{path}"
    data = read_public(folder, PublicFile(name, repository, file["commit"], path, file["sha256"]))
    start, end = file.get("seconds", (0, None))
    sound = np.concatenate(list(read_audio(data, RATE)))
    return sound[round(start * RATE) : None if end is None else round(end * RATE)]
