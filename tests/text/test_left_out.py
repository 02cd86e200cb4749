"""What a chat template leaves out of the prompt is refused; roles that it does not know; templates in further files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_checkpoint import write_chat_tokenizer

import zoo.text.chat
from zoo.errors import InputError, TokenizerError
from zoo.text.chat import ChatTemplate
from zoo.text.tokenizer import Tokenizer

pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")

HEAD = "{{ '<' ~ m.role ~ '>' ~ (m.content if m.content is string else m.content[0].text) }}"
CHATML = "{% for m in messages %}{% if m.role in ['system', 'user', 'assistant'] %}" + HEAD + "{% endif %}{% endfor %}"
ANY_ROLE = "{% for m in messages %}" + HEAD + "{% endfor %}"
TOOLS = "{% if tools %}{{ tools | tojson }}{% endif %}"
CALLS = "{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments | tojson }}){% endfor %}"
USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
CALL = {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}


def template(folder, source):
    write_chat_tokenizer(folder, source)
    found = ChatTemplate.of(Tokenizer.from_folder(folder))
    assert found is not None
    return found


def turn(role: str, content: Any = "Answer in French."):
    return {"role": role, "content": content}


def test_developer_is_system_where_the_template_does_not_know_it(tmp_path):
    for source in (CHATML, ANY_ROLE):
        ours = template(tmp_path, source)
        wanted = ours.render([turn("system"), USER])
        assert "Answer in French." in wanted
        assert ours.render([turn("developer"), USER]) == wanted
        # One message at the beginning, which many templates want.
        both = ours.render([turn("system", "Be brief."), turn("developer"), USER])
        assert both == ours.render([turn("system", "Be brief.\n\nAnswer in French."), USER])
        later = ours.render([USER, turn("developer"), USER])
        assert later == ours.render([USER, turn("system"), USER])
    once = template(tmp_path, "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}" + ANY_ROLE)
    assert once.render([turn("developer", [{"type": "text", "text": "parts"}]), USER]).startswith("[{'type'")
    known = template(tmp_path, ANY_ROLE + "{% if 'developer' in [] %}{% endif %}")
    assert known.render([turn("developer"), USER]) == "<developer>Answer in French.<user>Hi"


@pytest.mark.parametrize(
    ("chat", "options", "says"),
    [
        ([turn("function"), USER], {}, r"leaves out messages\[0\], of the role 'function', without a word"),
        ([USER, turn("tool"), USER], {}, r"leaves out messages\[1\], of the role 'tool',"),
        (
            [USER, {**CALL, "content": ""}, USER],
            {},
            r"leaves out the tool calls of messages\[1\], of the role 'assistant',",
        ),
        ([USER], {"tools": [TOOL]}, r"leaves out tools\[0\] without a word"),
        ([USER], {"documents": [{"title": "T", "text": "t"}]}, r"leaves out documents\[0\] without a word"),
        ([USER, turn("function", [{"type": "text", "text": "t"}])], {}, r"leaves out messages\[1\]"),
    ],
)
def test_what_a_template_leaves_out_is_refused(tmp_path, chat, options, says):
    ours = template(tmp_path, CHATML)
    for _ in range(2):
        for call in (ours.render, ours.encode):
            with pytest.raises(InputError, match=says):
                call(chat, **options)
    assert ours.render([USER, turn("assistant", ""), USER]) == "<user>Hi<assistant><user>Hi"


def test_what_a_template_uses_in_another_way_is_not_left_out(tmp_path):
    """Cut, moved, looked up, in capitals, in JSON, or deciding what else is said."""
    for source in (
        "{{ messages[0].content[:2] }}{{ messages[1].content | upper }}",
        "{% for m in messages | reverse %}{{ m.content | tojson | urlencode }}{% endfor %}",
        "{{ {'Hi': 'Hello'}.get(messages[0].content, 'else') }}{{ messages[1].content | length }}",
        "{% if messages[0].content != 'Hi' %}{{ raise_exception('no greeting') }}{% endif %}{{ messages[1].content }}",
        "{% set text = messages[1].content.split('</think>')[-1] %}{{ messages[0].content ~ text }}",
    ):
        ours = template(tmp_path, source)
        chat = [USER, turn("assistant", "<think>so</think>yes")]
        assert ours.render(chat) == ours.render(chat)
    with pytest.raises(InputError, match=r"leaves out messages\[1\]"):
        template(tmp_path, "{{ messages[-1].content ~ messages[0].content }}").render([USER, USER, USER])


def test_an_assistants_text_beside_its_calls_may_be_left_out_with_a_warning(tmp_path):
    source = "{% for m in messages %}{% if m.tool_calls %}" + CALLS + "{% else %}" + HEAD + "{% endif %}{% endfor %}"
    ours = template(tmp_path, source)
    with pytest.warns(UserWarning, match=r"messages\[1\], of the role 'assistant', without a word: of a message with"):
        found = ours.render([USER, {**CALL, "content": "I look it up."}, USER])
    assert found == "<user>Hif({})<user>Hi"


def test_what_was_seen_once_is_not_rendered_twice_again(tmp_path, monkeypatch):
    ours, calls = template(tmp_path, ANY_ROLE), []
    render = zoo.text.chat.render
    monkeypatch.setattr(zoo.text.chat, "render", lambda *args: calls.append(1) or render(*args))
    for content in ("one", "two", "three"):
        ours.render([turn("user", content)])
    assert len(calls) == 4
    ours.render([USER, USER])
    assert len(calls) == 6


def test_additional_templates_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    write_chat_tokenizer(tmp_path, "void, as there is a file")
    (tmp_path / "chat_template.jinja").write_text("default " + ANY_ROLE)
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text(TOOLS + ANY_ROLE)
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("{{ documents[0].text }}" + ANY_ROLE)
    (tmp_path / "additional_chat_templates" / "notes.txt").write_text("no template")
    tokenizer = Tokenizer.from_folder(tmp_path)
    ours, theirs = ChatTemplate.of(tokenizer), transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert ours is not None
    assert ours.sources == theirs.chat_template
    cases: list[dict[str, Any]] = [{}, {"tools": [TOOL]}, {"documents": [{"text": "d"}], "template": "rag"}]
    for options in cases:
        given = {("chat_template" if name == "template" else name): value for name, value in options.items()}
        assert ours.render([USER], **options) == theirs.apply_chat_template([USER], tokenize=False, **given)
    copied = {path.relative_to(tmp_path / "copy").as_posix() for path in tokenizer.save(tmp_path / "copy")}
    assert {"additional_chat_templates/tool_use.jinja", "additional_chat_templates/rag.jinja"} <= copied
    again = ChatTemplate.of(Tokenizer.from_folder(tmp_path / "copy"))
    assert again is not None
    assert again.sources == ours.sources
    (tmp_path / "chat_template.jinja").unlink()
    without = ChatTemplate.of(Tokenizer.from_folder(tmp_path))
    assert without is not None
    with pytest.raises(InputError, match=r"there is no chat template 'default'.*rag, tool_use"):
        without.render([USER])


@pytest.mark.parametrize("name", ["chat_template.json", "processor_config.json"])
def test_templates_of_processors_count_where_the_tokenizer_has_none(tmp_path, name):
    write_chat_tokenizer(tmp_path, None)
    (tmp_path / name).write_text(json.dumps({"chat_template": ANY_ROLE}))
    tokenizer = Tokenizer.from_folder(tmp_path)
    ours = ChatTemplate.of(tokenizer)
    assert ours is not None
    assert ours.render([USER]) == "<user>Hi"
    assert name in tokenizer.files
    (tmp_path / name).write_text('{"chat_template": 3}')
    with pytest.raises(TokenizerError, match=rf"{name}: chat_template is '3', expected a text or named texts"):
        ChatTemplate.of(Tokenizer.from_folder(tmp_path))
    write_chat_tokenizer(tmp_path, "mine {{ messages[0].content }}")
    own = ChatTemplate.of(Tokenizer.from_folder(tmp_path))
    assert own is not None
    assert own.render([USER]) == "mine Hi"
