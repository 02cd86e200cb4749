"""A table as JSON, and back, without loss."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import TableError, nearest
from ...files.json_file import parse_json
from ..documents import Word
from .grid import Cell, G, Grid

CELL = tuple(field.name for field in dataclasses.fields(Cell))
WORD = tuple(field.name for field in dataclasses.fields(Word))
# Fields of a word and of a cell, or of a grid, that older files do not have.
OPTIONAL_OF_WORD, OPTIONAL_FIELDS = ("angle", "doubt"), ("origin", "doubts")
GRID = tuple(field.name for field in dataclasses.fields(Grid) if field.init)


def to_dict(table: Grid) -> dict[str, Any]:
    """The fields of the table and of its cells, by their names; boxes are lists of four numbers."""
    out = {field.name: getattr(table, field.name) for field in dataclasses.fields(table) if field.init}
    out["cells"] = [
        _lists({name: value for name in CELL if (value := getattr(cell, name)) != () or name != "doubts"})
        for cell in table.cells
    ]
    if "outside" in out:
        out["outside"] = [
            _lists({name: value for name in WORD if (value := getattr(word, name)) is not None or name != "doubt"})
            for word in out["outside"]
        ]
    return _lists(out)


def from_dict(data: Mapping[str, Any], cls: type[G]) -> G:
    """A `cls` with these fields; all fields of a grid are required, and none but those of `cls` are allowed."""
    more = [field.name for field in dataclasses.fields(cls) if field.init and field.name not in GRID]
    optional = [name for name in GRID if name in OPTIONAL_FIELDS]
    fields = _fields(data, [name for name in GRID if name not in OPTIONAL_FIELDS], "the table", [*more, *optional])
    for name in ("cells", "row_boxes", "column_boxes", "outside", "row_pages"):
        if not isinstance(fields.get(name, []), list | tuple):
            raise TableError(f"{name} of the table is a {type(fields[name]).__name__}, expected a list")
    wanted = [name for name in CELL if name not in OPTIONAL_FIELDS]
    cells = enumerate(fields["cells"])
    fields["cells"] = [Cell(**_fields(cell, wanted, f"cells[{i}]", OPTIONAL_FIELDS)) for i, cell in cells]
    if "outside" in fields:
        wanted = [name for name in WORD if name not in OPTIONAL_OF_WORD]
        words = enumerate(fields["outside"])
        fields["outside"] = [Word(**_fields(word, wanted, f"outside[{i}]", OPTIONAL_OF_WORD)) for i, word in words]
    return cls(**fields)


def to_json(table: Grid, *, indent: int | None = None) -> str:
    """`to_dict` as JSON, with non-ASCII texts unescaped."""
    return json.dumps(to_dict(table), ensure_ascii=False, allow_nan=False, indent=indent)


def from_json(text: str | bytes, cls: type[G], where: object = "the table") -> G:
    """The table that `to_json` wrote; where: the name of the JSON in error messages."""
    try:
        data = text if isinstance(text, bytes) else text.encode()
    except UnicodeEncodeError:
        raise TableError(f"{where}: half of a surrogate pair in the text") from None
    return from_dict(parse_json(data, where, TableError), cls)


def _fields(data: Any, names: Sequence[str], where: str, more: Sequence[str] = ()) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise TableError(f"{where} is a {type(data).__name__}, expected an object with the fields {', '.join(names)}")
    for name in data:
        if name not in (known := [*names, *more]):
            raise TableError(f"{where} has a field {name!r} that tables do not have{nearest(str(name), known)}")
    if missing := [name for name in names if name not in data]:
        raise TableError(f"{where} has no {', '.join(missing)}")
    return dict(data)


def _lists(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with lists in place of tuples, as JSON has them."""
    return {name: _list(value) for name, value in fields.items()}


def _list(value: Any) -> Any:
    return [_list(one) for one in value] if isinstance(value, tuple) else value
