"""The bodies of requests: their fields, types and ranges, which msgspec checks.

A field that is not named here is an error.  Those under "without effect" are accepted,
since clients send them, and change no answer.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

MAX_TEXTS = 2048  # of a request
MAX_CHOICES = 16  # continuations of a prompt
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=100)]
Texts = Annotated[list[str], Meta(min_length=1, max_length=MAX_TEXTS)]
Neutral = Annotated[float, Meta(ge=0, le=0)]  # a penalty that is not implemented: only 0


class Strict(Struct, forbid_unknown_fields=True, kw_only=True):
    model: str | None = None  # may be left out where one model alone fits


class Ignored(Struct):
    """An object whose fields are passed over as they are read."""


class EmbeddingsRequest(Strict, kw_only=True):
    """`truncate`: cut texts that are too long, which are an error otherwise.  `prompt_name`: of the checkpoint."""

    input: str | Annotated[list[str | int | list[int]], Meta(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: str = "float"
    dimensions: Count | None = None
    truncate: bool = False
    prompt_name: str | None = None
    user: str | None = None  # without effect


class Document(Struct):
    """A document to rerank; its other fields are passed over as they are read: empty lists take 25 times their text."""

    text: Any = None


class RerankRequest(Strict, kw_only=True):
    """The form of Cohere and Jina; documents may also be objects with a `text`."""

    query: str
    documents: Annotated[list[str | Document], Meta(min_length=1, max_length=MAX_TEXTS)]
    top_n: Count | None = None
    return_documents: bool = False
    truncate: bool = True
    max_chunks_per_doc: int | None = None  # without effect
    max_tokens_per_doc: int | None = None


class ClassifyRequest(Strict, kw_only=True):
    """The form of vLLM; `pairs` are second texts, one for each input."""

    input: str | Texts
    pairs: str | Texts | None = None
    top_k: Count | None = None
    truncate: bool = False
    user: str | None = None


class TokenizeRequest(Strict, kw_only=True):
    """Either a `prompt` or, for a model with a chat template, `messages`."""

    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_special_tokens: bool = True
    add_generation_prompt: bool = True


class FileRequest(Strict, kw_only=True):
    """A picture or a PDF, in base64 or as a data URL; or the file itself as the request's body, or in a form."""

    file: str
    pages: str | None = None  # such as 3-7,9
    threshold: Share = 0.5  # the lowest score of a table and its parts
    whole: bool = False  # each page is the picture of one table


class StreamOptions(Struct, forbid_unknown_fields=True, kw_only=True):
    include_usage: bool = False
    include_obfuscation: bool = False  # without effect


class Writing(Strict, kw_only=True):
    """The choice of tokens; the defaults are those of the checkpoint's generation_config.json."""

    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    min_tokens: Annotated[int, Meta(ge=0)] | None = None
    temperature: Temperature | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    min_p: Share | None = None
    repetition_penalty: Annotated[float, Meta(gt=0)] | None = None
    seed: Annotated[int, Meta(ge=0)] | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] | None = None
    stop: str | Annotated[list[str], Meta(max_length=16)] | None = None
    structured_outputs: dict[str, Any] | None = None
    frequency_penalty: Neutral | None = None
    presence_penalty: Neutral | None = None
    logit_bias: Annotated[dict[str, float], Meta(max_length=0)] | None = None
    user: str | None = None  # without effect


class CompletionRequest(Writing, kw_only=True):
    """`prompt`: a text or tokens, or several."""

    prompt: str | Annotated[list[str | int | list[int]], Meta(min_length=1)]
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    echo: Annotated[bool, Meta()] = False
    best_of: Annotated[int, Meta(ge=1)] | None = None
    suffix: str | None = None


class ChatRequest(Writing, kw_only=True):
    """`tools` are shown to the model as its chat template has them."""

    messages: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: Annotated[list[dict[str, Any]], Meta(max_length=128)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None  # without effect, as the following
    metadata: Ignored | None = None
    store: bool | None = None
    service_tier: str | None = None
