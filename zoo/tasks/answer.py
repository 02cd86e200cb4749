"""Answer: the passage of a context that answers a question (extractive question answering)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict, overload

import numpy as np

from .. import ops
from ..errors import InputError, ZooError
from ..peer_names import with_keys
from .arguments import check_count, collect_results, texts_or_errors
from .base import TextTask, softmax
from .notebook import html_table
from .results import Lines, ResultFormat

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..text.encodings import Encoding

# Question and context together, and what neighbouring windows of a long context share: SQuAD's habits.
WINDOW_TOKENS = 384
STRIDE = 128


@with_keys(answer="text")
class Span(NamedTuple):
    """A passage of the context that was passed, context[start:end]; an empty one where there is no answer."""

    text: str
    score: float  # probability of its first token times that of its last, among the tokens of its window
    start: int
    end: int

    def _repr_html_(self) -> str:
        return html_table([self])


class Answers(ResultFormat):
    """A Span, or with top_k a list of them."""

    place: ClassVar[dict[str, str]] = {"score": "double", "start": "int64", "end": "int64"}
    columns: ClassVar[dict[str, Any]] = {"answer": "string", **place}
    with_top_k: ClassVar[dict[str, Any]] = {"answers": [{"text": "string", **place}]}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        found = _spans_of(result)
        best = found[0]._asdict() if found else dict.fromkeys(Span._fields)
        row = {"answer": best.pop("text"), **best}
        return {**row, "answers": [one._asdict() for one in found]} if top_k else row

    def lines(self, result: Any) -> Lines:
        return [(f"{x.score:.4f}", f"{x.start}-{x.end}", x.text or "no answer") for x in _spans_of(result)]


def _spans_of(result: Any) -> list[Span]:
    return result if isinstance(result, list) else [result]


class AnswerOptions(TypedDict, total=False):
    """Options of `Answer`, which explains them."""

    max_answer_len: int
    max_seq_len: int
    doc_stride: int
    handle_impossible: bool
    whole_words: bool
    progress: bool | None


class Answer(TextTask):
    """The passage that answers a question.

    >>> answer = zoo.load("deepset/bert-base-cased-squad2")
    >>> answer(question="Where do I live?", context="My name is Wolfgang and I live in Berlin.")
    Span(text='Berlin', score=0.9..., start=34, end=40)
    """

    name = "answer"
    results = Answers()

    @overload
    def __call__(
        self, question: str, context: str, *, top_k: None = None, **options: Unpack[AnswerOptions]
    ) -> Span: ...
    @overload
    def __call__(self, question: str, context: str, *, top_k: int, **options: Unpack[AnswerOptions]) -> list[Span]: ...
    @overload
    def __call__(
        self,
        question: str | Iterable[str],
        context: str | Iterable[str],
        *,
        top_k: int | None = None,
        **options: Unpack[AnswerOptions],
    ) -> Any: ...
    def __call__(
        self,
        question: str | Iterable[str],
        context: str | Iterable[str] | None = None,
        *,
        top_k: int | None = None,
        max_answer_len: int = 15,
        max_seq_len: int = WINDOW_TOKENS,
        doc_stride: int = STRIDE,
        handle_impossible: bool = False,
        whole_words: bool = True,
        progress: bool | None = None,
    ) -> Any:
        """The best Span; with top_k, the list of that many, best first.  For several questions, a list of either.

        question, context: one each, as many of one as of the other, or one of either for all of the other; or one
        dictionary of both, or a list of them, as pipelines take them.
        max_answer_len: tokens of the longest answer.  handle_impossible: "no answer" competes as an empty Span, with
        the least of the scores that the windows give it.  whole_words: answers are widened to the words that they begin
        and end in; say False for languages that do not put spaces between words.

        A long context is read through windows of max_seq_len tokens, those of the question included, that overlap by
        doc_stride; of equal spans the best one counts.
        """
        if context is None:
            question, context = _question_and_context(question)
        questions, one_question = texts_or_errors(question, "question")
        contexts, one_context = texts_or_errors(context, "context")
        count = max(len(questions), len(contexts))
        if not one_question and not one_context and len(questions) != len(contexts):
            raise InputError(f"context: {len(contexts)} contexts for {len(questions)} questions, expected one for each")
        if not handle_impossible:
            contexts = [self._with_a_word(text, None if one_context else i) for i, text in enumerate(contexts)]
            if one_context and isinstance(contexts[0], ZooError):
                raise contexts[0]
        if one_question:
            questions = questions * count
        if one_context:
            contexts = contexts * count
        length = check_count(max_answer_len, "max_answer_len")
        wanted = 1 if top_k is None else check_count(top_k, "top_k")

        window = min(self.max_tokens, check_count(max_seq_len, "max_seq_len"))
        stride = min(window // 2, check_count(doc_stride, "doc_stride"))
        found: list[Any] = [{} for _ in questions]  # (begin, end) -> score, or an error
        nothing = [np.inf] * count
        # As in transformers, the question is last where the token that stands for "no answer" is.
        last = getattr(self.model, "ends_with_cls", False)
        side, of_question = (0, "pairs") if last else (1, "texts")
        for i, row, logits in self.rows(
            contexts if last else questions,
            questions if last else contexts,
            self._logits,
            truncation="only_first" if last else "only_second",
            max_length=window,
            stride=stride,
            overflow=True,
            progress=progress,
        ):
            if isinstance(logits, ZooError):
                found[i] = logits.about("question" if logits.argument in (of_question, "question") else "context", i)
                continue
            start, end, null = _probabilities(row, logits, self.tokenizer.cls_token_id, side)
            nothing[i] = min(nothing[i], null)
            taken: set[tuple[int, int]] = set()
            for begin, end_at, score in _spans(start, end, length):
                if len(taken) == wanted:
                    break
                place = _place(row, begin, end_at, whole_words, side)
                taken.add(place)
                found[i][place] = max(score, found[i].get(place, 0.0))
        out: list[Any] = []
        for i, places in enumerate(found):
            if isinstance(places, ZooError):
                out.append(places)
                continue
            passage: Any = contexts[i]  # a text, as its places are no error
            spans = [Span(passage[a:b], score, a, b) for (a, b), score in places.items()]
            if handle_impossible or not spans:  # without any, all of the probability went to "no answer"
                spans.append(Span("", float(nothing[i]), 0, 0))
            spans.sort(key=lambda span: -span.score)
            out.append(spans[0] if top_k is None else spans[:wanted])
        return collect_results(out, one_question and one_context)

    def _with_a_word(self, text: str | ZooError, index: int | None) -> str | ZooError:
        """The text, or an error if no word of it could be an answer."""
        if isinstance(text, ZooError) or not self._is_wordless(text):
            return text
        problem = 'holds no word that could be an answer: leave it out, or let "no answer" be one'
        return InputError(f"{problem} (handle_impossible=True)", argument="context", index=index)

    def _is_wordless(self, text: str) -> bool:
        """Return True if a text has no tokens; letters and digits are a quick sign that it has."""
        return not any(map(str.isalnum, text)) and not self.tokenizer.backend.encode(text, add_special_tokens=False).ids

    def _logits(self, batch: Encoding) -> list[np.ndarray]:
        """(2, T) for each row, without padding."""
        y = self.call(self.model, batch)
        both = np.stack([ops.to_numpy(y.start_logits), ops.to_numpy(y.end_logits)], axis=1)
        return [z[:, mask] for z, mask in zip(both, batch.attention_mask, strict=True)]


def _probabilities(row: Any, logits: np.ndarray, cls: int | None, side: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The probabilities of each token to be an answer's first and its last, (T,) each, and that of no answer.

    They are 0 outside the context, the text `side` of the two.  The first token competes, or the last where the context
    is first: models point at it where there is no answer.
    """
    inside = np.array([s == side for s in row.sequence_ids]) & ~np.array(row.special_tokens_mask, bool)
    competes, at = inside.copy(), side - 1
    competes[at] = row.ids[at] == cls
    if not competes.any():
        return np.zeros(len(inside)), np.zeros(len(inside)), 1.0
    start, end = softmax(np.where(competes, logits, -np.inf).astype(np.float64))
    null = float(start[at] * end[at])
    return start * inside, end * inside, null


