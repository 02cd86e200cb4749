"""Prompt lookup on texts that repeat themselves, and on one that does not: tokens a second beside plain decoding.

    python -m benchmarks.speculative                           # writes benchmarks/results/speculative-<...>.json
    python -m benchmarks.speculative --clock cpu --threads 1   # on a machine with other work
    python -m benchmarks.speculative --quick --rounds 1        # a look at whether all runs

The trained stories260k, and a random Llama of 100 M parameters, whose greedy text is one token.  Both ways must
write the same tokens, or nothing is timed; but for int4 by ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import harness

TEXTS = {
    "stories260k, a text that repeats itself": "Lily: I like red. Tom: I like blue. " * 6 + "Lily:",
    "stories260k, a story": "Once upon a time",
}
# Of a Llama of 100 M parameters; its tied embeddings make a token its own likeliest successor.
SIZES = {"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12}
SIZES |= {"num_attention_heads": 12, "num_key_value_heads": 4, "max_position_embeddings": 1024}
SIZES |= {"tie_word_embeddings": True}
ENGINES = {"NumPy": (None, None), "NumPy int4": (None, "int4"), "ONNX": ("onnx", None), "ONNX int4": ("onnx", "int4")}
TOKENS = 120
TARGET = 1 / 1.5  # of the time, where a text repeats itself


def main(argv: Sequence[str] | None = None) -> int:
    args = harness.parser("speculative", __doc__, 5, quick="stories260k alone", cache=False).parse_args(argv)
    environment = harness.start(args, torch_too=False)
    import zoo
    from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM

    llm = zoo.load("stories260k")
    rows = [_row(name, llm.model, llm.prompt_ids(text)) for name, text in TEXTS.items()]
    results = harness.measure(rows, args.rounds, args.clock, 0.0, "plain")
    for name, (device, weights) in {} if args.quick else ENGINES.items():
        model: Any = LlamaForCausalLM.from_config(LlamaConfig.from_dict(SIZES), device=device, weights=weights)
        row = _row(f"100 M, {name}", model.runner.decoder(model), [1, 2, 3])
        # Its int8 products of several tokens round differently: of equally likely tokens another may be chosen.
        tolerance = float("inf") if name == "ONNX int4" else 0.0
        results += harness.measure([row], args.rounds, args.clock, tolerance, "plain")
    for one in results:
        for found in one.get("times", {}).values():
            found["tokens_per_second"] = 1e3 * TOKENS / found["median_ms"]
    print("\ntokens a second, medians")
    print(harness.by_name(results, "times", lambda found: f"{found['tokens_per_second']:.0f}"))
    print("\ntime with prompt lookup / without: median over the rounds (ratio of the minima), target")
    print(harness.by_name(results, "ratios", harness.show_ratio))
    harness.finish("speculative", args, {"environment": environment, "tokens": TOKENS, "results": results})
    return 0


def _row(name: str, model: Any, prompt: list[int]) -> harness.Row:
    import numpy as np

    from zoo.generate import GenerationConfig, generate

    def write(**options: Any) -> np.ndarray:
        return generate(model, [prompt], GenerationConfig(max_new_tokens=TOKENS, **options))[0][0].ids

    calls = {"zoo": lambda: write(prompt_lookup_num_tokens=10), "plain": write}
    return harness.Row(name, calls, {} if name.endswith("story") else {"plain": TARGET})


if __name__ == "__main__":
    raise SystemExit(main())
