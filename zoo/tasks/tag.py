"""Tag: labels of tokens, gathered into spans of the text: names, places, parts of speech."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict, cast, overload

import numpy as np

from .. import ops
from ..errors import ZooError, check_choice
from ..peer_names import with_keys
from ..pretrained import Pretrained
from .arguments import collect_results, texts_or_errors
from .base import TextTask, softmax
from .results import LABEL, Lines, ResultFormat

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer

AGGREGATIONS = ("none", "simple", "first", "average", "max")


@with_keys(entity_group="label", entity="label", word="text")
class Entity(NamedTuple):
    """A span of the text that was passed: text[start:end]."""

    label: str
    score: float
    text: str
    start: int
    end: int


class Piece(NamedTuple):
    """A token, or a word made of several."""

    scores: np.ndarray  # (C,)
    start: int
    end: int
    begins_word: bool


class Entities(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {"entities": [{**LABEL, "text": "string", "start": "int64", "end": "int64"}]}

    def lines(self, result: list[Entity]) -> Lines:
        return [(x.label, f"{x.score:.4f}", f"{x.start}-{x.end}", x.text) for x in result]


class TagOptions(TypedDict, total=False):
    """Options of `Tag`, which explains them."""

    aggregation: str
    ignore: Iterable[str]
    progress: bool | None


class Tag(TextTask):
    """The entities of a text.

    >>> tag = zoo.load("dslim/bert-base-NER")
    >>> tag("My name is Wolfgang and I live in Berlin.")
    [Entity(label='PER', score=0.99..., text='Wolfgang', start=11, end=19), Entity(label='LOC', ...)]
    """

    name = "tag"
    results = Entities()

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        backend: Any = tokenizer.backend
        # WordPiece knows words.  Elsewhere a word is what has a space before it: transformers' rule.
        self.knows_words = bool(getattr(backend.model, "continuing_subword_prefix", None))

    @overload
    def __call__(self, texts: str, **options: Unpack[TagOptions]) -> list[Entity]: ...
    @overload
    def __call__(self, texts: Iterable[str], **options: Unpack[TagOptions]) -> list[list[Entity]]: ...
    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        aggregation: str = "simple",
        ignore: Iterable[str] = ("O",),
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Entity in the order of the text, for one text; a list of such lists for several.

        aggregation, as in transformers:
        - "none": each token by itself, with the label as the checkpoint has it ("B-PER").
        - "simple": neighbours of one kind are one entity, of which a B- begins a new one; its score is their mean.
        - "first", "average", "max": the same, but first all tokens of a word get one label: that of the first, that of
          the mean of their scores, that of the surest token.
        ignore: labels that are left out.

        A text of more than `tag.max_tokens` tokens is read through windows that overlap by a quarter; each token is
        judged where more of its surroundings are seen.
        """
        inputs, single = texts_or_errors(texts, "texts")
        check_choice(aggregation, "aggregation", AGGREGATIONS)
        left_out = frozenset([ignore] if isinstance(ignore, str) else ignore)
        stride = (self.max_tokens - self.tokenizer.special_tokens_to_add()) // 4
        windows: list[list[list[Piece]]] = [[] for _ in inputs]
        for i, row, scores in self.rows(inputs, None, self._scores, overflow=True, stride=stride, progress=progress):
            if isinstance(scores, ZooError):
                inputs[i] = scores
            else:
                windows[i].append(self._pieces(cast(str, inputs[i]), row, scores))
        out: list[Any] = []
        for text, parts in zip(inputs, windows, strict=True):
            if isinstance(text, ZooError):
                out.append(text)
            else:
                entities = self._entities(text, _stitch(parts, stride), aggregation)
                out.append([entity for entity in entities if entity.label not in left_out])
        return collect_results(out, single)

    def _scores(self, batch: Encoding) -> list[np.ndarray]:
        """(T, C) for each row, without padding."""
        scores = softmax(ops.to_numpy(self.call(self.model, batch)))
        return [s[mask] for s, mask in zip(scores, batch.attention_mask, strict=True)]

    def _pieces(self, text: str, row: Any, scores: np.ndarray) -> list[Piece]:
        """The tokens of a row that are not special."""
        ids, words, pieces = row.ids, row.word_ids, []
        last = None
        for k, (special, (start, end)) in enumerate(zip(row.special_tokens_mask, row.offsets, strict=True)):
            if special:
                continue
            if ids[k] == self.tokenizer.unk_token_id:
                begins = True
            elif self.knows_words:
                begins = words[k] != last
            else:
                begins = start == 0 or " " in text[start - 1 : start + 1]
            last = words[k]
            pieces.append(Piece(scores[k], start, end, begins))
        return pieces

    def _entities(self, text: str, pieces: list[Piece], aggregation: str) -> Iterator[Entity]:
        if aggregation in ("first", "average", "max"):
            pieces = [_merge(word, aggregation) for word in _words(pieces)]
        names = [self.config.id2label[int(p.scores.argmax())] for p in pieces]
        groups: list[list[int]] = []
        for k, name in enumerate(names):
            begins, kind = _parts(name)
            if aggregation != "none" and groups and not begins and kind == _parts(names[groups[-1][-1]])[1]:
                groups[-1].append(k)
            else:
                groups.append([k])
        for group in groups:
            first, last = pieces[group[0]], pieces[group[-1]]
            label = names[group[0]] if aggregation == "none" else _parts(names[group[0]])[1]
            score = float(np.mean([pieces[k].scores.max() for k in group]))
            yield Entity(label, score, text[first.start : last.end], first.start, last.end)


def _parts(name: str) -> tuple[bool, str]:
    """True if a label begins an entity, and the entity's kind.  A label without a prefix continues one."""
    return name.startswith("B-"), name[2:] if name.startswith(("B-", "I-")) else name


def _words(pieces: list[Piece]) -> list[list[Piece]]:
    words: list[list[Piece]] = []
    for piece in pieces:
        if piece.begins_word or not words:
            words.append([])
        words[-1].append(piece)
    return words


def _merge(word: list[Piece], aggregation: str) -> Piece:
    if aggregation == "first":
        scores = word[0].scores
    elif aggregation == "max":
        scores = max(word, key=lambda piece: piece.scores.max()).scores
    else:
        scores = np.mean([piece.scores for piece in word], axis=0)
    return Piece(scores, word[0].start, word[-1].end, True)


def _stitch(windows: list[list[Piece]], stride: int) -> list[Piece]:
    """Windows that share `stride` tokens with the next, as one: each takes its half of what is shared."""
    windows = sorted(windows, key=lambda pieces: [p.end for p in pieces[-1:]])
    out = list(windows[0])
    for pieces in windows[1:]:
        shared = min(stride, len(pieces), len(out))
        half = shared // 2
        # What begins a word is known where the word before it is seen.
        kept = [
            p._replace(begins_word=q.begins_word)
            for p, q in zip(pieces[:shared], out[len(out) - shared :], strict=True)
        ]
        out = out[: len(out) - half] + (kept + pieces[shared:])[shared - half :]
    return out
