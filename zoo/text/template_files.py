"""The chat templates among a checkpoint's files."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import TokenizerError
from ..files.folder import CheckpointFolder

LIMIT = 1 << 20  # bytes, or characters, of a template
DEFAULT = "default"
FILE = "chat_template.jinja"
FOLDER = "additional_chat_templates"  # further files NAME.jinja
# Files of processors, and of versions before chat_template.jinja, that hold the template under the key chat_template.
OBJECTS = ("chat_template.json", "processor_config.json")


class TemplateFiles(NamedTuple):
    """Templates by name, the place of the first for messages, and the files beside tokenizer_config.json."""

    sources: dict[str, str]
    where: str
    files: list[str]


def template_files(folder: CheckpointFolder, stated: Any) -> TemplateFiles | None:
    """The templates of a checkpoint; None: it has none.

    stated: the value of chat_template in tokenizer_config.json.  As in transformers the files with templates alone
    make it void; the objects count where there are neither.
    """
    names = [f"{FOLDER}/{name}" for name in folder.names(FOLDER) if name.endswith(".jinja")]
    names = [name for name in (FILE, *names) if folder.has(name)]
    if names:
        texts = {DEFAULT if n == FILE else n[len(FOLDER) + 1 : -6]: _text(folder, n) for n in names}
        return TemplateFiles(texts, folder.where(names[0]), names)
    if stated is not None:
        where = folder.where("tokenizer_config.json")
        return TemplateFiles(_templates_by_name(stated, where), where, [])
    for name in filter(folder.has, OBJECTS):
        if (stated := folder.json(name, 4 * LIMIT, TokenizerError).get("chat_template")) is not None:
            return TemplateFiles(_templates_by_name(stated, folder.where(name)), folder.where(name), [name])
    return None


def _text(folder: CheckpointFolder, name: str) -> str:
    try:
        return folder.read(name, LIMIT, TokenizerError).decode()
    except UnicodeDecodeError as e:
        raise TokenizerError(f"{folder.where(name)}: not UTF-8 at byte {e.start}") from None


def _templates_by_name(stated: Any, where: str) -> dict[str, str]:
    """The templates of a text, a list of objects with a name, or an object."""
    named: Any = {DEFAULT: stated} if isinstance(stated, str) else stated
    if isinstance(named, list):
        named = {t.get("name"): t.get("template") for t in named if isinstance(t, dict)}
    if not isinstance(named, dict) or not named or not all(isinstance(x, str) for p in named.items() for x in p):
        raise TokenizerError(f"{where}: chat_template is {str(stated)[:80]!r}, expected a text or named texts")
    return named
