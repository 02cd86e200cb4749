"""Commands and options that users of other programs type by habit are answered with zoo's."""

from __future__ import annotations

import re

import pytest

from zoo.apps.cli import main
from zoo.apps.cli.arguments import parser_of
from zoo.apps.cli.descriptions import COMMANDS
from zoo.apps.cli.peer_options import COMMANDS as PEER_COMMANDS
from zoo.apps.cli.peer_options import OPTIONS, other_option

PARSERS = {name: parser_of(name) for name in COMMANDS if name != "parity"}


def message_of(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", PEER_COMMANDS)
def test_every_command(name, capsys):
    assert f"there is no command {name!r}: {PEER_COMMANDS[name]}\n" in message_of(capsys, name, "a")
    for named in re.findall(r"zoo ([a-z]+) ", PEER_COMMANDS[name]):  # what the answer names is there
        assert named in COMMANDS or named == "parity"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ner", "NAME"], "there is no command 'ner': use zoo run NAME INPUT --task tag"),
        (["tabel", "a.pdf"], "there is no command 'tabel'; did you mean 'table'"),
        (["run", "stories260k", "Once", "-n", "20"], "unknown arguments: -n 20: use --max-new-tokens N"),
        (["run", "-m", "stories260k", "-p", "Once"], "give its NAME first"),
        (["serve", "stories260k", "--max-model-len", "8"], "use --context N"),
        (["table", "a.pdf", "--csv"], "use --format LIST"),
        (["run", "stories260k", "--prompt", "Once"], "the task is generate: give the text as INPUT"),
    ],
)
def test_messages(words, says, capsys):
    assert says in message_of(capsys, *words)


def test_options_that_are_named_exist():
    everywhere = {name for parser in PARSERS.values() for name in parser._option_string_actions}
    for option, instead in OPTIONS.items():
        if instead.startswith("--"):
            name = instead.replace(",", " ").split()[0]
            assert name in everywhere
            assert other_option(option, [name]) == f": use {instead}"
            assert other_option(option, ["--help"]) == ""
