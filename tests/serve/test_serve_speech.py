"""Recordings over HTTP: OpenAI's forms of transcriptions and translations, /v1/run, and the command's subtitles."""

from __future__ import annotations

import base64
import io
import wave
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.tasks.subtitles import to_srt, to_vtt

pytest.importorskip("av", reason="needs PyAV, which reads audio files")
pytest.importorskip("python_multipart", reason="needs python-multipart, of the extra serve")
PATH = "/v1/audio/transcriptions"
GREEDY = {"language": "en", "temperature": 0.0001}


def sound() -> bytes:
    samples = 0.3 * np.sin(np.arange(24000) ** 1.2 / 40)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1), out.setsampwidth(2), out.setframerate(16000)
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("whisper-base", tmp_path_factory.mktemp("speech") / "whisper")


@pytest.fixture(scope="module")
def client(folder) -> Any:
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx, for Starlette's test client")
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    models = Models([str(folder), "stories260k"])
    models.load()
    yield testclient.TestClient(application(models))
    models.stop()


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    return build("wav2vec2-base-960h", tmp_path_factory.mktemp("characters") / "wav2vec2")


def test_a_model_of_characters(spoken):
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx, for Starlette's test client")
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    wanted = zoo.load(spoken)(sound(), word_timestamps=True)
    models = Models([str(spoken)])
    models.load()
    try:
        client, file = testclient.TestClient(application(models)), {"file": ("a.wav", sound(), "audio/wav")}
        assert client.post(PATH, files=file, data={"model": "wav2vec2"}).json() == {"text": wanted.text}
        asked = {"model": "wav2vec2", "response_format": "verbose_json", "timestamp_granularities[]": "word"}
        found = client.post(PATH, files=file, data=asked).json()
        assert found["duration"] == 1.5
        assert [one["word"] for one in found["words"]] == [one.text.strip() for one in wanted.words]
        asked = {"inputs": base64.b64encode(sound()).decode(), "parameters": {"timestamps": "char"}}
        found = client.post("/v1/run", json={"model": "wav2vec2", **asked}).json()["data"]
        assert "".join(one["text"] for one in found["characters"]).strip() == wanted.text
        for fields, says in (
            ({"language": "en"}, "language is 'en', expected None"),
            ({"temperature": "0.5"}, "temperature"),
        ):
            answer = client.post(PATH, files=file, data={"model": "wav2vec2", **fields})
            assert (answer.status_code, says in answer.text) == (400, True)
        answer = client.post("/v1/audio/translations", files=file, data={"model": "wav2vec2"})
        assert (answer.status_code, "task" in answer.text) == (400, True)
    finally:
        models.stop()


def test_every_form_of_a_transcription(client, folder):
    wanted = zoo.load(folder)(sound(), language="en", word_timestamps=True, temperature=0.0001)
    file = {"file": ("a.wav", sound(), "audio/wav")}

    def ask(**fields: Any) -> Any:
        answer = client.post(PATH, files=file, data={**GREEDY, "model": "whisper", **fields})
        assert answer.status_code == 200, answer.text
        return answer

    assert ask().json() == {"text": wanted.text}
    assert ask(response_format="text").text == f"{wanted.text}\n"
    for kind, write in (("srt", to_srt), ("vtt", to_vtt)):
        answer = ask(response_format=kind)
        assert answer.text == write(wanted._replace(words=None))
        assert answer.headers["content-type"].startswith("text/plain")
    assert ask(response_format="vtt", **{"timestamp_granularities[]": "word"}).text == to_vtt(wanted)
    found = ask(response_format="verbose_json").json()
    segments = [{"id": i, **one._asdict()} for i, one in enumerate(wanted.segments)]
    about = {"task": "transcribe", "language": "en", "duration": 1.5, "text": wanted.text}
    assert found == {**about, "segments": segments}
    words = [{"word": one.text.strip(), "start": one.start, "end": one.end} for one in wanted.words]
    found = ask(response_format="verbose_json", **{"timestamp_granularities[]": "word"}).json()
    assert found == {**about, "words": words}
    found = ask(response_format="verbose_json", **{"timestamp_granularities[]": ["word", "segment"]}).json()
    assert found == {**about, "segments": segments, "words": words}


