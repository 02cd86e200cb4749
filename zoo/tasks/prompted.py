"""PromptedTask: what encoders of texts share, which is prompts for queries and documents and the habits of other
libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import InputError, nearest
from ..text.given import check_text
from .base import TextTask

Peer = tuple[tuple[Any, ...], str]

AS_ARRAYS = "results are NumPy arrays, which torch.from_numpy makes tensors of"
_ONE_PLACE = "the device is an option of zoo.load, and processes=N of Embed shares the work"
# Options of other libraries' encode and embed -> the values that change nothing, and what to do instead of others.
PEERS: Mapping[str, Peer] = {
    "device": ((None,), _ONE_PLACE),
    "pool": ((None,), _ONE_PLACE),
    "chunk_size": ((None,), _ONE_PLACE),
    "parallel": ((None, 1), _ONE_PLACE),
    "prompts": ((None,), "give one prompt= for all texts"),
    "max_length": ((None,), "set max_tokens of the task before the call"),
    "max_seq_length": ((None,), "set max_tokens of the task before the call"),
}
# Those of SentenceTransformer.encode.
ENCODE_PEERS: Mapping[str, Peer] = {
    **PEERS,
    "convert_to_numpy": ((True, None), AS_ARRAYS),
    "convert_to_tensor": ((False, None), AS_ARRAYS),
    "output_value": (("sentence_embedding",), "vectors of tokens are embed.model(...).last_hidden_state"),
    "normalize": ((None, False), "the option of encode is normalize_embeddings"),
}


def check_peers(given: Mapping[str, Any], peers: Mapping[str, Peer], own: Sequence[str]) -> None:
    """InputError for an option that encode does not have, and for a value of a peer's that would change something."""
    for name, value in given.items():
        if name not in peers:
            raise InputError(f"encode has no option {name!r}{nearest(name, (*peers, *own))}")
        same, instead = peers[name]
        if value not in same:
            raise InputError(f"{name} is {value!r}: {instead}")


def chosen_prompt(name: str | None, prompt: str | None, prompts: Mapping[str, str], default: str | None) -> str:
    """The user's `prompt`, or the one of the checkpoint's `prompts` that is named, or else its default one, or ""."""
    if name is not None and prompt is not None:
        raise InputError("prompt_name and prompt are both given: expected one of them")
    if prompt is not None:
        return check_text(prompt, "prompt")
    name = default if name is None else name
    if name is None:
        return ""
    if name not in prompts:
        known = ", ".join(map(repr, prompts)) or "none"
        raise InputError(f"prompt_name is {name!r}, and the checkpoint's are: {known}{nearest(str(name), prompts)}")
    return prompts[name]


class PromptedTask(TextTask):
    """A task whose checkpoints may have prompts, and layers for queries and for documents."""

    encoder: Any  # what the checkpoint's files say: prompts, default_prompt, max_tokens, lower_case, files

    def encode(self, texts: str | Iterable[str], prompt_name: str | None = None, **options: Any) -> Any:
        """The vectors of texts, with sentence-transformers' names of options."""
        raise NotImplementedError

    def take_settings(self) -> None:
        """Take the encoder's longest row in place of the tokenizer's, and small letters if it asks for them."""
        if self.encoder.max_tokens is not None:
            self.max_tokens = min(self.encoder.max_tokens, self.base_model.embeddings.max_positions)
        if self.encoder.lower_case:
            self.tokenizer = self.tokenizer.with_lowercase()

    def encode_query(self, texts: str | Iterable[str], prompt_name: str | None = None, **options: Any) -> Any:
        """As `encode`, with the checkpoint's prompt "query", if it has one, and its layers for queries."""
        return self._encode_as("query", texts, prompt_name, options)

    def encode_document(self, texts: str | Iterable[str], prompt_name: str | None = None, **options: Any) -> Any:
        """As `encode`, with the checkpoint's prompt "document", if it has one, and its layers for documents."""
        return self._encode_as("document", texts, prompt_name, options)

    def prompt_for(self, task: str) -> dict[str, str]:
        """The prompt of a "query" or a "document" as an argument; the checkpoint's default one is for neither."""
        return {"prompt_name": task} if task in self.prompts else {"prompt": ""}

    def _encode_as(self, task: str, texts: Any, prompt_name: str | None, options: dict[str, Any]) -> Any:
        if prompt_name is None and options.get("prompt") is None:
            options = {**options, **self.prompt_for(task)}
        else:
            options = {**options, "prompt_name": prompt_name}
        return self.encode(texts, **{"task": task, **options})

    @property
    def prompts(self) -> dict[str, str]:
        """The checkpoint's prompts by name."""
        return self.encoder.prompts

    def prompt_length(self, prompt: str) -> int:
        """Tokens of a prompt before a text: with the special ones in front, without the one at the end."""
        row: Any = self.tokenizer.encode_batch([prompt], max_length=self.max_tokens).rows[0]
        ids = row.ids
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    def extra_files(self) -> list[str]:
        return list(self.encoder.files)

    def _prompt(self, name: str | None, prompt: str | None) -> str:
        return chosen_prompt(name, prompt, self.prompts, self.encoder.default_prompt)
