"""One contender of `zoo bench`, in a process of its own: reads the job from stdin, and writes its figures as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

WORDS = ("a", "river", "runs", "past", "the", "old", "town", "where", "people", "meet", "and", "talk", "about", "news")
LENGTHS = (4, 60)  # words of a text
PICTURE = (480, 640, 3)
ROUNDS = 3  # at least
BATCH = 32  # the other libraries' usual batch


def main() -> None:
    job = json.load(sys.stdin)
    if job["threads"]:
        os.environ["OMP_NUM_THREADS"] = str(job["threads"])
    try:
        figures = measure(job)
    except Exception as e:  # whatever a library raises is the contender's result
        figures = {"error": f"{type(e).__name__}: {' '.join(str(e).split())[:500]}"}
    print(json.dumps(figures))


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The figures of a job; see `zoo.apps.bench.bench`."""
    items = inputs(job)
    began = time.perf_counter()
    library = {"sentence-transformers": _sentences, "transformers": _transformers, "llama-cpp": _llama_cpp}
    run, first = library.get(job["contender"], _zoo)(job)
    load = time.perf_counter() - began
    began = time.perf_counter()
    first(items[:1])
    figures = {"load": load, "first": time.perf_counter() - began}
    run(items)  # a graph is built and memory is taken once
    best, rounds, end = 0.0, 0, time.perf_counter() + job["seconds"]
    while rounds < ROUNDS or time.perf_counter() < end:
        began = time.perf_counter()
        done = run(items)
        best = max(best, done / (time.perf_counter() - began))
        rounds += 1
    return {**figures, "rate": best, "rounds": rounds, "memory": peak_memory()}


def inputs(job: dict[str, Any]) -> list[Any]:
    """Texts of mixed length, or pictures; the same in each process.  A generation has one, to be continued."""
    rng = np.random.default_rng(0)
    if job["images"]:
        from PIL import Image

        return [Image.fromarray(rng.integers(0, 256, PICTURE, np.uint8)) for _ in range(job["count"])]
    texts = [" ".join(rng.choice(WORDS, rng.integers(*LENGTHS))) for _ in range(job["count"])]
    return ["Once upon a time"] if job["task"] == "generate" else texts


Call = Callable[[list[Any]], int]  # runs the inputs -> the number of texts, pictures or tokens


def _as_pair(call: Call) -> tuple[Call, Call]:
    """The same for a round and for the first answer."""
    return call, call


def _zoo(job: dict[str, Any]) -> tuple[Call, Call]:
    import zoo

    if job["threads"]:
        zoo.set_num_threads(job["threads"])
    task: Any = zoo.load(job["path"], task=job["task"], device=job["device"], weights=job["weights"])
    if job["task"] == "generate":

        def tokens(texts: list[str], count: int) -> int:
            taken: list[int] = []
            config = task.generation.replace(max_new_tokens=count, do_sample=False)
            for _ in task.stream_ids(task.prompt_ids(texts[0]), config, taken=taken):
                pass
            return len(taken)

        return lambda texts: tokens(texts, job["count"]), lambda texts: tokens(texts, 1)
    if job["task"] == "fill-mask":
        mask = task.tokenizer.mask_token
        return _as_pair(lambda texts: len(task([f"{text} {mask}" for text in texts])))
    return _as_pair(lambda items: len(task(items)))


def _sentences(job: dict[str, Any]) -> tuple[Call, Call]:
    from sentence_transformers import SentenceTransformer

    _torch(job)
    model = SentenceTransformer(job["path"], device="cpu")
    return _as_pair(lambda texts: len(model.encode(texts, batch_size=BATCH)))


def _transformers(job: dict[str, Any]) -> tuple[Call, Call]:
    import transformers as package

    transformers: Any = package
    torch: Any = _torch(job)
    if job["task"] == "generate":
        tokenizer = transformers.AutoTokenizer.from_pretrained(job["path"])
        model = transformers.AutoModelForCausalLM.from_pretrained(job["path"], dtype=torch.float32)

        def tokens(texts: list[str], count: int) -> int:
            given = tokenizer(texts[0], return_tensors="pt", return_token_type_ids=False)
            out = model.generate(**given, max_new_tokens=count, do_sample=False)
            return out.shape[1] - given["input_ids"].shape[1]

        return lambda texts: tokens(texts, job["count"]), lambda texts: tokens(texts, 1)
    if job["task"] == "embed" and not job["images"]:
        tokenizer = transformers.AutoTokenizer.from_pretrained(job["path"])
        model = transformers.AutoModel.from_pretrained(job["path"])

        def vectors(texts: list[str]) -> int:
            with torch.inference_mode():
                for at in range(0, len(texts), BATCH):
                    some = tokenizer(texts[at : at + BATCH], padding=True, truncation=True, return_tensors="pt")
                    model(**some).last_hidden_state.mean(1)
            return len(texts)

        return vectors, vectors
    pipe: Any = transformers.pipeline(job["pipeline"], model=job["path"], device="cpu", batch_size=BATCH)
    if job["task"] == "fill-mask":
        mask = pipe.tokenizer.mask_token
        return _as_pair(lambda texts: len(pipe([f"{text} {mask}" for text in texts])))
    return _as_pair(lambda items: len(pipe(items)))


def _llama_cpp(job: dict[str, Any]) -> tuple[Call, Call]:
    import llama_cpp  # pyright: ignore[reportMissingImports]

    model = llama_cpp.Llama(job["path"], verbose=False, n_threads=job["threads"] or None)

    def tokens(texts: list[str], count: int) -> int:
        model.reset()
        return model(texts[0], max_tokens=count, temperature=0.0)["usage"]["completion_tokens"]

    return lambda texts: tokens(texts, job["count"]), lambda texts: tokens(texts, 1)


def _torch(job: dict[str, Any]) -> Any:
    import torch

    if job["threads"]:
        torch.set_num_threads(job["threads"])
    return torch


def peak_memory() -> int | None:
    """The most bytes of memory that this process held; None where that is not known.

    Linux counts in ru_maxrss what the process that began this one held, and not in VmHWM.
    """
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
