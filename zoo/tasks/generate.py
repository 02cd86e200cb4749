"""Generate: text that goes on from a prompt, or answers in a chat."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, overload

import numpy as np

from ..cache import KVCache
from ..errors import InputError, UnsupportedError, ZooError
from ..generate import PREFIX_CACHE_BYTES, ContinuousBatch, Generated, GenerationConfig, PromptCache, generate, stream
from ..generate.perplexity import perplexity
from ..generate.text import StopStrings, TextStream, text_of
from ..inputs.image_prompt import ImagePrompt
from ..peer_names import with_keys
from ..pretrained import Pretrained
from ..text.chat import ChatTemplate, Messages
from ..text.long_texts import ids_within
from .arguments import as_texts, collect_results, texts_or_errors
from .base import TextTask, most_characters
from .conversation import Conversation
from .progress import Progress
from .results import Texts

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..checkpoint.files import Checkpoint
    from ..keywords import GenerationOptions
    from ..text.tokenizer import Tokenizer


@with_keys()
class TokenScore(NamedTuple):
    token: str
    token_id: int
    logprob: float  # what the model gave it, before temperature and all else


@with_keys(generated_text="text")
class Generation(NamedTuple):
    """The text that followed a prompt, with its tokens."""

    text: str
    tokens: tuple[TokenScore, ...]  # an end token included
    score: float  # the sum of the log-probabilities / tokens ** length_penalty
    reason: str  # why it ends: "stop" (an end token, or a text to stop at) or "length"


class Generate(TextTask):
    """The text that a language model writes.

    The checkpoint's generation_config.json (`llm.generation`) decides how, and options, which have the names of
    transformers: max_new_tokens (by default 512, or what the context has room for), do_sample, temperature, top_k,
    top_p, min_p, seed, num_beams, num_return_sequences, repetition_penalty, no_repeat_ngram_size, stop_strings,
    prompt_lookup_num_tokens, assistant_model (a task or model), ...: see `zoo.generate.GenerationConfig`.

    >>> llm = zoo.load("stories260k")
    >>> llm("Once upon a time", max_new_tokens=12)
    ', there was a little girl named Lily. She'
    """

    name = "generate"
    results = Texts()
    prompts_at_once: ClassVar[int] = 16  # each step reads all weights, whatever the number of rows
    template_options: ClassVar[tuple[str, ...]] = (
        "tools",
        "documents",
        "continue_final_message",
        "template",
        "variables",
    )

    def __init__(
        self,
        model: Pretrained,
        tokenizer: Tokenizer,
        checkpoint: Checkpoint | None = None,
        generation: GenerationConfig | None = None,
    ):
        if not getattr(model.config, "is_decoder", True):
            raise UnsupportedError(
                f"{model.architecture} with is_decoder = False in its config reads texts in both directions: it "
                "cannot go on from one"
            )
        super().__init__(model, tokenizer, checkpoint)
        generation = generation or GenerationConfig()
        if not generation.eos_token_id and tokenizer.eos_token_id is not None:
            generation = dataclasses.replace(generation, eos_token_id=(tokenizer.eos_token_id,))
        self.generation = generation
        self.template = ChatTemplate.of(tokenizer)
        self._assistant: Any = None  # the latest, whose tokens are this model's

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        return {"generation": GenerationConfig.from_folder(checkpoint.contents), **super().parts_of(checkpoint)}

    def extra_files(self) -> list[str]:
        name = "generation_config.json"
        return [name] if self.checkpoint and self.checkpoint.contents.has(name) else []

    @overload
    def __call__(
        self,
        texts: str,
        *,
        details: Literal[False] = False,
        progress: bool | None = None,
        **options: Unpack[GenerationOptions],
    ) -> str: ...
    @overload
    def __call__(
        self,
        texts: Iterable[str],
        *,
        details: Literal[False] = False,
        progress: bool | None = None,
        **options: Unpack[GenerationOptions],
    ) -> list[str]: ...
    @overload
    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        details: bool = False,
        progress: bool | None = None,
        num_return_sequences: int = 1,
        **options: Unpack[GenerationOptions],
    ) -> Any: ...
    def __call__(
        self, texts: str | Iterable[str], *, details: bool = False, progress: bool | None = None, **options: Any
    ) -> Any:
        """The text that follows each text: a str, or with `details` a Generation; a list for several.

        A text is a prompt as it stands: special tokens in it are special, and one that begins with the token for the
        beginning gets no second one.  With stop_strings the text ends before the first that comes.
        """
        if isinstance(texts, Sequence) and texts and isinstance(texts[0], Mapping) and "role" in texts[0]:
            raise InputError("texts are messages of a chat: chat(messages) answers them")
        inputs, single = texts_or_errors(texts, "texts")
        return self._generate_all(
            inputs, self.prompt_ids, self._merge_options(options), details, progress, "texts", single
        )

    def chat(self, messages: Any, *, details: bool = False, progress: bool | None = None, **options: Any) -> Any:
        """The answer to some messages, {"role": ..., "content": ...} each; a list of answers to a list of chats.

        options: those of `__call__`, and of `ChatTemplate.render`: tools, documents, continue_final_message, template.
        What a message says is text, even where it looks like a special token.
        """
        single = isinstance(messages, Sequence) and bool(messages) and isinstance(messages[0], Mapping)
        chats = [messages] if single else messages
        if not isinstance(chats, Sequence) or isinstance(chats, str) or not chats:
            raise InputError(
                f"messages: {str(messages)[:80]!r}, expected a list of messages such as "
                '{"role": "user", "content": "Hello"}, or a list of such lists'
            )
        config, shown = self._split(options)
        return self._generate_all(
            chats, lambda chat: self._chat_prompt(chat, shown), config, details, progress, "messages", single
        )

    def stream(
        self,
        prompt: str | Messages,
        *,
        cache: KVCache | PromptCache | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[str]:
        """The text that follows one prompt, or one chat, in pieces as they come: each is whole characters.

        cache: from `prompt_cache`, whose tokens are not computed again; or see `zoo.generate.stream`.
        """
        if isinstance(prompt, str):
            config = self._merge_options(options)
            ids = self.prompt_ids(as_texts(prompt, "prompt")[0][0])
        else:
            ids, config = self.chat_ids(prompt, options)
        return self.stream_ids(ids, config, cache)

    def conversation(self, system: str | None = None, **options: Any) -> Conversation:
        """A chat that goes on turn by turn; options as for `chat`."""
        return Conversation(self, system, **options)

    def chat_ids(self, messages: Messages, options: Mapping[str, Any]) -> tuple[Any, GenerationConfig]:
        """The tokens of a chat up to where the answer begins, and how to go on, from the options of `chat`."""
        config, shown = self._split(options)
        return self._chat_prompt(messages, shown), config

    def new_cache(self, capacity: int) -> KVCache:
        """An empty cache for one row."""
        return self._model.new_cache(1, capacity)

    def prompt_cache(self, path: str | os.PathLike[str] | None = None) -> PromptCache:
        """An empty cache for `stream`, to be kept from call to call; or one from a file that its `save_cache` wrote."""
        cache = PromptCache(self.model, self._model)
        if path is not None:
            cache.load_cache(path)
        return cache

    def continuous_batch(self, max_rows: int = 8, *, kept: int = PREFIX_CACHE_BYTES) -> ContinuousBatch:
        """An empty batch that prompts join and leave while others are generated, as a server needs it.

        kept: bytes of the keys and values of earlier rows, for prompts that begin alike.
        """
        return ContinuousBatch(self._model, max_rows, alone=getattr(self.model, "depends_on_length", False), kept=kept)

    def stream_ids(
        self,
        ids: list[int] | ImagePrompt,
        config: GenerationConfig,
        cache: KVCache | PromptCache | None = None,
        taken: list[int] | None = None,
    ) -> Iterator[str]:
        """`stream` for a prompt of tokens; `taken` gets the tokens, too."""
        if isinstance(cache, PromptCache):
            room = len(ids) + config.new_tokens(len(ids), self._model.max_positions)
            known, cache = cache, cache.begin(ids, room)
            taken = known.ids
        tokens = stream(self._model, ids, config, cache=cache)
        text = TextStream(self.tokenizer, ids, config.stop_strings, config.hidden_tokens)

        def pieces() -> Iterator[str]:
            for token in tokens:
                if taken is not None:
                    taken.append(token.id)
                if piece := text.add(token.id):
                    yield piece
                if text.stopped:
                    return
            if piece := text.finish():
                yield piece

        return pieces()

    def perplexity(self, texts: str | Iterable[str]) -> Any:
        """exp of the mean negative log-probability of a text's tokens, each given those before it; (B,) for a list.

        The first token is given.  A text that is longer than the context is refused.
        """
        inputs, single = as_texts(texts, "texts")
        found = np.array([perplexity(self.model, self.prompt_ids(text)) for text in inputs])
        return float(found[0]) if single else found

    @property
    def _model(self) -> Any:
        return self.runner.decoder(self.model)

    def _split(self, options: Mapping[str, Any]) -> tuple[GenerationConfig, dict[str, Any]]:
        """The options of generation, and those of the chat template."""
        shown = {k: v for k, v in options.items() if k in self.template_options}
        return self._merge_options({k: v for k, v in options.items() if k not in shown}), shown

    def _merge_options(self, options: Mapping[str, Any]) -> GenerationConfig:
        """The checkpoint's options of generation with a caller's."""
        if (assistant := options.get("assistant_model")) is None:
            return self.generation.replace(**options)
        if assistant is not self._assistant:
            self._check_assistant(assistant)
            self._assistant = assistant
        decoder = assistant._model if isinstance(assistant, Generate) else assistant.runner.decoder(assistant)
        return self.generation.replace(**{**options, "assistant_model": decoder})

    def _check_assistant(self, assistant: Any) -> None:
        """Raise InputError if a model's tokens are not those of this one."""
        if isinstance(assistant, Generate):
            own, other = (task.tokenizer.backend.get_vocab() for task in (self, assistant))
            if own != other:
                different = min(token for token in own.keys() | other.keys() if own.get(token) != other.get(token))
                raise InputError(
                    f"assistant_model has other tokens, as {different!r}: {other.get(different)} there, "
                    f"{own.get(different)} here: expected a model with the same tokenizer"
                )
        elif not hasattr(assistant, "next_logits"):
            raise InputError(f"assistant_model is {assistant!r:.80}, expected what zoo.load or zoo.load_model returned")
        elif (its := assistant.config.vocab_size) != (ours := self.model.config.vocab_size):
            raise InputError(
                f"assistant_model has {its} tokens, and the model {ours}: expected a model with the same tokenizer"
            )

    def prompt_ids(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The tokens of a text to go on from, with those that the tokenizer adds to texts."""
        if len(text) > most_characters(self.max_tokens):
            raise InputError(f"the prompt has {len(text)} characters, and the context is {self.max_tokens} tokens")
        ids = ids_within(self.tokenizer.backend, text, self.max_tokens, add_special_tokens)
        if len(ids) > 1 and ids[0] == ids[1] == self.tokenizer.bos_token_id:
            del ids[0]
        if not ids:
            raise InputError("the prompt is empty, and this tokenizer has no token for the beginning")
        return ids

    def _chat_prompt(self, messages: Messages, shown: dict[str, Any]) -> Any:
        if self.template is None:
            raise UnsupportedError(
                "the checkpoint has no chat template: it was trained to go on from a text, llm(text), not to answer"
            )
        answer = not shown.get("continue_final_message", False)
        return self.template.encode(messages, add_generation_prompt=answer, **shown)

    def _generate_all(
        self,
        given: Sequence[Any],
        ids_of: Callable[[Any], Any],
        config: GenerationConfig,
        details: bool,
        progress: bool | None,
        name: str,
        single: bool,
    ) -> Any:
        """What follows each prompt.  given: prompts, or errors in the places of some; ids_of: the tokens of one."""
        out: list[Any] = [None] * len(given)
        stop = None
        if config.stop_strings:
            stop = StopStrings(self.tokenizer, config.stop_strings, config.hidden_tokens)
        rows, first = max(1, self.prompts_at_once // max(config.num_beams, config.num_return_sequences)), 0
        prompts: dict[int, Any] = {}
        with Progress(len(given), progress) as advance:
            for i, one in enumerate(given):
                try:
                    if isinstance(one, ZooError):
                        raise one
                    ids = ids_of(one)
                    config.new_tokens(len(ids), self._model.max_positions)
                    prompts[i] = ids
                except ZooError as e:
                    out[i] = e if single or e.index is not None else e.about(name, i)
                    advance(1)
                if prompts and (len(prompts) == rows or i + 1 == len(given)):
                    found = generate(self._model, list(prompts.values()), config, stop=stop, first=first)
                    for (k, ids), continuations in zip(prompts.items(), found, strict=True):
                        made = [self._result_of(ids, one, config, details) for one in continuations]
                        out[k] = made if config.num_return_sequences > 1 else made[0]
                    first += len(prompts)
                    advance(len(prompts))
                    prompts = {}
        return collect_results(out, single)

    def _result_of(self, prompt: Any, found: Generated, config: GenerationConfig, details: bool) -> Any:
        text = text_of(self.tokenizer, prompt, found.ids.tolist(), config.stop_strings, config.hidden_tokens)
        if not details:
            return text
        names = self.tokenizer.tokens(found.ids)
        scores = zip(names, found.ids.tolist(), found.logprobs.tolist(), strict=True)
        tokens = tuple(TokenScore(name or "", token, logprob) for name, token, logprob in scores)
        return Generation(text, tokens, found.score, found.reason)
