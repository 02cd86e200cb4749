"""CPU time of a token and peak memory of each side: `python -m parity.trained.decoding SIDE FILE PROMPT`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from zoo.apps.bench.contender import peak_memory

TOKENS = 32
SECONDS_TO_WAIT = 600
Decode = Callable[[Sequence[int], int], object]  # ids of a prompt, the number of new tokens


def measure_decoding(side: str, path: Path, prompt: Sequence[int]) -> dict[str, float] | None:
    """milliseconds: of CPU for a token.  megabytes: at most, for all.  None if the side cannot be run."""
    command = [sys.executable, "-m", "parity.trained.decoding", side, str(path), json.dumps(list(prompt))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_WAIT, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return json.loads(done.stdout.splitlines()[-1])


def _zoo(path: Path, device: str) -> Decode:
    import zoo
    from zoo.generate import GenerationConfig, generate

    llm = zoo.load(str(path), device=device)
    decoder = llm.runner.decoder(llm.model)

    def decode(ids: Sequence[int], count: int) -> object:
        return generate(decoder, [list(ids)], GenerationConfig(max_new_tokens=count, do_sample=False))

    return decode


def _transformers(path: Path) -> Decode:
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()

    def decode(ids: Sequence[int], count: int) -> object:
        given = torch.tensor([list(ids)])
        mask = torch.ones_like(given)
        return model.generate(given, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False)

    return decode


def _llama_cpp(path: Path) -> Decode:
    from .llama_cpp import LlamaCpp

    model = LlamaCpp(path)
    return lambda ids, count: model.decode_all(ids, count)


SIDES: dict[str, Callable[[Path], Decode]] = {
    "zoo": lambda path: _zoo(path, "cpu"),
    "zoo on ONNX Runtime": lambda path: _zoo(path, "onnx"),
    "transformers": _transformers,
    "llama.cpp": _llama_cpp,
}


def main() -> None:
    parser = argparse.ArgumentParser("python -m parity.trained.decoding")
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("path", type=Path)
    parser.add_argument("prompt", type=json.loads)
    options = parser.parse_args()
    decode = SIDES[options.side](options.path)
    decode(options.prompt, 2)  # what is made once
    seconds = []
    for count in (1, TOKENS + 1):
        start = time.process_time()
        decode(options.prompt, count)
        seconds.append(time.process_time() - start)
    print(
        json.dumps(
            {"milliseconds": 1000 * (seconds[1] - seconds[0]) / TOKENS, "megabytes": (peak_memory() or 0) / 2**20}
        )
    )


if __name__ == "__main__":
    main()
