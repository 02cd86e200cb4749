"""Chat templates: messages become the text, and the tokens, that a model was trained to continue.

The text of a message never becomes a special token: `<|eot_id|>` in a user's text ends no turn.  (transformers does
so only with `sanitize_control_tokens=True`, and then gives the same ids.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from ..errors import InputError, TokenizerError, nearest
from ..warning import warn
from .left_out import left_out
from .long_texts import MAX_UNCUT, ids_within
from .template import render
from .template_files import LIMIT, template_files
from .tokenizer_json import translate_rust_errors

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

Messages = Sequence[Mapping[str, Any]]

MAX_RENDERED = 1 << 22  # characters that a template may make of messages, beyond four times theirs
TOKENS = 1 << 14  # special ones, and those that a template uses
LOOKED_THROUGH = 1 << 30  # characters of a template, once for each added token
MAX_FORMS = 64  # messages of a form that is remembered, and such forms
DEPTH = 100  # lists and objects in one another
SPEAKERS = ("system", "developer", "user", "assistant", "tool", "ipython", "function", "environment")
REASONING = ("reasoning_content", "thinking", "reasoning")  # names for an assistant's thoughts
_CONTINUE = "\x02continue here\x02 "


class ChatTemplate:
    """A checkpoint's chat templates: one, or several by name ("default", "tool_use", ...)."""

    def __init__(self, sources: Mapping[str, str], tokenizer: Tokenizer, where: object = "chat template"):
        self.sources, self.where = dict(sources), where
        self._tokenizer = tokenizer
        self._patterns: dict[tuple[str, int], tuple[re.Pattern[str], re.Pattern[str]]] = {}
        self._complete: set[Any] = set()  # forms of messages of which the template leaves nothing out
        for name, source in self.sources.items():
            if len(source) > LIMIT:
                raise TokenizerError(f"{where}: the chat template {name!r} has more than {LIMIT} characters")

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> ChatTemplate | None:
        """The templates in a tokenizer's files; None if there are none."""
        found = template_files(tokenizer.folder, tokenizer.chat_template)
        return None if found is None else cls(found.sources, tokenizer, found.where)

    def render(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The text for some messages, each {"role": ..., "content": ...}.

        add_generation_prompt: with the head of the answer.  continue_final_message: without the end of the last
        message.  template: the name of one of several.  variables: further variables of the template.

        The role developer becomes system where the template does not know it.  InputError: the template leaves out a
        message, its calls of tools, a tool or a document; of an assistant's text beside its calls it may, with a
        warning.
        """
        if add_generation_prompt and continue_final_message:
            raise InputError("add_generation_prompt and continue_final_message exclude each other")
        name = self._name(template, tools)
        turns: list[dict[str, Any]] = [_copy(m, f"messages[{i}]") for i, m in enumerate(_as_list(messages, "messages"))]
        for i, turn in enumerate(turns):
            self._check(turn, f"messages[{i}]", self.sources[name])
            turns[i] = _as_templates_expect(turn)
        if not re.search(r"['\"]developer['\"]", self.sources[name]):
            turns = _with_system_for_developer(turns)
        final = _marked_end(turns[-1]) if continue_final_message else ""
        special = self._tokenizer.special_tokens_map
        given = {
            "messages": turns,
            "tools": None if tools is None else [_copy(t, "tools") for t in _as_list(tools, "tools")],
            "documents": None
            if documents is None
            else [_copy(d, "documents") for d in _as_list(documents, "documents")],
            "add_generation_prompt": add_generation_prompt,
        }
        every = {**special, **_copy(variables or {}, "variables"), **given}
        text = self._render_source(name, every)
        self._check_left_out(name, every, text)
        return _cut_at_end(text, final) if continue_final_message else text

    def encode(self, messages: Messages, expand: Callable[[str], str] = str, **options: Any) -> list[int]:
        """The tokens for some messages; options as for `render`.  Special tokens come from the template alone.

        expand: is given the template's text, in one piece or in several, and returns what stands in its place.
        """
        source = self.sources[self._name(options.get("template"), options.get("tools"))]
        special, control = self._control_tokens(source)
        parts = [(m, special if _role(m) == "assistant" else control) for m in _as_list(messages, "messages")]
        more = {name: value for name in ("tools", "documents") if (value := options.get(name)) is not None}
        every = [*parts, *((value, control) for value in more.values())]
        found = {token for value, pattern in every for text in _texts(value) for token in pattern.findall(text)}
        if not found:
            return self._encode(expand(self.render(messages, **options)))
        marks = _Marks(sorted(found), [value for value, _ in every])
        options = {**options, **{name: marks.put(value, control) for name, value in more.items()}}
        rendered = self.render([marks.put(value, pattern) for value, pattern in parts], **options)
        ids: list[int] = []
        for i, (is_text, piece) in enumerate(marks.pieces(rendered)):
            encode, piece = (self._encode_plain, piece) if is_text else (self._encode, expand(piece))
            ids += self._encode_continuation(piece, encode) if i else encode(piece)
        return ids

    def _control_tokens(self, source: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Two patterns: of the special tokens, and of these and the other added tokens that the template uses."""
        added = self._tokenizer.backend.get_added_tokens_decoder().values()
        if (known := self._patterns.get((source, len(added)))) is None:
            if len(added) * len(source) > LOOKED_THROUGH:
                raise TokenizerError(
                    f"{self.where}: {len(added)} added tokens, too many to look for in a template of "
                    f"{len(source)} characters"
                )
            special = [t.content for t in added if t.special]
            # What an assistant may have written, as it is no special token.
            more = [t.content for t in added if not t.special and t.content in source and not t.content.isspace()]
            if len(special) + len(more) > TOKENS:
                raise TokenizerError(
                    f"{self.where}: {len(special) + len(more)} tokens to look for in messages, at most {TOKENS}"
                )
            known = self._patterns[source, len(added)] = _any_of(special), _any_of([*special, *more])
        return known

    def _name(self, template: str | None, tools: Any) -> str:
        if template is None:
            template = "tool_use" if tools is not None and "tool_use" in self.sources else "default"
        if template not in self.sources:
            raise InputError(
                f"there is no chat template {template!r}: {self.where} has {', '.join(self.sources)}"
                f"{nearest(template, self.sources)} (template=...)"
            )
        return template

    def _check(self, turn: Any, where: str, source: str) -> None:
        """InputError for a message that a template would turn into an empty or wrong turn silently."""
        if not isinstance(turn, dict) or not isinstance(turn.get("role"), str):
            raise InputError(f"{where} is {str(turn)[:80]!r}, expected an object with a role and a content")
        role, content = turn["role"], turn.get("content")
        quoted = re.fullmatch(r"\w+", role) and re.search(rf"['\"]{role}['\"]", source)
        if role not in SPEAKERS and not quoted:
            raise InputError(f"{where}: the role {role!r} is not one that chat templates know{nearest(role, SPEAKERS)}")
        if content is None and not turn.get("tool_calls"):
            raise InputError(f"{where} has no content")
        if (
            role in ("system", "user", "assistant")
            and isinstance(content, list | tuple | dict)
            and not re.search(r"\.text\b|\[['\"](text|type)['\"]\]", source)
        ):
            raise InputError(f"{where}: content is a {type(content).__name__}, and this template takes texts only")

    def _check_left_out(self, name: str, variables: dict[str, Any], text: str) -> None:
        """InputError, or a warning, for what the template leaves out; messages of a form are looked at once."""
        turns = variables["messages"]
        kinds = [(turn["role"], type(turn.get("content")), bool(turn.get("content")), *turn) for turn in turns]
        others = [(k, v is None or len(v)) for k, v in variables.items() if k in ("tools", "documents")]
        form = (name, variables["add_generation_prompt"], *kinds, *others)
        if form in self._complete:
            return
        is_complete = True
        for part in left_out(variables, text, lambda changed: self._render_source(name, changed)):
            is_complete = False
            what = {"content": "", "tool_calls": "the tool calls of "}.get(part.kind, "")
            role = f", of the role {part.role!r}," if part.role else ""
            problem = f"the chat template of {self.where} leaves out {what}{part.what}{role} without a word"
            turn = turns[int(part.what[9:-1])] if part.role else {}
            if part.kind == "content" and part.role == "assistant" and turn.get("tool_calls"):
                warn(f"{problem}: of a message with tool calls it writes these alone")
            else:
                raise InputError(f"{problem}: the model would not see it; give it in another way, or leave it out")
        if is_complete and len(form) < MAX_FORMS and len(self._complete) < MAX_FORMS:
            self._complete.add(form)

    def _render_source(self, name: str, variables: dict[str, Any]) -> str:
        most = MAX_RENDERED + 4 * sum(map(len, _texts(variables)))
        kind, line, text = render(self.sources[name], variables, most)
        if kind == "text":
            return text
        at = f" (line {line})" if line else ""
        if kind == "syntax":
            raise TokenizerError(f"{self.where}: the chat template, line {line}: {text}")
        if kind == "undefined":
            raise InputError(f"the chat template of {self.where} misses something in the messages: {text}{at}")
        if kind == "refused":
            raise InputError(f"the chat template of {self.where} refuses the messages: {text}")
        what = {"stopped": "was stopped", "forbidden": "does what is not permitted"}.get(kind, "fails")
        raise TokenizerError(f"{self.where}: the chat template {what}: {text}{at}")

    def _encode(self, text: str) -> list[int]:
        with translate_rust_errors(self.where):
            most = max(MAX_UNCUT, self._tokenizer.model_max_length or 0)
            return ids_within(self._tokenizer.backend, text, most, False)

    def _encode_plain(self, text: str) -> list[int]:
        """The tokens as if there were no added ones; InputError where the vocabulary makes one of plain text."""
        backend = self._tokenizer.backend
        with translate_rust_errors(self.where):
            normal = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
            splitter = backend.pre_tokenizer
            words = [(normal, (0, 0))] if splitter is None else splitter.pre_tokenize_str(normal)
            ids = [token.id for word, _ in words for token in backend.model.tokenize(word)]
        if backend.token_to_id(text) in ids:
            raise InputError(f"a message holds {text!r}, which this tokenizer cannot tell from its special token")
        return ids

    def _encode_continuation(self, text: str, encode: Callable[[str], list[int]]) -> list[int]:
        """The tokens of a text that follows another: without the space that some tokenizers put first."""
        if not text:
            return []
        newline, ids = self._encode("\n"), encode("\n" + text)
        return ids[len(newline) :] if ids[: len(newline)] == newline else encode(text)


def _copy(value: Any, where: str, depth: int = 0) -> Any:
    """A copy in Python's own plain types; InputError for other types and deep nesting."""
    if depth > DEPTH:
        raise InputError(f"{where[:200]} is nested more than {DEPTH} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise InputError(f"{where} has a lone surrogate at character {e.start}") from None
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {_plain_key(k, where): _copy(v, f"{where}[{k!r}]", depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        items = (_copy(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value))
        return tuple(items) if isinstance(value, tuple) else list(items)
    raise InputError(f"{where} is of type {type(value).__name__}, expected texts, numbers, lists and objects of these")


def _plain_key(key: Any, where: str) -> Any:
    if isinstance(key, Mapping | list | tuple):
        raise InputError(f"{where} has a key of type {type(key).__name__}, expected texts")
    return _copy(key, f"a key of {where}")


def _as_templates_expect(turn: dict[str, Any]) -> dict[str, Any]:
    """A message as transformers passes it: without None values, its reasoning under both names that templates use."""
    turn = {name: value for name, value in turn.items() if value is not None}
    found = next((turn[name] for name in REASONING if name in turn), None)
    return turn if found is None else {"thinking": found, **turn, "reasoning_content": found}


def _with_system_for_developer(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages for a template that does not know OpenAI's later name of the role system.

    What begins the chat becomes one message, since many templates take one at most, and that at the beginning.
    """
    if not any(turn["role"] == "developer" for turn in turns):
        return turns
    turns = [{**turn, "role": "system"} if turn["role"] == "developer" else turn for turn in turns]
    count = next((i for i, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    texts = [turn["content"] for turn in turns[:count]]
    if count < 2 or not all(isinstance(text, str) for text in texts):
        return turns
    return [{**turns[0], "content": "\n\n".join(texts)}, *turns[count:]]


def _as_list(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sequence) or not values:
        raise InputError(f"{name}: {str(values)[:80]!r}, expected a list of objects, at least one")
    return list(values)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(child)


def _map_texts(how: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return how(value)
    if isinstance(value, Mapping):
        return {k: _map_texts(how, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        items = (_map_texts(how, v) for v in value)
        return tuple(items) if isinstance(value, tuple) else list(items)
    return value


def _any_of(tokens: list[str]) -> re.Pattern[str]:
    """A pattern that matches the longest of the tokens that fits."""
    return re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True))) or "(?!)")


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else None


class _Marks:
    """A character before and one after each special token in a message sets it apart from the template's own.

    They are for private use, such as no input holds, and another pair for each token.
    """

    def __init__(self, tokens: list[str], inputs: Any):
        used = set().union(*map(set, _texts(inputs)))
        free = (chr(c) for c in range(0xF0000, 0xFFFFE) if chr(c) not in used)
        self.of = {token: (next(free), next(free)) for token in tokens}

    def put(self, value: Any, pattern: re.Pattern[str]) -> Any:
        return _map_texts(lambda text: pattern.sub(lambda found: found[0].join(self.of[found[0]]), text), value)

    def pieces(self, rendered: str) -> Iterator[tuple[bool, str]]:
        """Pairs in turn, without marks: True and a token's text from a message, or False and other text."""
        every = [mark for pair in self.of.values() for mark in pair]
        escapes = {form for mark in every for form in (repr(mark)[1:-1], json.dumps(mark)[1:-1], quote(mark))}
        whole = "|".join(re.escape(token.join(pair)) for token, pair in self.of.items())
        # A template that cuts a text up leaves single marks.  Beside a token of its kind such a mark means nothing.
        torn = "|".join(f"{a}{re.escape(token)}|{re.escape(token)}{b}" for token, (a, b) in self.of.items())
        pattern = re.compile(f"({whole})|({torn})|[{''.join(every)}]")
        if any(form in rendered for form in escapes) or any(found[2] for found in pattern.finditer(rendered)):
            raise InputError(
                f"a message holds the text of a special token ({', '.join(self.of)}), and the chat template takes it "
                "apart, so that it cannot be kept apart from the template's own"
            )
        at = 0
        for found in pattern.finditer(rendered):
            yield False, rendered[at : found.start()]
            if found[1]:
                yield True, found[1][1:-1]
            at = found.end()
        yield False, rendered[at:]


def _marked_end(turn: dict[str, Any]) -> str:
    """Put a mark at the end of the message's text (of several parts, the last); the text before."""
    content = turn.get("content")
    if isinstance(content, str):
        turn["content"] = content + _CONTINUE
        return content
    for part in reversed(content) if isinstance(content, list | tuple) else ():
        if isinstance(part, dict) and isinstance(text := part.get("text"), str):
            part["text"] = text + _CONTINUE
            return text
    raise InputError("continue_final_message: the last message has no text to go on from")


def _cut_at_end(text: str, final: str) -> str:
    at = text.rfind(_CONTINUE.strip())
    if at < 0 or final.strip() not in text:
        raise InputError(
            f"continue_final_message: the chat template leaves out the last message, {json.dumps(final)[:80]}"
        )
    if text.count(_CONTINUE.strip()) > 1:
        raise InputError("continue_final_message: the chat template writes the last message more than once")
    whole = text.startswith(_CONTINUE, at)  # a template that trims a message trims the end of what comes before, too
    return text[:at] if whole else text[:at].rstrip()
