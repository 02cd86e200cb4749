"""ZeroShot: which of some labels, given in words, fit a text; by a model of natural language inference.

Yin et al. 2019, https://arxiv.org/abs/1909.00161: a label fits as far as the text entails a sentence about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import InputError, UnsupportedError, ZooError
from ..pretrained import Pretrained
from .arguments import as_texts, collect_results, texts_or_errors
from .base import TextTask, softmax
from .classify import Label
from .results import Labels

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.tokenizer import Tokenizer


class ZeroShot(TextTask):
    """Labels in words to scores, best first.

    >>> zero_shot = zoo.load("FacebookAI/roberta-large-mnli", task="zero-shot-classification")
    >>> zero_shot("My phone breaks down.", ["urgent", "phone", "cooking"])[0]
    Label(label='phone', score=0.9...)
    """

    name = "zero-shot-classification"
    results = Labels()

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        names = {name.lower(): i for name, i in self.config.label2id.items()}
        found = [i for name, i in names.items() if name.startswith("entail")]
        if not found or len(names) < 2:
            raise UnsupportedError(
                f"{self.name} needs a checkpoint of natural language inference, with a label that begins with 'entail' "
                f"and others beside it: the labels are {', '.join(self.config.label2id)}"
            )
        self.entailment = found[0]
        self.contradiction = len(names) - 1 if self.entailment == 0 else 0

    def __call__(
        self,
        texts: str | Iterable[str],
        candidate_labels: str | Sequence[str],
        *,
        hypothesis_template: str = "This example is {}.",
        multi_label: bool = False,
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Label, best first, for one text; a list of such lists for several.

        candidate_labels: a list, or one text with commas between them.  hypothesis_template: the sentence about a
        label, which takes the place of {}.  multi_label: each label is judged by itself, entailment against
        contradiction; otherwise the scores of all labels add up to 1.  A text that is too long is cut, with a warning.
        """
        inputs, single = texts_or_errors(texts, "texts")
        labels, hypotheses = sentences(candidate_labels, hypothesis_template)
        first = [text for text in inputs for _ in labels]
        second = hypotheses * len(inputs)
        rows = self.rows(
            first,
            second,
            lambda batch: ops.to_numpy(self.call(self.model, batch)),
            progress=progress,
            truncation="only_first",
        )
        found = [item for _, _, item in rows]

        def label_scores(i: int) -> Any:
            """The labels of a text by the logits beside each of them, or its error."""
            items = found[i * len(labels) : (i + 1) * len(labels)]
            if (error := next((item for item in items if isinstance(item, ZooError)), None)) is not None:
                return error.about("texts", None if single else i)
            logits = np.stack(items)
            if multi_label or len(labels) == 1:
                return rank_labels(labels, softmax(logits[:, [self.contradiction, self.entailment]])[:, 1])
            return rank_labels(labels, softmax(logits[:, self.entailment]))

        return collect_results([label_scores(i) for i in range(len(inputs))], single)


def sentences(candidate_labels: Any, template: Any) -> tuple[list[str], list[str]]:
    """A user's labels, and a sentence about each."""
    if isinstance(candidate_labels, str):
        candidate_labels = [part.strip() for part in candidate_labels.split(",") if part.strip()]
    labels, _ = as_texts(candidate_labels, "candidate_labels")
    if len(set(labels)) < len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InputError(f"candidate_labels have {twice!r} twice, expected each once")
    if not isinstance(template, str) or "{}" not in template:
        raise InputError(f"hypothesis_template is {template!r}, expected a text with {{}} in the place of the label")
    return labels, [template.replace("{}", label) for label in labels]


def rank_labels(labels: list[str], scores: np.ndarray) -> list[Label]:
    """Labels by their scores, the best first."""
    return [Label(labels[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]
