"""Task: what all tasks share, which is saving; and TextTask: reading texts, in batches without padding to
waste.

Shapes: B rows of a batch, T tokens, D hidden_size, C labels, V vocab_size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..checkpoint.conflicts import CONFIG, refuse_other_files
from ..errors import CheckpointError, InputError, TokenizerError, ZooError, list_names
from ..options import DEFAULTS, Options
from ..peer_names import TASK_NAMES, instead_of
from ..pretrained import Pretrained
from ..runner import runner_for
from ..task_kinds import Input, TaskKind, find_tasks
from ..typing import Array
from ..warning import warn
from .notebook import with_rows
from .pipeline_names import with_pipeline_names
from .progress import Progress
from .results import ResultFormat

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..checkpoint.files import Checkpoint
    from ..files.folder import CheckpointFolder
    from ..text.encodings import Encoding, Encodings
    from ..text.tokenizer import Tokenizer
    from .protocols import TextBody

# With more, a batch's activations no longer stay in the caches of a CPU: on two cores 4096 took 1.5 to 2 times as long
# as 512 to 1024, which were about equal, for MiniLM and for bert-base.  A GPU needs more.
BATCH_TOKENS = 768
BATCH_TOKENS_TORCH = 16384
# A batch costs, besides its tokens, as much as a 32nd of a full one: 24 tokens on two cores, for MiniLM.  From FEW
# rows on there is little padding in any case.
BATCHES_WORTH, SORTED_ROWS = 32, 256
# Texts that are tokenized at once, and their characters: it bounds memory, and is enough to sort by length.
TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 4096, 1 << 19
# The most characters of a token, but for spaces and words that a tokenizer does not know; and of the shortest text that
# may have too many tokens.
MAX_CHARS_PER_TOKEN, MIN_CHARS = 64, 1 << 16
# Tables are often padded by a few percent; if no token reaches a larger part, the vocabulary is cut short.
MAX_UNREACHED = 0.1


class Task:
    """A model with what prepares its input, to be called.  Calls change nothing in it: threads may share one.

    One input alone gives one result, a list (or any iterable) of them a list or array of results, in the same order.
    Where some of several cannot be used, BatchError is raised once all others are computed, and holds their results.
    """

    name: ClassVar[str]
    reads: ClassVar[Input] = "text"
    results: ClassVar[ResultFormat]  # how its results are written
    tokenizer: Any = None  # for a task that reads or writes texts
    options: Options | None = None  # what it was loaded with, from its checkpoint

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__call__" in vars(cls):
            cls.__call__ = with_pipeline_names(with_rows(cls.__call__))

    def __init__(self, model: Pretrained, checkpoint: Checkpoint | None = None):
        self.model, self.checkpoint = model, checkpoint
        self.config, self.report = model.config, model.report
        self.runner = runner_for(model)
        self.base_model: Any = model.base_model  # the model without its head

    @property
    def kind(self) -> TaskKind:
        """The task's row in `zoo.task_kinds`."""
        return next(kind for kind in find_tasks(self.name) if kind.reads == self.reads)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, head: str | None = None, options: Options = DEFAULTS) -> Self:
        """The task of a checkpoint whose files are on this machine; arguments as for `zoo.loading.model_of`."""
        from ..loading import model_of

        parts = cls.parts_of(checkpoint)  # their errors come before the weights are read
        task = cls(model_of(checkpoint, options, head=head), checkpoint=checkpoint, **parts)
        task.options = options
        return task

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        """The constructor's arguments that are read from files beside the weights: a tokenizer, a processor, ..."""
        return {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The result; each task documents its arguments."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:  # of a name that is no attribute
        instead = instead_of(name, TASK_NAMES)
        raise AttributeError(f"the task {type(self).name} has no attribute {name!r}{instead}", name=name, obj=self)

    def __repr__(self) -> str:
        of = f" of {self.checkpoint.name}" if self.checkpoint else ""
        return f"<{type(self).__name__}{of}: {self.model.architecture}>"

    def save(self, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
        """Write a folder that `zoo.load` reads as the same task; dtype as in `zoo.save`.

        ZooError where the folder holds files of another checkpoint that would stay.
        """
        from ..saving import write_model

        path = Path(folder).expanduser()
        self.check_beside(path)
        return write_model(self.model, path, dtype=dtype, beside=self.save_beside)

    def check_beside(self, path: Path) -> None:
        """Raise ZooError if the task cannot be saved to a folder, before any file is written."""
        copied = self.copied_files()
        for folder, name in copied:
            if not folder.has(name):
                raise ZooError(f"{self!r} cannot be saved: {folder.where(name)}, which would be copied, was removed")
        if self.checkpoint is None or not path.is_dir() or not path.samefile(self.checkpoint.contents.path):
            refuse_other_files(path, {CONFIG, *(name for _, name in copied)})

    def save_beside(self, path: Path) -> None:
        """Copy the files of a checkpoint beside the model: tokenizer, processor, modules."""
        for folder, name in self.copied_files():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            folder.copy(name, path / name)

    def copied_files(self) -> list[tuple[CheckpointFolder, str]]:
        """The files that saving copies, each with the folder that it is in."""
        names = self.extra_files()
        found = [(self.checkpoint.contents, name) for name in names] if self.checkpoint else []
        words = self.tokenizer
        return found if words is None else [*found, *((words.folder, name) for name in words.files)]

    def extra_files(self) -> list[str]:
        """The names of the checkpoint's files that saving copies."""
        return []


class TextTask(Task):
    """A model with its tokenizer, to be called with texts.

    `max_tokens` is the longest row that the checkpoint takes, special tokens included; `batch_tokens` the most that
    are computed at once.
    """

    base_model: TextBody
    tokenizer: Tokenizer

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, checkpoint)
        check_vocabulary(tokenizer, self.config.vocab_size)
        self.tokenizer = tokenizer
        positions = self.base_model.embeddings.max_positions
        self.max_tokens = min(tokenizer.model_max_length or positions, positions)
        on_numpy = isinstance(self.base_model.embeddings.word, np.ndarray)
        self.batch_tokens = BATCH_TOKENS if on_numpy else BATCH_TOKENS_TORCH

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        from ..text.tokenizer import Tokenizer

        return {"tokenizer": Tokenizer.from_folder(checkpoint.contents)}

    def call(self, model: Any, batch: Encoding) -> Any:
        """The output of the model, or of its body, for a batch."""
        mask, types = batch.attention_mask, batch.token_type_ids
        typed = "token_type_ids" in model.inputs and types.any()  # some tokenizers give segments that no model reads
        return self.runner(model, batch.input_ids, None if mask.all() else mask, types if typed else None)

    def rows(
        self,
        texts: Sequence[str | ZooError],
        pairs: Sequence[str | ZooError] | None,
        compute: Callable[[Encoding], Sequence[Any] | Array],
        *,
        progress: bool | Callable[[int], object] | None = None,
        truncation: Any = True,
        max_length: int | None = None,
        stride: int = 0,
        overflow: bool = False,
        each: Callable[[Any, Iterable[Encoding]], Iterable[Any]] = map,
    ) -> Iterator[tuple[int, Any, Any]]:
        """(index of the text, its row, a `tokenizers.Encoding`, its item from `compute`), in the order of the texts.

        A text that cannot be used has an error in the place of its item, the one that it is given as or one of the
        tokenizer's; the others are computed without it.
        The row is None where texts are cut, unless `overflow`: it would hold what was cut off, too.
        `compute` gets padded batches of rows of about equal length, and gives one item for each row; `each` calls it
        with each batch, and yields what it gives in order.  The other arguments are the tokenizer's; with
        truncation=False a text that is too long is an error.  A cut is warned of.
        """
        limit = min(max_length or self.max_tokens, self.max_tokens)
        cut, is_whole = 0, overflow or not truncation
        with Progress(len(texts), progress) as advance:
            at = 0
            for block in text_blocks(texts if pairs is None else list(zip(texts, pairs, strict=True))):
                errors: dict[int, ZooError] = {}
                for k, item in enumerate(block):
                    parts = item if isinstance(item, tuple) else (item,)
                    if (error := next((part for part in parts if isinstance(part, ZooError)), None)) is not None:
                        errors[k] = error
                    elif not truncation and (size := len(parts[0])) > (most := most_characters(limit)):
                        problem = f"has {size} characters, and the checkpoint takes at most {limit} tokens"
                        problem = f"{problem}, {most} characters in any case"
                        errors[k] = InputError(problem, argument="texts", index=at + k)
                encodings, sample = self._encodings(block, errors, at, limit, truncation, stride, overflow)
                lengths = encodings.lengths
                advance(len(errors))
                if not is_whole:
                    cut += sum(bool(encodings.rows[i].overflowing) for i in np.flatnonzero(lengths == limit).tolist())
                begins = np.append(True, sample[1:] != sample[:-1])
                found: list[Any] = [None] * len(lengths)
                cuts = list(batches(lengths, self.batch_tokens, self.tokenizer.pad_token_id is not None))
                padded = (self.tokenizer.pad(encodings, index, padding_side="right") for index in cuts)
                for index, items in zip(cuts, each(compute, padded), strict=True):
                    if len(items) != len(index):  # of an export whose graph is not the model's
                        raise CheckpointError(f"{self.name}: {len(items)} rows of output for {len(index)} of input")
                    for i, item in zip(index, items, strict=True):
                        found[i] = item
                    advance(int(begins[index].sum()))
                good = zip(sample.tolist(), encodings.rows, found, strict=True)
                bad = ((k, None, errors[k]) for k in sorted(errors))
                for k, row, item in merge(good, bad, key=lambda one: one[0]):
                    yield at + k, row if is_whole else None, item
                at += len(block)
                row = None
                del encodings, padded, good  # of a long text 0.3 GB, beside those of the next one
        if cut:
            warn(f"{cut} of {len(texts)} texts had more than {limit} tokens, and were cut there")

    def _encodings(
        self,
        block: list[Any],
        errors: dict[int, ZooError],
        at: int,
        limit: int,
        truncation: Any,
        stride: int,
        overflow: bool,
    ) -> tuple[Encodings, np.ndarray]:
        """The rows of a block's texts or pairs, and the place in the block of each.

        Texts with an error have none; errors gets those of further ones.  at: texts before the block.
        """
        from ..text.encodings import Encodings

        index = [k for k in range(len(block)) if k not in errors]
        if not index:
            return Encodings([], np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros(0, np.int64)
        good, found = [block[k] for k in index], dict[int, InputError]()
        firsts, seconds = map(list, zip(*good, strict=True)) if isinstance(good[0], tuple) else (good, None)
        encodings = self.tokenizer.encode_batch(
            firsts,
            seconds,
            truncation=truncation,
            max_length=limit if truncation else None,
            stride=stride,
            overflow=overflow,
            errors=found,
        )
        for i, error in found.items():
            errors[index[i]] = error.about(error.argument or "texts", at + index[i])
        sample = np.array(index)[encodings.overflow_to_sample]
        if not truncation and (long := encodings.lengths > limit).any():
            for i in np.flatnonzero(long).tolist():
                problem = f"has {encodings.lengths[i]} tokens, but the checkpoint takes at most {limit}, and this task "
                place = at + int(sample[i])
                errors[int(sample[i])] = InputError(f"{problem}does not cut texts", argument="texts", index=place)
            kept = np.flatnonzero(~long)
            rows = [encodings.rows[i] for i in kept.tolist()]
            encodings, sample = Encodings(rows, encodings.lengths[kept], sample[kept]), sample[kept]
        return encodings, sample


def check_vocabulary(tokenizer: Tokenizer, rows: int) -> None:
    """Raise TokenizerError if a tokenizer has ids beyond the rows of the embedding table (config.vocab_size).

    Added tokens beyond the table are warned of: there are checkpoints like that, and most texts hold none of them.
    """
    table = f"the embedding table has {rows} rows (vocab_size in config.json)"
    added = tokenizer.added_tokens()
    # The whole vocabulary as a dictionary takes a good part of the time of a load: it is made where it is needed.
    if max(tokenizer.vocab_size, *(i + 1 for i in added.values()), 0) > rows or tokenizer.tokens([rows]) != [None]:
        known = tokenizer.vocabulary()
        beyond = {token: i for token, i in sorted(known.items(), key=lambda item: item[1]) if i >= rows}
        if not added.keys() >= beyond.keys():
            raise TokenizerError(
                f"{tokenizer.source}: ids go up to {max(beyond.values())}, but {table}: "
                "one of the two is another checkpoint's"
            )
        if beyond:
            shown = list_names([f"{token!r} ({i})" for token, i in beyond.items()], 5)
            warn(f"{tokenizer.source}: {table}, and tokens were added beyond it, which cannot be used: {shown}")
    elif tokenizer.vocab_size < (1 - MAX_UNREACHED) * rows:
        few = f"{tokenizer.vocab_size} tokens, but {table}"
        warn(f"{tokenizer.source}: {few}: is the vocabulary cut short, or another checkpoint's?")


def text_blocks(texts: Iterable[Any], most: int = CHARACTERS_AT_ONCE) -> Iterator[list[Any]]:
    """Texts or pairs in blocks that are tokenized at once, of at most `most` characters, or of one longer text."""
    block, characters = list[Any](), 0
    for text in texts:
        size = sum(len(one) for one in (text if isinstance(text, tuple) else (text,)) if isinstance(one, str))
        if len(block) == TEXTS_AT_ONCE or (block and characters + size > most):
            yield block
            block, characters = [], 0
        block.append(text)
        characters += size
    if block:
        yield block


def most_characters(tokens: int) -> int:
    """The most characters that a text of that many tokens has."""
    return max(MIN_CHARS, MAX_CHARS_PER_TOKEN * tokens)


def batches(lengths: np.ndarray, budget: int, pads: bool = True) -> Iterator[np.ndarray]:
    """Rows (R,) by length, the longest first, cut so that no batch has more than `budget` tokens with its padding.

    Few rows are cut where padding and the cost of a batch are the least together.
    pads: False for a tokenizer that has no padding token: a batch is then of rows of one length.
    """
    order = np.argsort(-lengths, kind="stable")
    if not len(order):
        return
    if not pads:
        for rows in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
            most = max(1, budget // max(1, int(lengths[rows].max(initial=0))))
            yield from np.split(rows, range(most, len(rows), most))
        return
    if len(order) <= SORTED_ROWS:
        yield from np.split(order, _cuts(np.maximum(lengths[order], 1), budget))
        return
    at = 0
    while at < len(order):
        count = max(1, budget // max(1, int(lengths[order[at]])))
        yield order[at : at + count]
        at += count


def _cuts(lengths: np.ndarray, budget: int) -> list[int]:
    """The places to cut rows (R,) that are sorted by length, the longest first, by the cheapest way to each row."""
    R, cost = len(lengths), budget / BATCHES_WORTH
    least, begins = np.full(R + 1, np.inf), np.zeros(R + 1, np.int64)
    least[0] = 0
    for at, length in enumerate(lengths.tolist()):
        ends = np.arange(at + 1, min(at + max(1, budget // length), R) + 1)
        costs = least[at] + cost + length * (ends - at)
        better = costs < least[ends]
        least[ends[better]], begins[ends[better]] = costs[better], at
    cuts, at = list[int](), int(begins[R])
    while at:
        cuts.append(at)
        at = int(begins[at])
    return cuts[::-1]


def softmax(x: np.ndarray) -> np.ndarray:
    """The softmax over the last axis."""
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    # Each branch of the usual formula overflows on one side; tanh does on neither.
    return 0.5 * (1 + np.tanh(0.5 * x))
