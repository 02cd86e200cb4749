"""What the guards against strangers' files cost honest ones: the same code with them and without, in CPU milliseconds.

    python -m benchmarks.guards

A page of a PDF: read in its confined process, or by the same functions in this one.  An image: with and without the
checks of its headers and blocks.  Loads of checkpoints: with and without strict JSON, the checks of tokenizer files,
links and the memory that a config asks for, and safetensors' own validation; the search of weights for NaN and
infinity is in both, since it is for damaged files.  "First" is a process of its own, with its imports; the others are
repeated in one, where what was checked before is remembered by its bytes.  The least of --rounds turns counts, since
other work only adds.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tests.small_pdf import line, pdf, text

from . import checkpoints, clients, harness

STORIES = harness.ROOT / "zoo" / "data" / "stories260k"
PAGES, SIZE = 20, (595, 842)
WANTED = 1.02
# Guards that only look, by module; all of them return nothing.
CHECKS = {
    "zoo.text.tokenizer_files": ("check_charsmap", "check_pieces", "check_vocabulary"),
    "zoo.text.tokenizer_json": ("check_added", "check_part", "check_pieces", "check_vocabulary"),
    "zoo.text.special_tokens": ("check_added",),
    "zoo.weights.safetensors": ("_check_with_library",),
    "zoo.images.open": ("check_file", "check_opened"),
}


def nothing(*given: Any, **options: Any) -> None: ...


def unguarded() -> contextlib.ExitStack:
    """A context without the guards."""
    import importlib

    from zoo import ops
    from zoo.files import inside, json_file
    from zoo.images import open as images

    def parsed(data: bytes, where: object, error: Any, make: Callable[[Any], Any], *_: Any) -> Any:
        return json.loads(data, object_hook=make)

    stack, budget = contextlib.ExitStack(), importlib.import_module("zoo.ops.memory_budget")
    for name, checks in CHECKS.items():
        for check in checks:
            stack.enter_context(mock.patch.object(importlib.import_module(name), check, nothing))
    for where, name, instead in (
        (json_file, "_parsed", parsed),
        (inside, "_may_be_link", lambda path: False),
        (budget, "charge", nothing),
        (ops, "charge", nothing),
        (images, "BoundedFile", lambda data, name: io.BytesIO(data)),
    ):
        stack.enter_context(mock.patch.object(where, name, instead))
    return stack


class InProcess:
    """`zoo.guards.confined.Confined` for PDFs, without the process."""

    def __init__(self, job: Any, *first: Any, data: bytes):
        from zoo.apps.documents import pdf_job

        self._run = pdf_job.run
        self._run(*first, bytearray(data))  # type: ignore[arg-type]

    def ask(self, *request: Any, most: int, memory: int = 0) -> bytes:
        answer = self._run(*request)
        return b"".join(answer) if isinstance(answer, tuple) else answer

    def close(self) -> None: ...


def page_of_words() -> str:
    """Text and rules: 50 rows of 10 words with a line between all of them."""
    words = [text(40 + 52 * x, 800 - 15 * y, f"word{x}{y}", 9) for y in range(50) for x in range(10)]
    rules = [line(36, 796 - 15 * y, 560, 796 - 15 * y) for y in range(50)]
    return "".join([*words, *rules, *(line(36 + 52 * x, 50, 36 + 52 * x, 810) for x in range(11))])


def page(data: bytes, is_guarded: bool) -> float:
    """CPU seconds of a page, those of the confined process included."""
    from zoo.apps.documents import pdf

    with contextlib.nullcontext() if is_guarded else mock.patch.object(pdf, "Confined", InProcess):
        file = pdf.PdfFile(data, "x.pdf", dpi=144)
        file.read(1)
        process = file._process._process if is_guarded else None
        before, began = _cpu(process.pid) if process else 0.0, time.process_time()
        for number in range(1, PAGES + 1):
            file.read(number)
        spent = time.process_time() - began + (_cpu(process.pid) if process else 0.0) - before
        file.close()
    return spent / PAGES


def repeated(call: Callable[[], object], is_guarded: bool, times: int) -> float:
    with contextlib.nullcontext() if is_guarded else unguarded():
        call()
        began = time.process_time()
        for _ in range(times):
            call()
        return (time.process_time() - began) / times


FIRST = """
import json, sys, time
from benchmarks import guards
if not int(sys.argv[2]):
    guards.unguarded().__enter__()
else:
    guards.unguarded()  # imports the same
import zoo
began = time.process_time()
zoo.load(sys.argv[1]) if int(sys.argv[3]) else zoo.load_model(sys.argv[1])
print(json.dumps({"seconds": time.process_time() - began}))
"""


def first(folder: Path, is_guarded: bool, has_task: bool) -> float:
    return harness.run_python(FIRST, str(folder), str(int(is_guarded)), str(int(has_task)))["seconds"]


def rows(args: Any) -> Iterator[tuple[str, Callable[[bool], float]]]:
    from PIL import Image

    import zoo
    from zoo.images.open import open_pixels

    data = pdf([page_of_words()] * PAGES, size=SIZE)
    yield "a page of a PDF", lambda guarded: page(data, guarded)
    photo = Image.effect_noise((1600, 1200), 40).convert("RGB")
    for kind in ("JPEG", "PNG"):
        file = io.BytesIO()
        photo.save(file, kind)
        content = file.getvalue()
        yield f"an image, {kind}", lambda guarded, content=content: repeated(lambda: open_pixels(content), guarded, 5)
    minilm, bert = Path(clients.minilm()), checkpoints.random_checkpoint("bert-base", args.cache)
    for name, folder, has_task in (
        ("MiniLM", minilm, True),
        ("stories260k", STORIES, True),
        ("bert-base", bert, False),
    ):
        load = zoo.load if has_task else zoo.load_model
        yield (
            f"{name}'s load",
            lambda guarded, load=load, folder=folder: repeated(lambda: load(folder), guarded, 5),
        )
        yield (
            f"{name}'s first load",
            lambda guarded, folder=folder, has_task=has_task: first(folder, guarded, has_task),
        )


def main(argv: list[str] | None = None) -> int:
    args = harness.parser("guards", __doc__, 7).parse_args(argv)
    environment = harness.environment(harness.take_threads(args.threads))
    found = {}
    for name, call in rows(args):
        turns = [(call(True), call(False)) for _ in range(args.rounds)]
        guarded, bare = (1000 * min(side) for side in zip(*turns, strict=True))
        found[name] = {"guarded_ms": guarded, "bare_ms": bare, "ratio": guarded / bare}
        verdict = "<=" if guarded / bare <= WANTED else "MISSES"
        print(f"{name:24} {guarded:8.2f} {bare:8.2f} ms  {guarded / bare:.3f} ({verdict} {WANTED})", flush=True)
    harness.finish("guards", args, {"environment": environment, "CPU": found})
    return 0


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
