"""The loss of quality when weights are rounded, by any two models of one class.

The measures: for logits the divergence of Kullback and Leibler and how often both choose the same, for states the
cosine, for boxes their overlap (IoU), for written texts the rate of other characters, for a decoder the perplexity of a
text, for a sentence encoder (`ranking`) how well it ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.nn import an_array, map_leaves
from zoo.ops import to_numpy
from zoo.quant import QuantTensor

from .compare import drop_hidden, has_tokens
from .inputs import Given
from .stages import place
from .taps import outputs
from .texts import Batch
from .writing import continues, has_encoder, write_texts

# Read by a decoder, in words that small models know too.  Ours, under the licence of zoo.
STORY = """Once upon a time, there was a little girl named Lily. She had a small dog, and the dog was called Max. \
One day, Lily and Max went to the park. The sun was warm and the birds sang in the trees. Max saw a red ball and ran \
after it. He ran so fast that he did not see the water. Splash! Max was wet, and he was very sad. Lily laughed and \
said, "Do not be sad, Max. The sun will make you dry." They sat down on the grass. A boy came and said, "Is this your \
ball?" Lily said, "No, but my dog likes it. Can we play with you?" The boy smiled. They all played with the ball until \
it was time to go home. That night, Lily told her mom about the new friend. Her mom gave her a big hug."""
EXACT_TOLERANCE = 1e-5  # against the same product in float32, relative to its largest number

_SUBJECTS = "The old man|A young engineer|My sister|The committee|Our neighbour|A small company|The teacher|This singer"
_SUBJECTS += "|The river guide|A tired traveller"
_VERBS = "walked slowly past|could not find|finally explained|painted|was disappointed by|invested in|sorted"
_VERBS += "|photographed|forgot about|wrote a letter about"
_OBJECTS = "the wooden bridge|a broken clock|the quarterly results|seven different cheeses|quantum field theory"
_OBJECTS += "|the museum's oldest map|an open source library|the night train to Vienna|her first marathon"
_OBJECTS += "|the price of copper"
SUBJECTS, VERBS, OBJECTS = (some.split("|") for some in (_SUBJECTS, _VERBS, _OBJECTS))


class Measure(NamedTuple):
    """A figure, and over how many rows, tokens or boxes it is taken."""

    name: str
    value: float
    number: int


class Limit(NamedTuple):
    """The limit of a figure on real weights: a least or a largest value."""

    name: str
    value: float
    is_most: bool

    def holds(self, found: float) -> bool:
        return found <= self.value if self.is_most else found >= self.value


# What rounding may cost: on the real weights that were measured (docs/quantised.md) about half of it.
_INT8_INT4 = {
    "KL of logits": (0.01, 0.25),
    "top-1 agreement": (0.95, 0.65),
    "perplexity / float32's": (1.01, 1.25),
    "cosine, mean": (0.998, 0.94),
    "IoU of boxes": (0.98, 0.9),
    "nDCG@10 / float32's": (0.99, 0.96),
}
_UPPER_LIMITS = ("KL of logits", "perplexity / float32's")
LIMITS = {
    choice: tuple(Limit(name, values[i], name in _UPPER_LIMITS) for name, values in _INT8_INT4.items())
    for i, choice in enumerate(("int8", "int4"))
}


def broken_limits(found: Sequence[Measure], limits: Sequence[Limit]) -> list[str]:
    """A message for each figure that is beyond its limit, as NaN always is."""
    by_name = {limit.name: limit for limit in limits}
    wrong = [m for m in found if m.name in by_name and not by_name[m.name].holds(m.value)]
    return [
        f"{m.name} is {m.value:.4g}, at {'most' if by_name[m.name].is_most else 'least'} {by_name[m.name].value:g}"
        for m in wrong
    ]


def dequantise_model(model: Any) -> Any:
    """The model with its rounded weights as float32, or as the dtype that they are widened to."""

    def widen(matrix: QuantTensor) -> Any:
        if isinstance(matrix.parts[0].arrays[0], np.ndarray):
            return matrix.dequantise()
        import torch

        from zoo.ops.on_torch.quantised import dequantise

        return torch.cat([dequantise(part, matrix.dtype) for part in matrix.parts])

    return map_leaves(lambda array: array, model, quantised=widen)


def arithmetic(model: Any, given: Given) -> Measure:
    """The largest error of the products with packed weights, of all outputs, as a part of the largest value."""
    wide, worst, count = dequantise_model(model), 0.0, 0
    for batch in given.batches:
        wanted = _outputs(wide, batch)
        for name, found in _outputs(model, batch).items():
            found, exact = drop_hidden(found, wanted[name])
            largest, error = (float(np.abs(x).max(initial=0)) for x in (exact, found - exact))
            worst = max(worst, error / largest if largest else math.inf * error if error else 0.0)
            count += found.size
    return Measure("error of arithmetic", worst, count)


def quality(wide: Any, rounded: Any, given: Given) -> list[Measure]:
    """The distance of `rounded` from `wide`, on the same inputs."""
    sums: dict[str, list[np.ndarray]] = {}
    for batch in given.batches:
        wanted, found = _outputs(wide, batch), _outputs(rounded, batch)
        seen = batch.arrays.get("attention_mask")
        for name, a in wanted.items():
            if name not in found:  # a pooler, which a GGUF file of an encoder does not have
                continue
            for key, values in _measure(name, a, found[name], seen):
                sums.setdefault(key, []).append(values)
    table = []
    for key, parts in sums.items():
        every = np.concatenate(parts)
        table.append(Measure(key, float(every.mean()), every.size))
        if key == "cosine, mean":
            table.append(Measure("cosine, least", float(every.min()), every.size))
    if continues(wide) and given.tokenizer is not None:
        ids = given.tokenizer.encode_batch([STORY], max_length=wide.max_positions, truncation=True).rows[0].ids
        of_wide, of_rounded = _perplexity(wide, ids), _perplexity(rounded, ids)
        table.append(Measure("perplexity, float32", of_wide, len(ids) - 1))
        table.append(Measure("perplexity", of_rounded, len(ids) - 1))
        table.append(Measure("perplexity / float32's", of_rounded / of_wide, len(ids) - 1))
    return table + _characters(wide, rounded, given)


def ranking(wide: Callable[[list[str]], np.ndarray], rounded: Callable[[list[str]], np.ndarray]) -> list[Measure]:
    """Compare two sentence encoders: cosines on 1,000 texts, and the order in which 100 queries rank them.

    A text is worth 3 to a query that says the same of somebody, and 1 where only the deed or the thing is the same.
    """
    texts = [f"{who} {did} {what}." for who, did, what in itertools.product(SUBJECTS, VERBS, OBJECTS)]
    asked = list(itertools.product(range(len(VERBS)), range(len(OBJECTS))))
    queries = [f"Somebody {VERBS[i]} {OBJECTS[j]}" for i, j in asked]
    worth = np.array([[_worth(i, j, t) for t in range(len(texts))] for i, j in asked])
    vectors = [model(texts) for model in (wide, rounded)]
    scores = [_ndcg(model(queries) @ found.T, worth) for model, found in zip((wide, rounded), vectors, strict=True)]
    cosines = _cosine(*vectors)
    return [
        Measure("cosine, mean", float(cosines.mean()), len(texts)),
        Measure("cosine, least", float(cosines.min()), len(texts)),
        Measure("nDCG@10, float32", scores[0], len(queries)),
        Measure("nDCG@10", scores[1], len(queries)),
        Measure("nDCG@10 / float32's", scores[1] / scores[0], len(queries)),
    ]


def _worth(did: int, what: int, text: int) -> int:
    same_deed, same_thing = text // len(OBJECTS) % len(VERBS) == did, text % len(OBJECTS) == what
    return 3 if same_deed and same_thing else int(same_deed or same_thing)


def _ndcg(scores: np.ndarray, worth: np.ndarray) -> float:
    """Discounted cumulative gain (Jarvelin and Kekalainen 2002) of the first ten, as a part of the best there is."""
    discount = 1 / np.log2(np.arange(2, 12))
    first = np.argsort(-scores, 1, kind="stable")[:, :10]
    found = (np.take_along_axis(worth, first, 1) * discount).sum(1)
    return float((found / (np.sort(worth, 1)[:, ::-1][:, :10] * discount).sum(1)).mean())


def _outputs(model: Any, batch: Batch) -> dict[str, np.ndarray]:
    arrays = place(batch.arrays, an_array(model))
    return outputs(model, model(**arrays, **dict.fromkeys(batch.switches, True)))


def _measure(name: str, a: np.ndarray, b: np.ndarray, seen: Any) -> Iterator[tuple[str, np.ndarray]]:
    """(measure, its values) of one output of both."""
    if "boxes" in name:
        yield "IoU of boxes", _overlap(a.reshape(-1, 4), b.reshape(-1, 4))
        return
    is_masked = a.ndim > 2 and has_tokens(name, a, seen)
    rows = np.asarray(seen, bool) if is_masked else np.ones(a.shape[:-1], bool)
    x, y = (np.asarray(v, np.float64)[rows] for v in (a, b))
    if "logits" in name and a.shape[-1] > 1:
        p, q = drop_hidden(_log_softmax(x), _log_softmax(y))
        yield "KL of logits", np.maximum((np.exp(p) * (p - q)).sum(-1), 0)
        yield "top-1 agreement", (x.argmax(-1) == y.argmax(-1)).astype(float)
    elif a.shape[-1] > 1:
        yield "cosine, mean", _cosine(x, y)


def _log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.asarray((a * b).sum(-1) / np.maximum(lengths, 1e-30)).reshape(-1)


def _overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes (N, 4) as centre and size."""
    low, high = (np.stack([x[:, :2] + sign * x[:, 2:] / 2 for x in (a, b)]) for sign in (-1, 1))
    common = np.maximum(high.min(0) - low.max(0), 0).prod(1)
    return common / np.maximum(a[:, 2:].prod(1) + b[:, 2:].prod(1) - common, 1e-30)


def _perplexity(model: Any, ids: Sequence[int]) -> float:
    """`zoo.generate.perplexity`, by one call: beside a cache graphs give no logits of all tokens."""
    logprobs = _log_softmax(np.asarray(to_numpy(model(np.array([ids[:-1]], np.int64)))[0], np.float64))
    return math.exp(-float(logprobs[np.arange(len(ids) - 1), ids[1:]].mean()))


def _characters(wide: Any, rounded: Any, given: Given) -> list[Measure]:
    """The character errors of texts that decoders write from an encoder's hidden states."""
    if not has_encoder(wide) or given.tokenizer is None:
        return []
    pairs = zip(*(write_texts(model, given.batches, given.tokenizer) for model in (wide, rounded)), strict=True)
    texts = [(a, b) for one, other in pairs for a, b in zip(one.texts, other.texts, strict=True)]
    letters = sum(len(a) for a, _ in texts)
    return [Measure("characters that differ", sum(_edits(a, b) for a, b in texts) / max(1, letters), letters)]


def _edits(a: str, b: str) -> int:
    """Letters put in, left out or changed, at the least (Levenshtein 1966)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
