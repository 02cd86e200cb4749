"""The bodies of requests: their fields, types and ranges, which msgspec checks.

A field that is not named here is an error, and so is a value that is not implemented and would change the answer.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from .errors import ApiError

MAX_TEXTS = 2048  # texts of a request
MAX_CHOICES = 16  # continuations of a prompt
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=100)]
Texts = Annotated[list[str], Meta(min_length=1, max_length=MAX_TEXTS)]


def refuse_if(is_wrong: object, field: str, problem: str) -> None:
    """Raise ApiError for a field with a value that is not implemented, or that contradicts another field."""
    if is_wrong:
        raise ApiError(400, f"{field}: {problem}", param=field)


class Strict(Struct, forbid_unknown_fields=True, kw_only=True):
    model: str | None = None  # may be left out where one model alone fits


class ModelField(Struct):
    """A request of which only the model is read."""

    model: str | None = None


class Ignored(Struct):
    """An object whose fields are passed over as they are read."""


class EmbeddingsRequest(Strict, kw_only=True):
    """`input`: texts, or the model's token ids of each, special ones too, as `/tokenize` gives them.

    `truncate`: cut texts that are too long, which are an error otherwise.  `prompt_name`: of the checkpoint, for texts.
    """

    input: str | Annotated[list[str | int | list[int]], Meta(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: str = "float"
    dimensions: Count | None = None
    truncate: bool = False
    prompt_name: str | None = None
    user: str | None = None  # a name for OpenAI's statistics, which changes no answer


class Document(Struct):
    """A document to rerank; its other fields are passed over as they are read: empty lists take 25 times their text."""

    text: Any = None


class RerankRequest(Strict, kw_only=True):
    """The form of Cohere and Jina; documents may also be objects with a `text`.

    `max_tokens_per_doc`: a document is read up to there.  `truncate`: false makes one that is too long an error.
    """

    query: str
    documents: Annotated[list[str | Document], Meta(min_length=1, max_length=MAX_TEXTS)]
    top_n: Count | None = None
    return_documents: bool = False
    truncate: bool = True
    max_tokens_per_doc: Count | None = None
    max_chunks_per_doc: int | None = None

    def __post_init__(self) -> None:
        expected = "a document is read as one chunk, its beginning where it is too long: expected 1, or leave it out"
        refuse_if(self.max_chunks_per_doc not in (None, 1), "max_chunks_per_doc", expected)


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
    tools: list[dict[str, Any]] | None = None  # for messages
    add_special_tokens: bool | None = None  # for a prompt, by default true; a chat template writes its own
    add_generation_prompt: bool | None = None  # for messages, by default true

    def __post_init__(self) -> None:
        if (self.prompt is None) == (self.messages is None):
            raise ApiError(400, "give either prompt or messages", param="prompt")
        if self.messages is None:
            for field in ("tools", "add_generation_prompt"):
                refuse_if(getattr(self, field) is not None, field, "it is for messages, and a prompt is given")
        else:
            written = "a chat template writes the special tokens: leave it out with messages"
            refuse_if(self.add_special_tokens, "add_special_tokens", written)


class RunRequest(Strict, kw_only=True):
    """The form of the Hub's inference API.  `inputs`: a text, or a picture or audio in base64, or a list of them; for a
    task with several arguments an object that names them, {"question": ..., "context": ...}.  `parameters`: the options
    of the task.
    """

    inputs: str | dict[str, Any] | Annotated[list[Any], Meta(min_length=1, max_length=MAX_TEXTS)]
    parameters: dict[str, Any] = {}


class FileRequest(Strict, kw_only=True):
    """A file in base64 or as a data URL; or the file itself as the request's body, or in a form."""

    file: str


class PagesRequest(FileRequest, kw_only=True):
    """A picture or a PDF."""

    pages: str | None = None  # say 3-7,9
    whole: bool = False  # each page is the picture of one table, or of one line of text


class TablesRequest(PagesRequest, kw_only=True):
    """As for `/v1/read`; `threshold`: the lowest score of a table and its parts."""

    threshold: Share = 0.5


class TranslationRequest(FileRequest, kw_only=True):
    """A recording in any language, which is written in English.

    `temperature`: 0 is the likeliest text, and if that fails others.  `prompt`: names and words that may
    be said, spelt so.
    """

    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] = "json"
    temperature: Temperature = 0
    prompt: str | None = None

    @property
    def granularities(self) -> tuple[str, ...]:
        """What times are asked for."""
        return ("segment",)


class TranscriptionRequest(TranslationRequest, kw_only=True):
    """A recording, which is written in its language, or in `language`, a code such as "en".

    `timestamp_granularities`: of verbose_json, "segment" or "word" or both.  `stream`: only false.
    """

    language: str | None = None
    timestamp_granularities: list[Literal["word", "segment"]] | None = None
    stream: bool = False
    chunking_strategy: str | None = None
    include: list[str] | None = None

    def __post_init__(self) -> None:
        refuse_if(self.stream, "stream", "not implemented: expected false, or leave it out")
        refuse_if(self.include, "include", f"{', '.join(self.include or ())[:80]} is not here: leave it out")
        others = self.chunking_strategy not in (None, "auto")
        refuse_if(others, "chunking_strategy", f"{self.chunking_strategy!r:.50} is not here, only 'auto'")
        asks = self.timestamp_granularities and self.response_format not in ("verbose_json", "vtt")
        refuse_if(asks, "timestamp_granularities", "they are for response_format = 'verbose_json' or 'vtt'")

    @property
    def granularities(self) -> tuple[str, ...]:
        return (*(self.timestamp_granularities or ("segment",)),)


