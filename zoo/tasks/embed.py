"""Embed: a vector for each text, as sentence-transformers computes it from the same checkpoint."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import ops
from ..checkpoint.sentence_encoder import (
    POOLINGS,
    Router,
    SentenceEncoder,
    pool,
    read_sentence_encoder,
)
from ..checkpoint.sentence_encoder import normalize as unit_length
from ..errors import InputError, UnsupportedError, ZooError, check_choice
from ..inputs import TextModel
from ..options import Options
from ..pretrained import Pretrained
from .arguments import as_iterable, check_count, collect_results, map_good, text_or_error, texts_or_errors
from .base import text_blocks
from .prompted import ENCODE_PEERS, PromptedTask, check_peers
from .results import Vectors
from .vectors import Hit, as_vectors, quantise, scores, semantic_search, truncate

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer


class Embed(PromptedTask):
    """Texts to vectors.

    >>> embed = zoo.load("sentence-transformers/all-MiniLM-L6-v2")
    >>> embed(["The cat sits outside.", "A cat is in the garden."]).shape
    (2, 384)
    >>> embed.similarity("The cat sits outside.", ["A cat is in the garden.", "Stocks fell."])
    array([[0.6..., 0.0...]], dtype=float32)

    The steps after the tokens' states are read from the checkpoint's modules.json: pooling, dense layers,
    normalisation.  A checkpoint without that file gets the mean of all tokens, normalised to length 1; the text
    encoders of CLIP and SigLIP have a vector of their own.
    """

    name = "embed"
    results = Vectors()

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        self.encoder = SentenceEncoder()
        kind = None if checkpoint is None else checkpoint.encoder_task
        if checkpoint is not None and kind not in (None, "embed"):
            raise UnsupportedError(f"{checkpoint.name} gives no single vector for a text: use task={kind!r}")
        if checkpoint is not None and kind is not None:
            self.encoder = read_sentence_encoder(checkpoint.contents, self.config.hidden_size, checkpoint.modules)
        self.take_settings()

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        precision: str = "float32",
        ranges: Any = None,
        route: str | None = None,
        progress: bool | None = None,
        processes: int = 1,
    ) -> np.ndarray:
        """A text -> (E,), N texts -> (N, E), float32; no text -> (0, E).

        prompt_name: one of the checkpoint's `embed.prompts` to put before each text, or prompt: one of your own.
        pooling: "mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean" or "lasttoken" in place of the
        checkpoint's, whose dense layers are then left out.  normalize: True gives vectors of length 1, if not as the
        checkpoint says.  truncate_dim: the first dimensions of each vector, before `normalize` (Matryoshka, Kusupati
        et al. 2022, https://arxiv.org/abs/2205.13147), by default the checkpoint's.  precision, ranges: see
        `zoo.tasks.vectors.quantise`.  route: "query" or "document", for checkpoints that have layers for each.
        processes: how many share the batches, each with its part of the threads; vectors are bit-equal to those of one
        process with that many.

        A text of more than `embed.max_tokens` tokens is cut at the end, with a warning.
        """
        inputs, single = texts_or_errors(texts, "texts", least=0)
        compute = self.computing(prompt_name, prompt, pooling, normalize, truncate_dim, route)
        quantise(np.zeros((0, 1)), precision)  # a wrong name is an error before the work, as are the other arguments
        with self._worker_pool(
            processes if inputs else 1, (prompt_name, prompt, pooling, normalize, truncate_dim, route)
        ) as each:
            found = self.rows(*compute(inputs), progress=progress, each=each) if inputs else ()
            vectors = [vector for _, _, vector in found]
        if not vectors:
            return quantise(np.zeros((0, self._dimensions(pooling, truncate_dim)), np.float32), precision, ranges)
        good = [vector for vector in vectors if not isinstance(vector, ZooError)]
        if len(good) < len(vectors):
            rest = iter(quantise(np.stack(good), precision, ranges) if good else ())
            return collect_results(map_good(lambda _: next(rest), vectors), single)
        return quantise(vectors[0].copy() if single else np.stack(vectors), precision, ranges)

    def encode(
        self,
        texts: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        *,
        normalize_embeddings: bool = False,
        precision: str = "float32",
        truncate_dim: int | None = None,
        task: str | None = None,
        processes: int = 1,
        **others: Any,
    ) -> np.ndarray:
        """The vectors that `SentenceTransformer.encode` gives, with its names of options -> (E,), or (N, E).

        A checkpoint without a modules.json gets the mean of all tokens at its own length, unless normalize_embeddings.
        Batches are of about equally many tokens, whatever batch_size says.  InputError for an option that zoo does not
        have names the one to take.
        """
        check_peers(others, ENCODE_PEERS, ("normalize_embeddings", "precision", "truncate_dim", "task", "processes"))
        unit = True if normalize_embeddings else None if self.encoder.files else False
        return self(
            texts,
            prompt_name=None if prompt is not None else prompt_name,
            prompt=prompt,
            normalize=unit,
            truncate_dim=truncate_dim,
            precision=precision,
            route=task if self.has_routes else None,
            progress=show_progress_bar,
            processes=processes,
        )

    def stream(
        self,
        texts: Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        precision: str = "float32",
        ranges: Any = None,
        route: str | None = None,
        progress: Callable[[int], object] | None = None,
        processes: int = 1,
    ) -> Iterator[np.ndarray]:
        """The vector (E,) of each text, in order; options as for a call.

        Texts are read a few thousand at a time, so that they may come from a file larger than the memory.
        progress: a function that is told how many texts are done since it was last called.  InputError
        for a text that cannot be used ends the iteration, after the vectors of the texts before it.
        """
        compute = self.computing(prompt_name, prompt, pooling, normalize, truncate_dim, route)
        if precision in ("int8", "uint8") and ranges is None:
            raise InputError(f"precision {precision!r} of a stream needs ranges=, (2, E): those of many vectors")
        quantise(np.zeros((0, 1)), precision)
        shared = self._worker_pool(processes, (prompt_name, prompt, pooling, normalize, truncate_dim, route))
        return self._stream(iter(as_iterable(texts, "texts")), compute, shared, precision, ranges, progress or False)

    def _stream(
        self,
        texts: Iterator[Any],
        compute: Any,
        shared: Any,
        precision: str,
        ranges: Any,
        progress: bool | Callable[[int], object],
    ) -> Iterator[np.ndarray]:
        at = 0
        with shared as each:
            for some in text_blocks(texts):
                inputs = [text_or_error(text, "texts", at + i) for i, text in enumerate(some)]
                for i, _, vector in self.rows(*compute(inputs), progress=progress, each=each):
                    if isinstance(vector, ZooError):
                        raise vector.about("texts", at + i)
                    yield quantise(vector.copy(), precision, ranges)
                at += len(some)

    def _worker_pool(self, processes: int, settings: tuple[Any, ...]) -> Any:
        """A context that gives `each` for `rows`: by processes, which load the task too; settings: of `computing`."""
        if check_count(processes, "processes") == 1:
            return nullcontext(map)
        if self.options is None or self.checkpoint is None or self.options.trainable:
            raise InputError("processes load the checkpoint's files: expected a task of zoo.load, not to be trained")
        path = self.checkpoint.folder if self.checkpoint.opened is None else self.checkpoint.weights[0]
        options = replace(self.options, revision=None, lock=None)
        return _by_processes(InProcess(str(path), options, settings), processes)

    def computing(
        self,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        route: str | None = None,
    ) -> Callable[[Sequence[str | ZooError]], tuple[list[Any], None, Callable[[Encoding], np.ndarray]]]:
        """The checked arguments as a function from texts to the arguments of `rows`."""
        if pooling is not None:
            check_choice(pooling, "pooling", POOLINGS)
        before = self._prompt(prompt_name, prompt)
        skip = 0 if self.encoder.include_prompt or not before else self.prompt_length(before)
        if route is not None and not self.has_routes:
            raise InputError(f"route is {route!r}, but the checkpoint has the same layers for all texts")
        steps = self.encoder.steps_for(route)
        if pooling is not None:
            steps = [step for step in steps if step is unit_length]
        if normalize is not None:
            steps = [step for step in steps if step is not unit_length]
        first = self._dimensions(pooling, truncate_dim)
        model = cast(TextModel, self.model)

        def vectors(batch: Encoding) -> np.ndarray:
            if model.embeds is not None and pooling is None and not self.encoder.files:
                y = self._project(model, batch)
                return truncate(y if normalize is False else unit_length(y), first, bool(normalize))
            y = self._pool_states(model, batch, skip, self.encoder.pooling if pooling is None else (pooling,))
            for step in steps:
                y = step(y)
            return truncate(y, first, bool(normalize))

        return lambda texts: (map_good(lambda text: before + text, texts), None, vectors)

    def _pool_states(self, model: TextModel, batch: Encoding, skip: int, modes: tuple[str, ...]) -> np.ndarray:
        """The states of texts, without their first `skip` tokens, pooled: (B, D * len(modes))."""
        if not batch.input_ids.size:  # empty texts, of a tokenizer that adds no special tokens
            return np.zeros((len(batch.input_ids), self.config.hidden_size * len(modes)), np.float32)
        x = ops.to_numpy(self.call(model, batch).last_hidden_state).astype(np.float32, copy=False)
        mask = batch.attention_mask
        if skip:
            mask = mask & (np.arange(mask.shape[1]) >= skip)
        return pool(x, mask, modes)

    def _dimensions(self, pooling: str | None, truncate_dim: int | None) -> int:
        """The dimensions that a vector is cut to; InputError for more than it has."""
        if pooling is not None:
            whole = chosen = self.config.hidden_size
        else:
            chosen = self.size
            whole = chosen if self.encoder.truncate_dim is None else self.encoder.size or self.config.hidden_size
        return chosen if truncate_dim is None else truncate(np.zeros((0, whole)), truncate_dim).shape[1]

    def _project(self, model: TextModel, batch: Encoding) -> np.ndarray:
        """The model's own vectors of texts (B, E), beside those of images."""
        if model.pads_texts:
            ids = np.full((len(batch.input_ids), model.max_positions), self.tokenizer.pad_token_id or 0)
            ids[:, : batch.input_ids.shape[1]] = batch.input_ids
            found = self.runner(model, ids)
        else:
            found = self.call(model, batch)
        return ops.to_numpy(getattr(found, str(model.embeds))).astype(np.float32, copy=False)

    @property
    def has_routes(self) -> bool:
        """True if the checkpoint has layers of their own for queries and documents."""
        return any(isinstance(step, Router) for step in self.encoder.steps)

    @property
    def size(self) -> int:
        """E, the number of dimensions of a vector."""
        if cast(TextModel, self.model).embeds is not None and not self.encoder.files:
            return self._projected_size
        return self.encoder.truncate_dim or self.encoder.size or self.config.hidden_size

    @cached_property
    def _projected_size(self) -> int:
        batch = self.tokenizer([""], max_length=self.max_tokens)
        return self._project(cast(TextModel, self.model), batch).shape[1]

    def similarity(self, a: Any, b: Any = None) -> np.ndarray:
        """The score of every pair, by the checkpoint's similarity function, which mostly is the cosine.

        a, b: texts, or vectors (N, E) and (M, E) -> (N, M); without b, of a with itself.
        """
        x = self._vectors_of(a, "a", self)
        return scores(x, x if b is None else self._vectors_of(b, "b", self), self.encoder.similarity)

    def semantic_search(self, queries: Any, corpus: Any, *, top_k: int = 10, **options: Any) -> list[list[Hit]]:
        """The texts of a corpus that are nearest to each query, the nearest first, by `similarity`.

        queries, corpus: texts, which `encode_query` and `encode_document` make vectors of, or vectors (N, E), (M, E).
        options: as for `zoo.tasks.vectors.semantic_search`, which reads a corpus of vectors in blocks.
        """
        given = {"similarity": self.encoder.similarity, **options}
        x = self._vectors_of(queries, "queries", self.encode_query)
        return semantic_search(x, self._vectors_of(corpus, "corpus", self.encode_document), top_k=top_k, **given)

    def _vectors_of(self, value: Any, name: str, encode: Callable[..., np.ndarray]) -> np.ndarray:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
        return as_vectors(value, name) if is_array else np.atleast_2d(encode(value))


class InProcess:
    """The work of a process on a batch; it loads the task for the first."""

    def __init__(self, path: str, options: Options, settings: tuple[Any, ...]):
        self.path, self.options, self.settings = path, options, settings
        self.vectors: Callable[[Encoding], np.ndarray] | None = None

    def __call__(self, batch: Encoding) -> np.ndarray:
        if self.vectors is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the first process has warned
                task = text_embedder(self.path, **vars(self.options))
            self.vectors = task.computing(*self.settings)([])[2]
        return self.vectors(batch)


@contextmanager
def _by_processes(do: InProcess, count: int) -> Iterator[Callable[[Any, Iterable[Encoding]], Iterator[np.ndarray]]]:
    from ..processes import Processes  # whose modules take a fifteenth of a load

    def raise_death(batch: Encoding) -> np.ndarray:
        rows, tokens = batch.input_ids.shape
        raise ZooError(
            f"a process ended while it computed {rows} texts of {tokens} tokens: is there too little memory?"
        )

    with Processes(do, count) as processes:
        yield lambda _, batches: processes.share(batches, raise_death)


def text_embedder(name: str | os.PathLike[str], **options: Any) -> Embed:
    """The task of a checkpoint that embeds texts, for other libraries' classes; arguments as for `zoo.load`."""
    from . import load_task

    task = load_task(name, "embed", **options)
    if not isinstance(task, Embed):
        raise InputError(f"{name} reads images, expected a checkpoint that reads texts")
    return task
