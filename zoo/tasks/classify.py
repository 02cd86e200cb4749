"""Classify: the labels of a text, or of a pair of texts, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, overload

import numpy as np

from .. import ops
from ..errors import CheckpointError, InputError, ZooError, check_choice, quantity
from ..peer_names import with_keys
from ..text.given import check_text
from .arguments import as_list, check_count, collect_results, text_or_error, texts_or_errors
from .base import TextTask, sigmoid, softmax
from .results import BestLabel

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..config import Config
    from ..text.encodings import Encoding

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"softmax": softmax, "sigmoid": sigmoid, "none": lambda x: x}


@with_keys()
class Label(NamedTuple):
    label: str
    score: float


class ClassifyOptions(TypedDict, total=False):
    """Options of `Classify`, which explains them."""

    top_k: int | None
    function_to_apply: str | None
    progress: bool | None


class Classify(TextTask):
    """Labels with scores, best first.

    >>> classify = zoo.load("cardiffnlp/twitter-roberta-base-sentiment-latest")
    >>> classify("What a day!", top_k=1)
    [Label(label='positive', score=0.9...)]
    >>> entails = zoo.load("FacebookAI/roberta-large-mnli")
    >>> entails("A man sleeps.", "A man is awake.")[0].label
    'CONTRADICTION'
    """

    name = "classify"
    results = BestLabel()

    @overload
    def __call__(self, texts: str, pairs: str | None = None, **options: Unpack[ClassifyOptions]) -> list[Label]: ...
    @overload
    def __call__(
        self,
        texts: Iterable[str | tuple[str, str]],
        pairs: Iterable[str] | None = None,
        **options: Unpack[ClassifyOptions],
    ) -> list[list[Label]]: ...
    def __call__(
        self,
        texts: str | Iterable[str | tuple[str, str]],
        pairs: str | Iterable[str] | None = None,
        *,
        top_k: int | None = None,
        function_to_apply: str | None = None,
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Label, best first, for one text; a list of such lists for several.

        texts: a text, or texts; an item may also be a pair, (text, second text).  pairs: the second texts, one each.
        top_k: how many labels; all if not given.
        function_to_apply: what turns logits into scores, "softmax", "sigmoid" or "none".  If not given, it is "none"
        for a regression (`problem_type` in the config), "sigmoid" for several labels at once or a single one, else
        "softmax".

        What is longer than the checkpoint takes is cut at the end (of a pair, the longer text), with a warning.
        """
        if top_k is not None:
            top_k = check_count(top_k, "top_k")
        score = score_function(self.config, function_to_apply)
        first, second, single = as_pairs(texts, pairs)
        out = []
        for _, _, logits in self.rows(first, second, self.outputs, progress=progress):
            is_bad = isinstance(logits, ZooError)
            out.append(logits if is_bad else best_labels(self.config, score(logits), top_k))
        return collect_results(out, single)

    def outputs(self, batch: Encoding) -> np.ndarray:
        """The logits (B, C) of a padded batch."""
        return ops.to_numpy(self.call(self.model, batch))


def score_function(config: Config, name: str | None) -> Callable[[np.ndarray], np.ndarray]:
    """The function from logits to scores: the one that a user names, or the one that a config's labels ask for."""
    if name is None:
        name = function_for(config)
    check_choice(name, "function_to_apply", FUNCTIONS)
    return FUNCTIONS[name]


def function_for(config: Config) -> str:
    """The one of FUNCTIONS that a config's labels ask for."""
    problem = config.extra.get("problem_type")
    several = problem == "multi_label_classification" or config.num_labels == 1
    return "none" if problem == "regression" else "sigmoid" if several else "softmax"


def best_labels(config: Config, scores: np.ndarray, top_k: int | None) -> list[Label]:
    """scores (C,) -> the highest of them, all if top_k is None; those that are equal in the order of the labels."""
    if scores.shape != (config.num_labels,):  # of an export whose graph is not the model's
        raise CheckpointError(
            f"scores of shape {scores.shape}, expected {config.num_labels} (num_labels in config.json)"
        )
    order = np.argsort(-scores, kind="stable")[:top_k]
    return [Label(config.id2label[i], float(scores[i])) for i in order.tolist()]


Texts = list[str | ZooError]


def as_pairs(texts: Any, pairs: Any) -> tuple[Texts, Texts | None, bool]:
    """First texts, second texts if there are any, with errors in the places of bad ones; True if it was one input."""
    if pairs is not None:
        (first, single), (second, alone) = texts_or_errors(texts, "texts"), texts_or_errors(pairs, "pairs")
        if single != alone or len(first) != len(second):
            raise InputError(
                f"pairs: {quantity(len(second), 'second text')} for {quantity(len(first), 'text')}, expected as many"
            )
        return first, second, single
    if isinstance(texts, str):
        return [check_text(texts, "texts")], None, True
    if isinstance(texts, Mapping) and isinstance(texts.get("text"), str):  # as pipelines take pairs
        first, second, _ = as_pairs([texts], None)
        return first, second, True
    items = [_of_dictionary(item) for item in as_list(texts, "texts")]
    if not any(isinstance(item, tuple | list) for item in items):
        return [text_or_error(item, "texts", i) for i, item in enumerate(items)], None, False
    checked = [_pair_or_error(item, i) for i, item in enumerate(items)]
    first, second = ([one if isinstance(one, ZooError) else one[side] for one in checked] for side in (0, 1))
    return first, second, False


def _of_dictionary(item: Any) -> Any:
    """The text or the pair of {"text": ..., "text_pair": ...}; anything else as it is."""
    if not isinstance(item, Mapping) or not {"text"} <= {*item} <= {"text", "text_pair"}:
        return item
    return (item["text"], item["text_pair"]) if "text_pair" in item else item["text"]


def _pair_or_error(item: Any, index: int) -> tuple[str, str] | ZooError:
    try:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise InputError("is not a pair of texts, as others in the list are", argument="texts", index=index)
        return check_text(item[0], "[0]"), check_text(item[1], "[1]")
    except InputError as e:
        return e if e.index is not None else InputError(str(e), argument="texts", index=index)