class StreamOptions(Struct, forbid_unknown_fields=True, kw_only=True):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None  # with include_usage: each chunk has the usage so far, as in vLLM
    include_obfuscation: bool | None = None  # only false is implemented


class Writing(Strict, kw_only=True):
    """The choice of tokens; the defaults are those of the checkpoint's generation_config.json.

    `frequency_penalty`, `presence_penalty`: by what was written, without the prompt.  `logit_bias`: token -> what is
    added to its score.
    """

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
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    logit_bias: dict[str, float] | None = None
    user: str | None = None  # a name for OpenAI's statistics, which changes no answer

    def __post_init__(self) -> None:
        if self.stream_options is not None:
            refuse_if(not self.stream, "stream_options", "it is for streams: add stream = true, or leave it out")
            hides = self.stream_options.include_obfuscation
            refuse_if(hides, "stream_options", "include_obfuscation is not implemented, expected false")
            lone = self.stream_options.continuous_usage_stats and not self.stream_options.include_usage
            refuse_if(lone, "stream_options", "continuous_usage_stats needs include_usage = true")
        most = self.most_tokens
        more = most is not None and (self.min_tokens or 0) > most
        refuse_if(more, "min_tokens", f"{self.min_tokens} is more than the most that are asked for, {most}")

    @property
    def most_tokens(self) -> int | None:
        """The most new tokens."""
        return self.max_tokens


class CompletionRequest(Writing, kw_only=True):
    """`prompt`: a text or tokens, or several.  `echo`: it begins the text, and its tokens the `logprobs`.

    `max_tokens`: 0 computes those of a prompt alone.  `best_of`: only `n` is implemented.  `suffix`: only an empty one.
    """

    prompt: str | Annotated[list[str | int | list[int]], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=0)] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    echo: bool = False
    best_of: Annotated[int, Meta(ge=1)] | None = None
    suffix: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_if(self.best_of not in (None, self.n or 1), "best_of", f"not implemented, expected n, {self.n or 1}")
        refuse_if(self.suffix, "suffix", "not implemented: a text is written behind its prompt alone")


class ChatRequest(Writing, kw_only=True):
    """`tools` are shown to the model as its chat template has them; of its calls there is only the first where
    `parallel_tool_calls` is false.

    `chat_template_kwargs`: further variables of the template, as vLLM has them; `enable_thinking` and
    `reasoning_effort` are two of them.  `include_reasoning`: false leaves `reasoning_content` out.
    `continue_final_message`: the answer goes on with the last message.
    `tool_choice`: "auto" or "none".  `service_tier`: "auto" or "default".  `store`: only false, and no `metadata`.
    """

    messages: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: Annotated[list[dict[str, Any]], Meta(max_length=128)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    include_reasoning: bool = True
    continue_final_message: bool | None = None
    parallel_tool_calls: bool | None = None
    metadata: Ignored | None = None
    store: bool | None = None
    service_tier: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        several = self.max_tokens is not None and self.max_completion_tokens not in (None, self.max_tokens)
        refuse_if(
            several, "max_tokens", "it is max_completion_tokens' old name, and both have values: send one of them"
        )
        needs = "it needs logprobs = true"
        refuse_if(self.top_logprobs is not None and not self.logprobs, "top_logprobs", needs)
        refuse_if(self.tool_choice not in (None, "none", "auto"), "tool_choice", "expected 'auto' or 'none'")
        refuse_if(self.store, "store", "no answer is stored here: expected false, or leave it out")
        stored = "it is for stored answers, and none is stored here: leave it out"
        refuse_if(self.metadata is not None, "metadata", stored)
        others = self.service_tier not in (None, "auto", "default")
        refuse_if(others, "service_tier", f"{self.service_tier!r:.50} is not here, only 'auto' and 'default'")
        for i, tool in enumerate(self.tools or ()):
            function = tool.get("function")
            if isinstance(function, dict) and function.get("strict"):
                refuse_if(True, "tools", f"strict of tools[{i}] is not implemented: a call is as the model writes it")

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class ResponsesRequest(Strict, kw_only=True):
    """OpenAI's newer form of chats, of which nothing is kept: the whole conversation is in `input`, a text or items.

    `tools`: functions.  `text`: a `format`.  `reasoning`: an `effort`.  `store`: only false.  `truncation`: "disabled".
    """

    input: str | Annotated[list[dict[str, Any]], Meta(min_length=1)]
    instructions: str | None = None
    stream: bool = False
    max_output_tokens: Count | None = None
    temperature: Temperature | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    min_p: Share | None = None
    seed: Annotated[int, Meta(ge=0)] | None = None
    stop: str | Annotated[list[str], Meta(max_length=16)] | None = None
    tools: Annotated[list[dict[str, Any]], Meta(max_length=128)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    metadata: dict[str, str] | None = None  # comes back with the response
    service_tier: str | None = None
    truncation: str | None = None
    include: list[str] | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None
    # Names for OpenAI's statistics and caches, which change no answer.
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    def __post_init__(self) -> None:
        refuse_if(self.store, "store", "no response is stored here: send false, or leave it out")
        resend = "no response is stored here: send the whole conversation as input"
        refuse_if(self.previous_response_id is not None, "previous_response_id", resend)
        refuse_if(self.conversation is not None, "conversation", resend)
        refuse_if(self.background, "background", "no response is stored here, so that none could be fetched later")
        refuse_if(self.prompt is not None, "prompt", "no prompt is stored here: send its text as instructions")
        refuse_if(self.include, "include", f"{', '.join(self.include or ())[:80]} is not here: leave it out")
        cuts = self.truncation not in (None, "disabled")
        refuse_if(cuts, "truncation", f"{self.truncation!r:.50} is not implemented, expected 'disabled'")
