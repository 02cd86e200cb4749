"""Audio files that take memory or time without end, lie, or kill their process are one error; honest ones are read."""

from __future__ import annotations

import io
import struct
import time
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av", reason="needs av, which reads audio files")
pytest.importorskip("resource", reason="needs limits, which Windows has not")

import av

from zoo.audio import read_audio, reader, reading
from zoo.errors import InputError
from zoo.guards.confined import Confined

RATE = 16000


def wav(samples: np.ndarray, rate: int = RATE) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def floats(samples: np.ndarray) -> bytes:
    """A .wav of floats."""
    data = samples.astype("<f4").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 1, RATE, 4 * RATE, 4, 32)
    return (
        struct.pack("<4sI4s", b"RIFF", 36 + len(data), b"WAVE") + form + struct.pack("<4sI", b"data", len(data)) + data
    )


def encoded(kind: str, codec: str, samples: np.ndarray, rate: int) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=kind) as out:
        stream = out.add_stream(codec, rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray((samples[None] * 32767).astype(np.int16), format="s16", layout="mono")
        frame.sample_rate = rate
        for packet in (*stream.encode(frame), *stream.encode(None)):
            out.mux(packet)
    return file.getvalue()


def in_this_process(data: bytes, rate: int) -> np.ndarray:
    resampler, parts = av.AudioResampler(format="flt", layout="mono", rate=rate), []
    with av.open(io.BytesIO(data)) as file:
        for frame in (*file.decode(audio=0), None):
            parts += [part.to_ndarray().reshape(-1) for part in resampler.resample(frame)]
    return np.concatenate(parts)


@pytest.fixture
def recording(rng):
    return rng.uniform(-0.5, 0.5, 3 * 48000).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "codec", "rate"),
    [
        ("wav", "pcm_s16le", 44100),
        ("mp3", "mp3", 44100),
        ("flac", "flac", 48000),
        ("ogg", "libopus", 48000),
        ("mp4", "aac", 44100),  # its index is at the end
        ("adts", "aac", 44100),
        ("matroska", "libopus", 48000),
        ("mpegts", "aac", 48000),
    ],
)
def test_samples_are_those_of_ffmpeg_in_this_process(kind, codec, rate, recording, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 1 << 16)
    data = encoded(kind, codec, recording, rate)
    wanted = in_this_process(data, RATE)
    path = tmp_path / f"a.{kind}"
    path.write_bytes(data)
    for source in (data, path):
        blocks = list(read_audio(source, RATE))
        assert len(blocks) > 1
        assert np.array_equal(np.concatenate(blocks), wanted)


def test_an_open_file_is_read_from_where_it_is(recording):
    data = encoded("mp4", "aac", recording, 44100)
    file = io.BytesIO(b"before" + data)
    file.seek(6)
    again = reader(file, RATE)
    for _ in range(2):
        assert np.array_equal(np.concatenate(list(again())), in_this_process(data, RATE))


def test_a_short_file_may_not_last_for_ever(monkeypatch):
    data = encoded("flac", "flac", np.zeros(RATE * 370, np.float32), RATE)
    monkeypatch.setattr(reading, "HOURS", 0.05)
    assert sum(map(len, read_audio(data, RATE))) == RATE * 370
    monkeypatch.setattr(reading, "BYTES", 500)
    says = rf"the audio: longer than 0\.1 hours, the most of a file of {len(data)} bytes"
    with pytest.raises(InputError, match=says):
        list(read_audio(data, RATE))


def test_a_recording_that_takes_too_much_memory():
    data = encoded("matroska", "pcm_s16le", np.zeros(1 << 16, np.float32), 8)  # 0.5 GB of samples in one packet
    with pytest.raises(
        InputError, match=r"the audio(: .* stopped, .*memory| cannot be read .*: Cannot allocate memory)"
    ):
        list(read_audio(data, RATE))


def test_a_recording_that_takes_too_much_time(monkeypatch, recording):
    monkeypatch.setattr(reading, "JOB", reading.JOB._replace(seconds=60, wall_seconds=0.2))

    class Slow(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            time.sleep(0.25)
            return super().read(1)

    with pytest.raises(InputError, match=r"FFmpeg is stopped, since it takes too long, more than 0\.2 s"):
        list(read_audio(Slow(wav(recording)), RATE))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_samples_that_are_no_numbers(wrong, recording):
    recording[77] = wrong
    with pytest.raises(InputError, match="the audio has samples that are infinite or not a number"):
        list(read_audio(floats(recording), RATE))


@pytest.mark.parametrize("answer", [b"abc", b"\xff" * 8])
def test_wrong_answers(answer, recording, monkeypatch):
    """A file that has taken over the process can answer what it likes."""
    monkeypatch.setattr(Confined, "ask", lambda *_, **__: answer)
    with pytest.raises(InputError, match="the audio"):
        list(read_audio(wav(recording), RATE))


def test_a_process_that_dies_on_the_way_skips_nothing(recording, monkeypatch):
    kept: list[Confined] = []
    monkeypatch.setattr(reading, "BLOCK", 1 << 12)
    monkeypatch.setattr(reading, "Confined", lambda *a, **k: kept.append(Confined(*a, **k)) or kept[-1])
    blocks = read_audio(wav(recording), RATE)
    next(blocks)
    kept[0].close()
    with pytest.raises(InputError, match="the process that read it has died"):
        next(blocks)


def test_a_file_that_cannot_be_read_on(recording):
    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match=r"the audio cannot be read: .*Input/output error"):
        list(read_audio(Broken(wav(recording)), RATE))


def test_a_reader_that_leaves_off_ends_its_process(recording, monkeypatch):
    kept: list[Confined] = []
    monkeypatch.setattr(reading, "BLOCK", 1 << 12)
    monkeypatch.setattr(reading, "Confined", lambda *a, **k: kept.append(Confined(*a, **k)) or kept[-1])
    blocks: Any = read_audio(wav(recording), RATE)
    next(blocks)
    process = kept[0]._process
    assert process is not None
    blocks.close()
    assert process.poll() is not None


@pytest.mark.parametrize(
    "text",
    ["#EXTM3U\n#EXTINF:1,\na.wav\n", "ffconcat version 1.0\nfile a.wav\n", "<MPD><BaseURL>a.wav</BaseURL></MPD>"],
)
def test_playlists_are_not_followed(text, tmp_path, recording, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.wav").write_bytes(wav(recording))
    Path("list.wav").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"list\.wav cannot be read as audio"):
        list(read_audio("list.wav", RATE))


def test_the_job_imports_nothing_of_zoo():
    source = Path(reading.__file__).with_name("audio_job.py").read_text()
    assert "zoo" not in source
    assert "from ." not in source
