"""Rerank: documents in the order in which they answer a query, by a cross-encoder that reads both together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..checkpoint.modules import SETTINGS, read_settings
from ..errors import InputError, UnsupportedError, ZooError, quantity
from ..peer_names import with_keys
from ..pretrained import Pretrained
from ..text.given import check_text
from .arguments import as_list, check_count
from .base import TextTask, sigmoid
from .pipeline_names import with_pipeline_names
from .prompted import chosen_prompt
from .results import Lines, ResultFormat

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer

# The names of what turns the logit into a score, as sentence-transformers writes them: classes of torch.nn.
SCORES: dict[str, Callable[[Any], Any]] = {
    "Sigmoid": sigmoid,
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "SiLU": lambda x: x * sigmoid(x),
    "Softplus": lambda x: np.logaddexp(x, 0),
    "LogSigmoid": lambda x: -np.logaddexp(-x, 0),
}


@with_keys(corpus_id="document")
class Ranked(NamedTuple):
    document: int  # its index in the list that was passed
    score: float
    text: str

    @property
    def corpus_id(self) -> int:
        """`document`, as sentence-transformers calls it."""
        return self.document


class Ranking(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {"documents": [{"document": "int64", "score": "double", "text": "string"}]}

    def lines(self, result: list[Ranked]) -> Lines:
        return [(f"{x.score:.4f}", str(x.document + 1), x.text) for x in result]


class Rerank(TextTask):
    """Documents by relevance to a query.

    >>> rerank = zoo.load("cross-encoder/ms-marco-MiniLM-L6-v2")
    >>> rerank("How many people live in Berlin?", ["Berlin is well known.", "Berlin has 3.8 million inhabitants."])[0]
    Ranked(document=1, score=8.7..., text='Berlin has 3.8 million inhabitants.')
    """

    name = "rerank"
    results = Ranking()
    one_label = True  # the model's output is the logit

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        if self.one_label and self.config.num_labels != 1:
            raise UnsupportedError(
                f"it has {quantity(self.config.num_labels, 'label')}; reranking needs one: use task='classify'"
            )
        self.prompts: dict[str, str] = {}
        self.default_prompt: str | None = None
        self.files: tuple[str, ...] = ()
        if checkpoint is not None and checkpoint.contents.has(SETTINGS):
            settings = read_settings(
                checkpoint.contents, ("CrossEncoder",), (), ("activation_fn", "keep_in_fp32_modules")
            )
            self.prompts, self.default_prompt, self.files = settings.prompts, settings.default_prompt, settings.files
        self.score = SCORES[self._activation()]

    def __call__(
        self,
        query: str,
        documents: Iterable[str],
        *,
        top_k: int | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        raw: bool = False,
        progress: bool | None = None,
    ) -> list[Ranked]:
        """The documents, the most relevant first; equal ones keep their order.

        top_k: how many; all if not given.  prompt_name, prompt: one of the checkpoint's `prompts`, or one of your own,
        which comes before the query, or is the instruction of a language model.  Scores are in 0 ... 1, unless the
        checkpoint says that its logits are the scores; raw=True gives the logits in any case.

        Where query and document together are longer than the checkpoint takes, the longer is cut, with a warning.
        """
        query = check_text(query, "query")
        if isinstance(documents, str):
            documents = [documents]
        texts = [check_text(text, "documents", i) for i, text in enumerate(as_list(documents, "documents"))]
        if top_k is not None:
            top_k = check_count(top_k, "top_k")
        before = chosen_prompt(prompt_name, prompt, self.prompts, self.default_prompt)
        found = self._scores([query] * len(texts), texts, raw, progress, before)
        ranked = [Ranked(i, score, text) for i, (score, text) in enumerate(zip(found.tolist(), texts, strict=True))]
        return sorted(ranked, key=lambda r: -r.score)[:top_k]

    def rank(
        self,
        query: str,
        documents: Iterable[str],
        top_k: int | None = None,
        return_documents: bool = False,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """The same as sentence-transformers' CrossEncoder has it: {"corpus_id", "score"}, and "text" if asked for.

        options: as for a call.
        """
        found = self(query, documents, top_k=top_k, **options)
        texts = [{"text": one.text} if return_documents else {} for one in found]
        return [{"corpus_id": r.document, "score": r.score, **text} for r, text in zip(found, texts, strict=True)]

    @with_pipeline_names
    def predict(
        self,
        pairs: tuple[str, str] | Iterable[tuple[str, str]],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        raw: bool = False,
        progress: bool | None = None,
    ) -> np.ndarray:
        """The score of each (query, document) -> (N,) float32, in the order of the pairs; options as for a call.

        A pair alone has a score alone.
        """
        given = as_list(pairs, "pairs", 0)
        if isinstance(pairs, list | tuple) and len(given) == 2 and all(isinstance(one, str) for one in given):
            return self.predict([tuple(given)], prompt_name=prompt_name, prompt=prompt, raw=raw, progress=progress)[0]
        for i, pair in enumerate(given):
            if isinstance(pair, str) or not isinstance(pair, list | tuple) or len(pair) != 2:
                raise InputError("is not a pair, expected (query, document)", argument="pairs", index=i)
        queries, texts = ([check_text(pair[side], "pairs", i) for i, pair in enumerate(given)] for side in (0, 1))
        before = chosen_prompt(prompt_name, prompt, self.prompts, self.default_prompt)
        return self._scores(queries, texts, raw, progress, before) if given else np.zeros(0, np.float32)

    def _scores(
        self, queries: list[str], texts: list[str], raw: bool, progress: bool | None, prompt: str = ""
    ) -> np.ndarray:
        queries = [prompt + query for query in queries]
        found = [logit for _, _, logit in self.rows(queries, texts, self.outputs, progress=progress)]
        if (bad := next((i for i, logit in enumerate(found) if isinstance(logit, ZooError)), None)) is not None:
            raise found[bad].about("documents", bad)  # one ranking is made of all
        logits = np.array(found, np.float32)
        return logits if raw else self.score(logits).astype(np.float32, copy=False)

    def outputs(self, batch: Encoding) -> np.ndarray:
        """The logits (B,) of a padded batch of pairs; `score` turns them into scores."""
        return ops.to_numpy(self.call(self.model, batch))[:, 0]

    def extra_files(self) -> list[str]:
        return list(self.files)

    def _activation(self) -> str:
        """The activation from one of the three places where sentence-transformers has kept it; else the sigmoid."""
        nested: Any = self.config.extra.get("sentence_transformers")
        name = nested.get("activation_fn") if isinstance(nested, dict) else None
        name = name or self.config.extra.get("sbert_ce_default_activation_function")
        if name is None and self.files and self.checkpoint:
            name = self.checkpoint.contents.json(SETTINGS).get("activation_fn")
        kind = str(name or "torch.nn.Sigmoid")
        if not kind.startswith("torch.nn.") or kind.rpartition(".")[2] not in SCORES:
            raise UnsupportedError(f"the checkpoint's scores come from {kind!r}, and zoo has only {', '.join(SCORES)}")
        return kind.rpartition(".")[2]
