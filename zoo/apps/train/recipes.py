"""A recipe for each task: it prepares rows of data and computes the loss of a batch.

Shapes: B rows of a batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import InputError, UnsupportedError, quantity
from ...images import open_image
from .data import Row, column
from .losses import IGNORE_INDEX, compute_loss

MAX_TOKENS = 512
SIMILARITY_SCALE = 20.0  # multiplies cosines, as in sentence-transformers


class TrainingRecipe:
    """The base of recipes.

    rows: the data.  texts, labels: its columns.  source: its file, for error messages and relative paths of images.
    """

    least_rows = 1  # the rows that a loss needs
    least_labels = 2  # the different ones that the data needs to have
    head_labels = False  # True if the head has an output for each label in the data
    answer_column: str | None = "label"  # the column of the answers, by default; None: texts are all there is to learn
    peft_task: str | None = None  # the name of the task in an adapter's files
    task: Any
    paths: list[Any]

    def __init__(self, rows: Sequence[Row], texts: str, labels: str | None, source: Any):
        self.rows, self.texts, self.source, self.label_column = rows, texts, source, labels

    def names(self) -> list[str]:
        """The labels in the data, if the model's head has one output for each."""
        return []

    def prepare(self, task: Any) -> None:
        """Prepare the rows when the model is loaded."""

    def loss(self, chosen: list[int]) -> Tensor:
        """The loss of a batch, given as indices of rows."""
        raise NotImplementedError

    def count_right(self, chosen: list[int]) -> list[int]:
        """Counts of a batch, whose sums `measures` takes; the model is in eval mode."""
        return []

    def measures(self, counts: np.ndarray, loss: float) -> dict[str, float]:
        """What says how good the model is, beside the loss: accuracy, F1, ...; by default nothing."""
        return {}

    def _require_labels(self) -> str:
        if self.label_column is None:
            raise InputError(f"{self.source}: this task needs the column of the answers (--label)")
        return self.label_column

    def _encode(self, task: Any, texts: list[str]) -> Any:
        self.tokenizer, self.model = task.tokenizer, task.model
        return task.tokenizer.encode_batch(texts, truncation=True, max_length=min(task.max_tokens, MAX_TOKENS))

    def _inputs(self, encodings: Any, chosen: list[int]) -> dict[str, np.ndarray]:
        batch = self.tokenizer.pad(encodings, chosen, padding_side="right")
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if "token_type_ids" in self.model.inputs and batch.token_type_ids.any():
            inputs["token_type_ids"] = batch.token_type_ids
        return inputs

    def _pixels(self, chosen: list[int]) -> dict[str, Any]:
        pixels = self.task.processor([open_image(self.paths[i]) for i in chosen]).pixel_values
        return {"pixel_values": pixels, **self.task.call_options}

    @staticmethod
    def _ids(task: Any, text: str, end: bool = False) -> list[int]:
        """The ids of a text without truncation; end: with the end token."""
        ids, eos = list(task.tokenizer.encode_batch([text], truncation=False).rows[0].ids), task.tokenizer.eos_token_id
        return [*ids, eos] if end and eos is not None and ids[-1] != eos else ids


def _pad(rows: Sequence[Sequence[int]], fill: int) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), fill)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def _distinct(found: set[str], source: Any, name: str, least: int) -> list[str]:
    if len(found) < least:
        raise InputError(
            f"{source}: the column {name!r} has only the label {next(iter(found), '')!r}: at least two are needed"
        )
    return sorted(found)


class ClassifyTexts(TrainingRecipe):
    """Texts with one label each."""

    peft_task = "SEQ_CLS"
    head_labels = True

    def names(self) -> list[str]:
        name = self._require_labels()
        self.answers = column(self.rows, name, self.source)
        return _distinct(set(self.answers), self.source, name, self.least_labels)

    def prepare(self, task: Any) -> None:
        self.encodings = self._encode(task, column(self.rows, self.texts, self.source))
        ids = task.config.label2id  # which is made anew each time
        self.targets = [ids[answer] for answer in self.answers]

    def loss(self, chosen: list[int]) -> Tensor:
        return compute_loss(self.model, self._model_inputs(chosen), [self.targets[i] for i in chosen])

    def count_right(self, chosen: list[int]) -> list[int]:
        found = self.model(**self._model_inputs(chosen)).argmax(-1).tolist()
        return [sum(label == self.targets[i] for label, i in zip(found, chosen, strict=True)), len(chosen)]

    def measures(self, counts: np.ndarray, loss: float) -> dict[str, float]:
        return {"accuracy": float(counts[0] / counts[1])}

    def _model_inputs(self, chosen: list[int]) -> dict[str, Any]:
        return self._inputs(self.encodings, chosen)


