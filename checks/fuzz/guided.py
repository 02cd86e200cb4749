"""As `child`, but inputs that reach new code of zoo are kept and changed further, by atheris (libFuzzer for Python)."""

from __future__ import annotations

import importlib
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

atheris: Any = importlib.import_module("atheris")
_imports = atheris.instrument_imports(include=["zoo"])
_imports.__enter__()  # until the end: zoo imports much of its code at its first use

from .child import Trial  # noqa: E402


def main(name: str, seed: int, seconds: float, count: int, folder: Path) -> None:
    """count: of inputs, 0 for as many as `seconds` allow."""
    trial = Trial(name, folder)
    corpus = folder / "seeds"
    corpus.mkdir()
    for i, data in enumerate(trial.seeds):
        (corpus / str(i)).write_bytes(data)
    end = time.monotonic() + seconds

    def run_one(data: bytes) -> None:
        trial.run(data)
        if time.monotonic() > end or trial.done == count:
            trial.end()
            os._exit(0)  # libFuzzer has no way to stop

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        """As the target changes inputs; now and then as libFuzzer does, which knows the constants of comparisons."""
        rng = random.Random(seed)
        return atheris.Mutate(data, most) if rng.random() < 0.2 else trial.target.mutate(rng, data)[:most]

    # Limits of time and memory are those of `child`; every child begins with the seeds.
    options = [f"-seed={seed % 2**31 + 1}", "-max_len=1048576", "-timeout=0", "-rss_limit_mb=0", "-handle_alrm=0"]
    options += ["-len_control=0", "-verbosity=0", "-print_final_stats=0"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], run_one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
