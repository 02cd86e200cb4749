"""What pyctcdecode and kenlm make of random states: tests/data/ctc_beams.json, which tests compare zoo's search with.

Run it where both are installed (they ask for NumPy 1): python -m checks.ctc_beams
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN_FILE = Path(__file__).parent.parent / "tests" / "data" / "ctc_beams.json"
LABELS = ["<pad>", "|", "A", "B", "C", "D", "E"]
PIECES = ["<pad>", "▁A", "▁B", "A", "B", "C", "▁C", "D", "▁DAB"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"ngrams": {}},
    {"ngrams": {"alpha": 1.5, "beta": 0.2, "score_boundary": False}},
    {"hotwords": ["BED", "DABA"]},
    {"ngrams": {"unk_score_offset": -2.0}, "hotwords": ["ACE"], "unigrams": ["A", "AB", "BAD", "CAB", "DAB"]},
]
WORDS = ["A", "AB", "BAD", "CAB", "DAB", "BED", "BEAD", "ACE", "FADE"]


def arpa(rng: np.random.Generator) -> str:
    """A model of up to three words, with random probabilities."""

    def number(low: float, high: float) -> str:
        return f"{rng.uniform(low, high):.4f}"

    single = ["<unk>", "<s>", "</s>", *WORDS]
    pairs = [(a, b) for a in ["<s>", *WORDS] for b in [*WORDS, "</s>"] if rng.random() < 0.4]
    triples = [(a, b, c) for a, b in pairs for c in [*WORDS, "</s>"] if (b, c) in pairs and rng.random() < 0.4]
    lines = ["\\data\\", f"ngram 1={len(single)}", f"ngram 2={len(pairs)}", f"ngram 3={len(triples)}", ""]
    lines += ["\\1-grams:", *(f"{number(-3, -0.5)}\t{one}\t{number(-0.5, 0)}" for one in single), ""]
    lines += ["\\2-grams:", *(f"{number(-2, -0.1)}\t{' '.join(two)}\t{number(-0.5, 0)}" for two in pairs), ""]
    lines += ["\\3-grams:", *(f"{number(-1, -0.1)}\t{' '.join(three)}" for three in triples), "", "\\end\\", ""]
    return "\n".join(lines)


def states(seed: int, count: int, ids: int) -> np.ndarray:
    """Logits (T, V) as a model has them: mostly sure, often of the blank, and never of a space at the end."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(count, ids)) * 2
    logits[np.arange(count), rng.integers(0, ids, count)] += 2.5
    logits[-1, :2] = [-9, -20]
    return logits.astype(np.float32)


def main() -> None:
    from pyctcdecode import build_ctcdecoder  # type: ignore[import-not-found]

    text, cases = arpa(np.random.default_rng(0)), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.arpa"
        path.write_text(text)
        for labels in (LABELS, PIECES):
            for given in OPTIONS:
                weights: dict[str, Any] = {"unk_score_offset": -10.0, "lm_score_boundary": True}
                weights |= {name.replace("score_b", "lm_score_b"): one for name, one in given.get("ngrams", {}).items()}
                weights = {"kenlm_model_path": str(path), **weights} if "ngrams" in given else {}
                decoder = build_ctcdecoder(
                    labels, unigrams=given.get("unigrams", WORDS) if weights else None, **weights
                )
                for width in (3, 100):
                    seed, count = len(cases), 5 + 3 * len(cases)
                    logits = states(seed, count, len(labels))
                    found = decoder.decode_beams(logits, beam_width=width, hotwords=given.get("hotwords"))
                    best = [(one[0], round(float(one[-1]), 6)) for one in found[:5]]
                    times = [list(map(int, frames)) for _, frames in found[0][2]]
                    cases.append({"labels": labels, "seed": seed, "count": count, "width": width, **given})
                    cases[-1] |= {"texts": best, "words": times}
    GOLDEN_FILE.write_text(
        json.dumps({"arpa": text, "words": WORDS, "cases": cases}, ensure_ascii=False, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