class ClassifyImages(ClassifyTexts):
    """Images with one label each."""

    def prepare(self, task: Any) -> None:
        self.task, self.model = task, task.model
        ids = task.config.label2id
        self.targets = [ids[answer] for answer in self.answers]
        self.paths = images_of(self.rows, self.texts, self.source)

    def _model_inputs(self, chosen: list[int]) -> dict[str, Any]:
        return self._pixels(chosen)


class TagWords(TrainingRecipe):
    """Lists of words with a label for each word; only a word's first token has a loss."""

    peft_task = "TOKEN_CLS"
    head_labels = True

    def names(self) -> list[str]:
        name = self._require_labels()
        self.words, self.answers = (column(self.rows, key, self.source, list) for key in (self.texts, name))
        for i, (words, labels) in enumerate(zip(self.words, self.answers, strict=True)):
            if len(words) != len(labels) or not all(isinstance(x, str) for x in (*words, *labels)):
                both = f"{quantity(len(words), 'word')} and {quantity(len(labels), 'label')}"
                raise InputError(f"{self.source}: row {i + 1} has {both}, expected as many")
        return _distinct({label for labels in self.answers for label in labels}, self.source, name, self.least_labels)

    def prepare(self, task: Any) -> None:
        self.encodings = self._encode(task, [" ".join(words) for words in self.words])
        self.ids = task.config.label2id

    def loss(self, chosen: list[int]) -> Tensor:
        return compute_loss(self.model, self._inputs(self.encodings, chosen), self._label_ids(chosen))

    def count_right(self, chosen: list[int]) -> list[int]:
        """Spans that are found and right, spans that are found, spans that there are, right words, words."""
        logits = self.model(**self._inputs(self.encodings, chosen))
        names, counts = {i: label for label, i in self.ids.items()}, np.zeros(5, np.int64)
        for row, found in zip(self._label_ids(chosen), logits.argmax(-1).tolist(), strict=True):
            at = np.flatnonzero(row != IGNORE_INDEX)
            true, guess = [names[int(row[t])] for t in at], [names[found[t]] for t in at]
            wanted, made = spans_of(true), spans_of(guess)
            right = sum(a == b for a, b in zip(true, guess, strict=True))
            counts += [len(wanted & made), len(made), len(wanted), right, len(at)]
        return counts.tolist()

    def measures(self, counts: np.ndarray, loss: float) -> dict[str, float]:
        both, made, wanted, right, words = counts.tolist()
        return {"f1": 2 * both / max(1, made + wanted), "accuracy": right / max(1, words)}

    def _label_ids(self, chosen: list[int]) -> np.ndarray:
        """(B, T): the label of a word at its first token, elsewhere IGNORE_INDEX."""
        batch = self.tokenizer.pad(self.encodings, chosen, padding_side="right")
        targets = np.full(batch.input_ids.shape, IGNORE_INDEX)
        for b, i in enumerate(chosen):
            at, begins = 0, {}
            for word, label in zip(self.words[i], self.answers[i], strict=True):
                begins.update(dict.fromkeys(range(at, at + len(word)), (at, label)))
                at += len(word) + 1
            seen = set()
            for t in np.flatnonzero(~batch.special_tokens_mask[b]):
                start, end = batch.offsets[b, t]
                # Some tokenizers count the space before a word as a part of it.
                word = next((begins[c] for c in range(start, end) if c in begins), None)
                if word is not None and word[0] not in seen:
                    seen.add(word[0])
                    targets[b, t] = self.ids[word[1]]
        return targets