def test_json_and_bodies(client, folder):
    wanted = zoo.load(folder)(sound(), language="en", temperature=0.0001)
    asked = {"file": base64.b64encode(sound()).decode(), **GREEDY}
    assert client.post(PATH, json=asked).json() == {"text": wanted.text}  # the only model of this kind
    query = "?language=en&temperature=0.0001"
    answer = client.post(PATH + query, content=sound(), headers={"content-type": "audio/wav"})
    assert answer.json() == {"text": wanted.text}
    english = zoo.load(folder)(sound(), task="translate", temperature=0.0001)
    asked = {"file": asked["file"], "temperature": 0.0001, "response_format": "verbose_json"}
    found = client.post("/v1/audio/translations", json=asked).json()
    assert (found["task"], found["text"]) == ("translate", english.text)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"language": "fr"}, "language is 'fr', expected its English name or one of en, de"),
        ({"response_format": "ass"}, "response_format"),
        ({"stream": "true"}, "stream: not implemented"),
        ({"prompt": "<mask>"}, "prompt has the special token <mask>"),
        ({"temperature": "200"}, "temperature is"),
        ({"include[]": "logprobs"}, "include: logprobs is not here"),
        ({"chunking_strategy": "server_vad"}, "chunking_strategy"),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities: they are for response_format"),
        ({"timestamp_granularities[]": "char", "response_format": "verbose_json"}, "timestamp_granularities"),
        (
            {"model": "stories260k"},
            "this path needs one for automatic-speech-recognition",
        ),
        ({"hotwords": "bear"}, "there is no field 'hotwords'"),
    ],
)
def test_requests_that_are_refused(client, fields, says):
    answer = client.post(PATH, files={"file": ("a.wav", sound())}, data=fields)
    assert (answer.status_code, says in answer.json()["error"]["message"]) == (400, True), answer.text


def test_no_recording(client):
    for data, says in ((b"no audio", "cannot be read as audio"), (b"", "cannot be read as audio")):
        answer = client.post(PATH, files={"file": ("a.wav", data)})
        assert (answer.status_code, says in answer.json()["error"]["message"]) == (400, True), answer.text
    answer = client.post("/v1/audio/translations", files={"file": ("a.wav", sound())}, data={"language": "de"})
    assert "there is no field 'language'" in answer.json()["error"]["message"]


def test_the_example_of_the_docs_is_answered(client):
    paths = client.get("/openapi.json").json()["paths"]
    for path in (PATH, "/v1/audio/translations"):
        asked = paths[path]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert client.post(path, json=asked).status_code == 200


def test_words_through_run(client, folder):
    wanted = zoo.load(folder)(sound(), language="en", word_timestamps=True)
    for asked in ({"return_timestamps": "word"}, {"word_timestamps": True}):
        body = {"model": "whisper", "inputs": base64.b64encode(sound()).decode()}
        found = client.post("/v1/run", json={**body, "parameters": {"language": "en", **asked}}).json()["data"]
        assert found["words"] == [one._asdict() for one in wanted.words]
    answer = client.post("/v1/run", json={**body, "parameters": {"return_timestamps": "char"}})
    assert "expected True, False or 'word'" in answer.json()["error"]["message"]


def test_subtitles_on_the_command_line(folder, tmp_path, capsys):
    from zoo.apps.cli import main

    (tmp_path / "a.wav").write_bytes(sound())
    wanted = zoo.load(folder)(tmp_path / "a.wav", language="en", word_timestamps=True)
    for options, text in (
        (["--format", "srt"], to_srt(wanted)),
        (["--format", "vtt", "--word-timestamps"], to_vtt(wanted)),
    ):
        assert main(["run", str(folder), str(tmp_path / "a.wav"), "--language", "en", *options]) == 0
        assert capsys.readouterr().out == text
    english = zoo.load(folder)(tmp_path / "a.wav", translate=True)
    assert main(["run", str(folder), str(tmp_path / "a.wav"), "--translate", "--format", "srt"]) == 0
    assert capsys.readouterr().out == to_srt(english)
    for options, says in (
        (["--format", "srt", "--json"], "--format and --json exclude each other"),
        ([str(tmp_path / "a.wav"), "--format", "srt"], "--format needs exactly one INPUT"),
    ):
        with pytest.raises(SystemExit):
            main(["run", str(folder), str(tmp_path / "a.wav"), *options])
        assert says in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "stories260k", "Once", "--format", "srt"])
    assert "--format srt is for automatic-speech-recognition, and the task is generate" in capsys.readouterr().err