def _spans(start: np.ndarray, end: np.ndarray, length: int) -> Iterator[tuple[int, int, float]]:
    """(first, last, score) of every span of at most `length` tokens, best first."""
    T, L = len(start), min(length, len(start))
    ends = np.lib.stride_tricks.sliding_window_view(
        np.append(end, np.zeros(L - 1)), L
    )  # (T, L): ends[t, k] = end[t + k]
    scores = (start[:, None] * ends).ravel()
    for k in np.argsort(-scores, kind="stable"):
        if scores[k] <= 0:
            return
        first = int(k) // L
        yield first, min(first + int(k) % L, T - 1), float(scores[k])


def _place(row: Any, first: int, last: int, whole_words: bool, side: int) -> tuple[int, int]:
    """The span's characters."""
    start, end = row.offsets[first][0], row.offsets[last][1]
    if not whole_words:
        return start, end
    a, b = row.token_to_word(first), row.token_to_word(last)
    if a is None or b is None:
        return start, end
    before, after = row.word_to_chars(a, side), row.word_to_chars(b, side)
    return (start if before is None else before[0]), (end if after is None else after[1])


def _question_and_context(given: Any) -> tuple[Any, Any]:
    """The questions and contexts of a dictionary with both, or of a list of these; InputError for anything else."""
    items = [given] if isinstance(given, Mapping) else given
    names = {"question", "context"}
    if not isinstance(items, list) or not all(isinstance(one, Mapping) and names <= {*one} for one in items):
        raise InputError(
            "context is missing: expected the text that holds the answer, answer(question=..., context=...)"
        )
    questions, contexts = [one["question"] for one in items], [one["context"] for one in items]
    return (questions[0], contexts[0]) if isinstance(given, Mapping) else (questions, contexts)