def spans_of(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """The spans of words of one kind, as (begin, end, kind); a kind goes on until B-, another one or "O"."""
    found, begin, last = set(), 0, ""
    for i, label in enumerate([*labels, "O"]):
        prefix, _, kind = label.partition("-") if label[:2] in ("B-", "I-") else ("", "", label)
        kind = "" if kind == "O" else kind
        if kind != last or prefix == "B":
            if last:
                found.add((begin, i, last))
            begin, last = i, kind
    return found


class EmbedPairs(TrainingRecipe):
    """Pairs of texts with the same meaning, by a contrastive loss over the batch (van den Oord et al. 2018,
    https://arxiv.org/abs/1807.03748).
    """

    peft_task = "FEATURE_EXTRACTION"
    least_rows = 2

    def prepare(self, task: Any) -> None:
        encoder = task.encoder
        if (
            len(encoder.pooling) != 1
            or encoder.pooling[0] not in ("mean", "cls", "lasttoken")
            or len(encoder.steps) > 1
        ):
            raise UnsupportedError(
                f"{task!r} pools by {', '.join(encoder.pooling)} and {len(encoder.steps)} further steps: only pooling "
                "by mean, cls or lasttoken with at most one step can be trained"
            )
        self.pooling = encoder.pooling[0]
        sides = (column(self.rows, name, self.source) for name in (self.texts, self._require_labels()))
        self.sides = [self._encode(task, texts) for texts in sides]

    def loss(self, chosen: list[int]) -> Tensor:
        if len(chosen) < 2:
            raise InputError("contrastive training compares the rows of a batch: use a batch_size of at least 2")
        a, b = self._both_sides(chosen)
        return F.cross_entropy(a @ b.T * SIMILARITY_SCALE, torch.arange(len(chosen), device=a.device))

    def count_right(self, chosen: list[int]) -> list[int]:
        a, b = self._both_sides(chosen)
        nearest = (a @ b.T).argmax(-1).tolist()
        return [sum(found == i for i, found in enumerate(nearest)), len(chosen)]

    def measures(self, counts: np.ndarray, loss: float) -> dict[str, float]:
        return {"accuracy": float(counts[0] / counts[1])}  # of finding the partner within a batch

    def _both_sides(self, chosen: list[int]) -> list[Tensor]:
        return [self._vectors(encodings, chosen) for encodings in self.sides]

    def _vectors(self, encodings: Any, chosen: list[int]) -> Tensor:
        inputs = self._inputs(encodings, chosen)
        x = self.model(**inputs).last_hidden_state
        mask = torch.as_tensor(inputs["attention_mask"], device=x.device)
        if self.pooling == "cls":
            pooled = x[:, 0]
        elif self.pooling == "lasttoken":
            pooled = x[torch.arange(len(x), device=x.device), mask.sum(1) - 1]
        else:
            pooled = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return F.normalize(pooled.float(), dim=-1)


class ContinueTexts(TrainingRecipe):
    """Texts for a causal language model; with answers, only the answers have a loss, each after its text."""

    answer_column = None
    peft_task = "CAUSAL_LM"

    def prepare(self, task: Any) -> None:
        self.model, self.limit = task.model, min(task.max_tokens, MAX_TOKENS)
        texts = column(self.rows, self.texts, self.source)
        answers = None if self.label_column is None else column(self.rows, self.label_column, self.source)
        self.ids: list[tuple[list[int], int]] = []  # (ids, number of ids without a loss)
        for i, text in enumerate(texts):
            whole = text if answers is None else f"{text.rstrip()} {answers[i].lstrip()}"
            whole, asked_from = self._ids(task, whole, end=True)[: self.limit], 0
            if answers is not None:  # the first difference, since a tokenizer may merge across the border
                given = self._ids(task, text.rstrip() + " ")
                asked_from = next((k for k, (a, b) in enumerate(zip(given, whole, strict=False)) if a != b), len(given))
            if len(whole) < 2 or asked_from >= len(whole):
                raise InputError(
                    f"{self.source}: row {i + 1} has nothing to learn within {self.limit} tokens: shorten the text"
                )
            self.ids.append((whole, asked_from))

    def measures(self, counts: np.ndarray, loss: float) -> dict[str, float]:
        return {"perplexity": float(np.exp(min(loss, 700.0)))}

    def loss(self, chosen: list[int]) -> Tensor:
        rows = [self.ids[i] for i in chosen]
        ids = _pad([row for row, _ in rows], 0)
        labels = _pad([[IGNORE_INDEX] * asked_from + row[asked_from:] for row, asked_from in rows], IGNORE_INDEX)
        mask = np.arange(ids.shape[1]) < np.array([[len(row)] for row, _ in rows])
        return compute_loss(self.model, {"input_ids": ids, "attention_mask": mask}, labels)


class ReadLines(TrainingRecipe):
    """Images of lines with their text."""

    answer_column = "text"

    def prepare(self, task: Any) -> None:
        self.task, self.model = task, task.model
        self.paths = images_of(self.rows, self.texts, self.source)
        limit = task.config.decoder.max_position_embeddings - 1
        self.ids: list[list[int]] = []
        for i, text in enumerate(column(self.rows, self._require_labels(), self.source)):
            ids = self._ids(task, text, end=True)
            if len(ids) > limit:
                raise InputError(
                    f"{self.source}: the text of row {i + 1} has {len(ids)} tokens, at most {limit} fit the decoder"
                )
            self.ids.append(ids)

    def loss(self, chosen: list[int]) -> Tensor:
        return compute_loss(self.model, self._pixels(chosen), _pad([self.ids[i] for i in chosen], IGNORE_INDEX))


def images_of(rows: Sequence[Row], name: str, source: Any) -> list[Any]:
    """The images of a column for `open_image`: paths relative to the data file, or the images of a data set."""
    if rows and name in rows[0] and not isinstance(rows[0][name], str):
        return [row[name] for row in rows]
    base = Path(str(source)).expanduser().parent
    paths = [base / path for path in column(rows, name, source)]
    gone = [path for path in paths if not path.is_file()]
    if gone:
        raise InputError(f"{source}: {len(gone)} of {len(paths)} images do not exist, the first is {gone[0]}")
    return paths
