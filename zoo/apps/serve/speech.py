"""/v1/audio/transcriptions and /v1/audio/translations: a recording in, its words out, in OpenAI's forms."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from starlette.responses import PlainTextResponse, Response

from ...tasks.subtitles import to_srt, to_vtt
from .models import Models, Served
from .pages import file_of, keep_warnings
from .requests import TranscriptionRequest, TranslationRequest


async def transcribe(models: Models, one: Served, asked: TranscriptionRequest) -> dict[str, Any] | Response:
    options = {"language": asked.language, "word_timestamps": "word" in asked.granularities}
    return await _answer(one, asked, {name: value for name, value in options.items() if value})


async def translate(models: Models, one: Served, asked: TranslationRequest) -> dict[str, Any] | Response:
    return await _answer(one, asked, {"task": "translate"})


async def _answer(
    one: Served, asked: TranscriptionRequest | TranslationRequest, options: dict[str, Any]
) -> dict[str, Any] | Response:
    data = file_of(asked)
    if asked.temperature:  # 0, OpenAI's default, is the temperatures that the task tries by itself
        options["temperature"] = asked.temperature
    if asked.prompt:
        options["prompt"] = asked.prompt

    def compute() -> Generator[None, None, tuple[Any, list[str]]]:
        said = dict[str, None]()
        with keep_warnings(said):
            found = one.task(data, **options)
        yield
        return found, list(said)

    found, said = await one.worker.run(compute)
    if asked.response_format in ("srt", "vtt", "text"):
        write = {"srt": to_srt, "vtt": to_vtt, "text": lambda result: f"{result.text}\n"}[asked.response_format]
        return PlainTextResponse(write(found))
    if asked.response_format == "json":
        return {"text": found.text} | ({"warnings": said} if said else {})
    about = {"task": options.get("task", "transcribe"), "language": found.language, "duration": found.duration}
    answer: dict[str, Any] = {**about, "text": found.text}
    if "segment" in asked.granularities:
        answer["segments"] = [{"id": i, **part._asdict()} for i, part in enumerate(found.segments)]
    if found.words is not None:
        answer["words"] = [{"word": part.text.strip(), "start": part.start, "end": part.end} for part in found.words]
    return answer | ({"warnings": said} if said else {})
