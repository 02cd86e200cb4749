"""FillMask: the words that a masked language model would put in place of its mask token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from .. import ops
from ..errors import InputError, UnsupportedError, ZooError
from ..nn import is_array
from ..peer_names import with_keys
from ..pretrained import Pretrained
from .arguments import as_texts, check_count, collect_results, texts_or_errors
from .base import TextTask
from .results import Lines, ResultFormat

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer
    from .protocols import MaskedLM

# So many masks are projected to the vocabulary at once: XLM-R's has 250,000 words, a megabyte for each mask.
MASKS_AT_ONCE = 64


@with_keys(sequence="text", token_str="token")
class Filled(NamedTuple):
    """A word for a mask, and the text with the word in its place."""

    text: str
    token: str
    token_id: int
    score: float  # probability


class Fillings(ResultFormat):
    """Lists of Filled, or a list of such lists for a text with several masks."""

    word: ClassVar[dict[str, Any]] = {"token": "string", "token_id": "int64", "score": "double", "text": "string"}
    columns: ClassVar[dict[str, Any]] = {"words": [[word]]}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        return {"words": [[{name: getattr(one, name) for name in self.word} for one in m] for m in _masks(result)]}

    def lines(self, result: Any) -> Lines:
        masks = _masks(result)
        numbers = [(str(i + 1),) for i in range(len(masks))] if len(masks) > 1 else [()]
        return [
            (*number, one.token, f"{one.score:.4f}", one.score)
            for number, words in zip(numbers, masks, strict=True)
            for one in words
        ]


def _masks(result: Any) -> list[list[Filled]]:
    return result if result and isinstance(result[0], list) else [result]


class FillMask(TextTask):
    """The likeliest words for each mask of a text.

    >>> fill = zoo.load("google-bert/bert-base-uncased")
    >>> fill("Paris is the [MASK] of France.", top_k=1)
    [Filled(text='paris is the capital of france.', token='capital', token_id=3007, score=0.99...)]
    """

    name = "fill-mask"
    results = Fillings()

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        if tokenizer.mask_token is None or tokenizer.mask_token_id is None:
            raise UnsupportedError(f"{tokenizer.source}: the tokenizer has no mask token, which this task fills")
        self.mask_token: str = tokenizer.mask_token
        self._backend: Any = tokenizer.backend

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        top_k: int = 5,
        targets: Iterable[str] | None = None,
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Filled, best first, for a text with one mask; for one with several, such a list for each mask.

        texts: each holds `fill.mask_token` at least once.  A text that is too long is refused, since a cut could lose
        a mask.  targets: words, each one token of the vocabulary, to choose among; scores stay those of the vocabulary.
        """
        inputs, single = texts_or_errors(texts, "texts")
        top_k = check_count(top_k, "top_k")
        among = None if targets is None else self._ids(targets)
        out: list[Any] = []
        for i, row, found in self.rows(
            inputs, None, lambda batch: self._top_ids(batch, top_k, among), truncation=False, progress=progress
        ):
            if isinstance(found, ZooError):
                out.append(found)
            elif not found:
                problem, place = f"holds no mask: write {self.mask_token!r} there", None if single else i
                out.append(InputError(problem, argument="texts", index=place))
            else:
                lists = self._fill(row, found)
                out.append(lists[0] if len(lists) == 1 else lists)
        return collect_results(out, single)

    def _top_ids(
        self, batch: Encoding, top_k: int, among: np.ndarray | None
    ) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """(ids, scores), best first, for each mask of each row."""
        at, t = np.nonzero((batch.input_ids == self.tokenizer.mask_token_id) & batch.attention_mask)
        out: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in batch.input_ids]
        if not len(at):
            return out
        model = cast("MaskedLM", self.model)
        alone = self.runner.has_weights  # else the whole model gives the words of all tokens
        found = self.call(self.base_model if alone else self.model, batch)
        x = found if is_array(found) else found.last_hidden_state if alone else found[0]
        for first in range(0, len(at), MASKS_AT_ONCE):
            some = slice(first, first + MASKS_AT_ONCE)
            states = x[at[some], t[some]]
            logits = ops.to_numpy(model.head(states) if alone else states)
            for row, z in zip(at[some], logits, strict=True):
                out[row].append(_top(z, top_k, among))
        return out

    def _fill(self, row: Any, found: list[tuple[np.ndarray, np.ndarray]]) -> list[list[Filled]]:
        ids = np.array(row.ids)
        places = np.flatnonzero(ids == self.tokenizer.mask_token_id)
        lists = []
        for place, (best, scores) in zip(places, found, strict=True):
            filled = []
            for token, score in zip(best.tolist(), scores.tolist(), strict=True):
                ids[place] = token
                # Other masks are special tokens too, and have to stay to be seen.
                text = self.tokenizer.decode(ids, skip_special_tokens=len(places) == 1)
                word = self.tokenizer.decode([token], skip_special_tokens=False)
                filled.append(Filled(text, word, token, score))
            ids[place] = self.tokenizer.mask_token_id
            lists.append(filled)
        return lists

    def _ids(self, targets: Iterable[str]) -> np.ndarray:
        words, _ = as_texts(targets, "targets")
        ids = []
        for word in words:
            index = self._backend.token_to_id(word)
            if index is None:
                parts = self._backend.encode(word, add_special_tokens=False).ids
                if len(parts) != 1 or parts[0] == self.tokenizer.unk_token_id:
                    shown = ", ".join(str(token) for token in self.tokenizer.tokens(parts))
                    raise InputError(f"targets: {word!r} is not one token of the vocabulary, but {shown or 'none'}")
                index = parts[0]
            if index >= self.config.vocab_size:
                raise InputError(f"targets: {word!r} is token {index}, past the model's {self.config.vocab_size}")
            ids.append(index)
        return np.array(list(dict.fromkeys(ids)))


def _top(logits: np.ndarray, count: int, among: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Ids and probabilities of the best, equal ones by id; logits (V,)."""
    p = np.exp(logits - logits.max())
    p /= p.sum(dtype=np.float64)
    ids = np.arange(len(p)) if among is None else among
    if count < len(ids):
        ids = ids[p[ids] >= np.partition(p[ids], -count)[-count]]
    ids = ids[np.lexsort((ids, -p[ids]))][:count]
    return ids, p[ids]
