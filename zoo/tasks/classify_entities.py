"""Entity classification: the types of entities that spans of a text name, the relation of two of them, or the label of
each span (LUKE, Yamada et al. 2020, https://arxiv.org/abs/2010.01057).

Shapes: B rows of a batch, E spans of a text, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import InputError, ZooError, quantity
from ..text.entity_spans import VOCABULARY, EntityMarker, EntityRow, Span
from .arguments import as_list, check_count, collect_results, result_or_error, texts_or_errors
from .base import TextTask, batches, most_characters
from .classify import best_labels, score_function
from .progress import Progress
from .results import BestLabel
from .tag import Entities, Entity

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..pretrained import Pretrained
    from ..text.tokenizer import Tokenizer

MAX_SPANS = 2048  # spans of a text, which all attend to each other


class ClassifyEntities(TextTask):
    """Texts and what they name to types of an entity, or to the relation of two, best first.

    >>> relation = zoo.load("studio-ousia/luke-large-finetuned-tacred")
    >>> relation("Beyoncé lives in Los Angeles.", spans=[(0, 7), (17, 28)], top_k=1)
    [Label(label='per:cities_of_residence', score=0.9...)]
    """

    name = "entity-classification"
    results = BestLabel()

    def __init__(
        self, model: Pretrained, tokenizer: Tokenizer, marker: EntityMarker, checkpoint: Checkpoint | None = None
    ):
        super().__init__(model, tokenizer, checkpoint)
        self.marker = marker

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        found = super().parts_of(checkpoint)
        return {**found, "marker": EntityMarker(found["tokenizer"], checkpoint.contents)}

    def extra_files(self) -> list[str]:
        return [VOCABULARY]

    @property
    def marks(self) -> int:
        """The entities of a text, which stand between marks; 0: any number, without."""
        return self.model.least_entities  # type: ignore[attr-defined]

    def __call__(
        self,
        texts: str | Iterable[str],
        spans: Any,
        *,
        top_k: int | None = None,
        function_to_apply: str | None = None,
        progress: bool | None = None,
    ) -> Any:
        """A list of Label, best first, for one text; a list of such lists for several.

        spans: the first character of each entity in the text and the one after its last, (start, end) or a list of
        these: of one entity, or of two, of which the relation is that of the first to the second.  Of several texts a
        list of such lists; also as texts, "0,7 17,28".  top_k, function_to_apply: as of `Classify`.  A text of more
        tokens than the checkpoint takes is an error: it is not cut, since a span might be cut off.
        """
        top_k = None if top_k is None else check_count(top_k, "top_k")
        score = score_function(self.config, function_to_apply)
        return self._map(texts, spans, progress, lambda _, __, logits: best_labels(self.config, score(logits), top_k))

    def _map(self, texts: Any, spans: Any, progress: Any, result: Any) -> Any:
        """result(text, its spans, its logits) of each text."""
        given, single = texts_or_errors(texts, "texts")
        every = [spans] if single else as_list(spans, "spans")
        if len(every) != len(given):
            raise InputError(
                f"{len(every)} for {quantity(len(given), 'text')}, expected a list for each", argument="spans"
            )
        known: list[Any] = [None] * len(given)

        def row_of(i: int) -> EntityRow:
            text = given[i]
            if isinstance(text, ZooError):
                raise text
            known[i] = read_spans(text, every[i], self.marks)
            return self._row(text, known[i])

        rows: list[Any] = [result_or_error(row_of, i, i, len(given), "texts") for i in range(len(given))]
        good = [i for i, row in enumerate(rows) if not isinstance(row, ZooError)]
        lengths, found = np.array([len(rows[i].ids) + len(rows[i].spans) for i in good], np.int64), list(rows)
        with Progress(len(given), progress) as advance:
            advance(len(given) - len(good))
            for index in batches(lengths, self.batch_tokens) if good else ():
                some = [good[k] for k in index]
                rows_of = [rows[i] for i in some]
                ids, arrays = self.marker.batch(rows_of, self.model.needs_spans)  # type: ignore[attr-defined]
                for i, logits in zip(some, ops.to_numpy(self.runner(self.model, ids, **arrays)), strict=True):
                    found[i] = result(given[i], known[i], logits)
                advance(len(some))
        return collect_results(found, single)

    def _row(self, text: str, spans: Sequence[Span]) -> EntityRow:
        limit = self.max_tokens
        if len(text) > (most := most_characters(limit)):
            raise InputError(f"has {len(text)} characters, expected at most {most}")
        row = self.marker.row(text, spans, self.marks)
        if len(row.ids) > limit:
            raise InputError(f"has {len(row.ids)} tokens, and the checkpoint takes at most {limit}")
        return row


class LabelSpans(ClassifyEntities):
    """Texts and spans to the label of each span: named entities among candidates.

    >>> label = zoo.load("studio-ousia/luke-large-finetuned-conll-2003")
    >>> label("Beyoncé lives in Los Angeles.", spans=[(0, 7), (8, 13), (17, 28)])[0]
    Entity(label='PER', score=0.9..., text='Beyoncé', start=0, end=7)
    """

    results = Entities()

    @property
    def marks(self) -> int:
        return 0

    def __call__(
        self,
        texts: str | Iterable[str],
        spans: Any,
        *,
        top_k: int | None = None,
        function_to_apply: str | None = None,
        progress: bool | None = None,
    ) -> Any:
        """A list of Entity for one text, in the order of its spans; a list of such lists for several.

        spans: the candidates, as of `ClassifyEntities`, any number up to 2,048: such as each run of up to five words.
        top_k: the labels of each span, best first (1).  A label such as NIL says that a span names nothing.
        """
        count, score = (
            check_count(1 if top_k is None else top_k, "top_k"),
            score_function(self.config, function_to_apply),
        )

        def entities(text: str, spans: list[Span], logits: np.ndarray) -> list[Entity]:
            rows = zip(spans, score(logits[: len(spans)]), strict=True)
            return [
                Entity(*one, text[a:b], a, b) for (a, b), row in rows for one in best_labels(self.config, row, count)
            ]

        return self._map(texts, spans, progress, entities)


def read_spans(text: str, given: Any, count: int) -> list[Span]:
    """The spans of a text, checked.  count: how many there must be; 0: any number."""
    try:
        found = np.asarray([part.split(",") for part in given.split()], np.int64) if isinstance(given, str) else given
        found = np.asarray(found)
    except ValueError:  # words, or rows of unequal length
        found = np.zeros(0)
    found = found[None] if found.shape == (2,) else found
    if found.ndim != 2 or found.shape[1:] != (2,) or found.dtype.kind not in "iu":
        raise InputError(
            f"is {given!r:.100}, expected (start, end) in characters, or a list of these", argument="spans"
        )
    pairs: list[Span] = [(start, end) for start, end in found.tolist()]
    if len(pairs) not in ((count,) if count else range(1, MAX_SPANS + 1)):
        wanted = f"{count}, as this checkpoint's class reads" if count else f"1 to {MAX_SPANS}"
        raise InputError(f"has {quantity(len(pairs), 'span')}, expected {wanted}", argument="spans")
    for start, end in pairs:
        if not 0 <= start < end <= len(text):
            problem = f"[{start}, {end}) is no part of a text of {quantity(len(text), 'character')}"
            raise InputError(problem, argument="spans")
    return pairs
