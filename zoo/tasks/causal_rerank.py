"""Reranking by a language model that is asked whether a document answers a query: Qwen3-Reranker and its kin.

The score is the logit of "yes" less that of "no" after the question (Zhang et al. 2025, https://arxiv.org/abs/2506.05176).
What is asked is the checkpoint's chat template, which has messages of the roles "query" and "document", and one of the
role "system" for an instruction.

Shapes: B pairs of a batch, T tokens, V vocab_size.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import ops
from ..checkpoint.modules import MODULES, is_causal_reranker, read_transformer, refuse_unknown
from ..errors import ConfigError, InputError, UnsupportedError
from ..generate.decoder import pad_rows
from ..inputs.heads import CausalLM
from ..text.chat import ChatTemplate
from ..warning import warn
from .base import batches
from .progress import Progress
from .rerank import Rerank

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..pretrained import Pretrained
    from ..text.tokenizer import Tokenizer

ANSWERS = "yes", "no"  # where no module says which tokens are looked at
# The question of Qwen3-Reranker's model card, for files that have a template for chats alone.
QUESTION = """\
<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. \
Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first \
| default("Given a web search query, retrieve relevant passages that answer the query", true) }}
<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}<|im_end|>
<|im_start|>assistant
<think>

</think>

"""
PROBES = ("alpha", "bravo"), ("charlie", "bravo"), ("alpha", "foxtrot")  # pairs that a template must tell apart


class CausalRerank(Rerank):
    """Documents by relevance to a query, as a language model judges each pair.

    >>> rerank = zoo.load("Qwen/Qwen3-Reranker-0.6B", task="rerank")
    >>> rerank("What is the capital of China?", ["Gravity attracts bodies.", "The capital is Beijing."])[0]
    Ranked(document=1, score=0.99..., text='The capital is Beijing.')
    """

    one_label = False

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        self.causal = cast(CausalLM, model)
        self.template = ChatTemplate.of(tokenizer)
        self.variables: dict[str, Any] = {}
        tokens: list[Any] = [tokenizer.backend.token_to_id(word) for word in ANSWERS]
        modules = checkpoint.modules if checkpoint is not None else []
        if checkpoint is not None and modules:
            tokens = self._read_modules(checkpoint, modules)
        elif not self._takes_pairs(self.template) and self.config.model_type.startswith("qwen3"):
            self.template = ChatTemplate(
                {"default": QUESTION}, tokenizer, "the question of Qwen3-Reranker's model card"
            )
        if self.template is not None and not self._takes_pairs(self.template):
            raise UnsupportedError(
                f"{self.template.where} has no place for a query and a document, so that {self!r} cannot be asked: "
                "reranking needs a chat template with the roles 'query' and 'document'"
            )
        if any(not isinstance(i, int) or not 0 <= i < self.config.vocab_size for i in tokens) or not tokens:
            raise ConfigError(
                f"the answers {', '.join(ANSWERS)} are the tokens {tokens}, expected ids below {self.config.vocab_size}"
            )
        self.answers = np.array(tokens)
        self.ends = self._suffixes()

    def pair_ids(
        self, queries: list[str], texts: list[str], instruction: str = "", *, cut: bool = True
    ) -> tuple[list[list[int]], int]:
        """The tokens of each pair, and how many pairs were cut; with cut=False too long a pair is an error."""
        rows, count = [], 0
        for i, (query, text) in enumerate(zip(queries, texts, strict=True)):
            ids, room = self._ids(query, text, instruction), self.max_tokens
            if len(ids) > room:
                if not cut:
                    raise InputError(
                        f"has {len(ids)} tokens, and the model takes {room}", argument="documents", index=i
                    )
                end = self.ends if self.ends and ids[-len(self.ends) :] == self.ends else []
                ids, count = ids[: room - len(end)] + end, count + 1
            rows.append(ids)
        return rows, count

    def logits(self, rows: list[list[int]], progress: bool | None = None) -> np.ndarray:
        """The logit of each row of tokens, (N,) float32."""
        lengths, out = np.array([len(row) for row in rows]), np.empty(len(rows), np.float32)
        with Progress(len(rows), progress) as advance:
            for index in batches(lengths, self.batch_tokens):
                ids, some = pad_rows([rows[i] for i in index])
                found = self.causal.next_logits(ids, some, self.causal.new_cache(*ids.shape))
                y = ops.to_numpy(found)[:, self.answers].astype(np.float32)
                out[index] = y[:, 0] - y[:, 1] if len(self.answers) > 1 else y[:, 0]
                advance(len(index))
        return out

    def _scores(
        self, queries: list[str], texts: list[str], raw: bool, progress: bool | None, prompt: str = ""
    ) -> np.ndarray:
        rows, cut = self.pair_ids(queries, texts, prompt)
        if cut:
            warn(f"{cut} of {len(texts)} documents made more than {self.max_tokens} tokens, and were cut there")
        logits = self.logits(rows, progress)
        return logits if raw else self.score(logits).astype(np.float32, copy=False)

    def _ids(self, query: str, document: str, instruction: str = "") -> list[int]:
        if self.template is None:
            row: Any = self.tokenizer.encode_batch([instruction + query], [document], truncation=False).rows[0]
            return list(row.ids)
        return self.template.encode(_messages(query, document, instruction), **self.variables)

    def _takes_pairs(self, template: ChatTemplate | None) -> bool:
        """True if a template writes both texts of a pair."""
        try:
            found = [template.render(_messages(*pair), **self.variables) for pair in PROBES] if template else []
        except InputError:
            return False
        return len(set(found)) == len(PROBES)

    def _suffixes(self) -> list[int]:
        """The tokens that follow every document, which stay where one is cut."""
        pairs = (("alpha", "bravo"), ("alpha", "foxtrot golf")) if self.template is not None else ()
        rows = [self._ids(*pair)[::-1] for pair in pairs]
        same = 0
        for one, other in pairwise(rows):
            same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        return rows[0][:same][::-1] if rows else []

    def _read_modules(self, checkpoint: Checkpoint, modules: list[tuple[str, str]]) -> list[Any]:
        """Settings of the checkpoint's modules -> the tokens of the answers."""
        folder = checkpoint.contents
        if not is_causal_reranker(modules) or len(modules) != 2 or modules[0][0] != "Transformer":
            kinds = ", ".join(kind for kind, _ in modules)
            raise UnsupportedError(f"{folder.where(MODULES)}: the modules {kinds}, expected Transformer, LogitScore")
        settings, files = read_transformer(folder, "text-generation", refused=())
        where = folder.where(files[0]) if files else ""
        kinds = settings.raw.get("modality_config")
        if isinstance(kinds, dict) and "message" not in kinds:
            self.template = None
        options = settings.raw.get("processing_kwargs") or {}
        known = {"add_generation_prompt", "enable_thinking", "restore_suffix"}
        template = options.get("chat_template", {}) if isinstance(options, dict) else None
        if not isinstance(template, dict) or set(options) - {"chat_template"} or set(template) - known:
            raise UnsupportedError(f"{where}: processing_kwargs = {options!r} is not implemented")
        if "add_generation_prompt" in template:
            self.variables["add_generation_prompt"] = template["add_generation_prompt"] is True
        if "enable_thinking" in template:
            self.variables["variables"] = {"enable_thinking": template["enable_thinking"]}
        if settings.max_tokens is not None:
            self.max_tokens = min(settings.max_tokens, self.base_model.embeddings.max_positions)
        name = f"{modules[1][1]}/config.json"
        answer = folder.json(name)
        refuse_unknown(answer, ("true_token_id", "false_token_id", "module_input_name"), folder.where(name))
        if answer.get("module_input_name", "causal_logits") != "causal_logits":
            raise UnsupportedError(f"{folder.where(name)}: module_input_name = {answer['module_input_name']!r}")
        self.files = tuple(dict.fromkeys([MODULES, *files, name, *self.files]))
        found = [answer.get("true_token_id"), answer.get("false_token_id")]
        return found if found[1] is not None else found[:1]


def _messages(query: str, document: str, instruction: str = "") -> list[dict[str, str]]:
    system = [{"role": "system", "content": instruction}] if instruction else []
    return [*system, {"role": "query", "content": query}, {"role": "document", "content": document}]
