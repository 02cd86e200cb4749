"""Strict JSON: what is accepted, and one clear error for everything else."""

from __future__ import annotations

import json
import os

import pytest

from zoo.errors import CheckpointError, ConfigError, NotFoundError
from zoo.files.json_file import read_json

GOOD = {
    "plain": (b'{"a": [1, -2.5, true, null, "x"]}', {"a": [1, -2.5, True, None, "x"]}),
    "byte order mark": (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    "escaped pair": (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    "int64 limits": (b'{"a": -9223372036854775808, "b": 9223372036854775807}', {"a": -(2**63), "b": 2**63 - 1}),
    "unlimited length": (b'{"model_max_length": 1000000000000000019884624838656}', {"model_max_length": int(1e30)}),
    "same key in two objects": (b'{"a": {"k": 1}, "b": {"k": 2}}', {"a": {"k": 1}, "b": {"k": 2}}),
}

BAD = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "not utf-8": (b'{"a": "\xff"}', "not UTF-8"),
    "utf-16": ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
    "list": (b"[1]", "JSON list"),
    "string": (b'"x"', "JSON str"),
    "trailing bytes": (b"{} x", "Extra data"),
    "cut short": (b'{"a": ', "not JSON"),
    "html": (b"<!DOCTYPE html><html></html>", "not JSON"),
    "duplicate key": (b'{"a": 1, "b": {"k": 1, "k": 2}}', "'k' occurs twice"),
    "NaN": (b'{"a": NaN}', "NaN"),
    "Infinity": (b'{"a": -Infinity}', "Infinity"),
    "float overflow": (b'{"a": 1e999}', "beyond a double"),
    "65-bit integer": (b'{"a": 9223372036854775808}', "beyond 64 bits"),
    "a million digits": (b'{"a": ' + b"9" * 1_000_000 + b"}", "beyond 64 bits"),
    "half a surrogate pair": (b'{"a": "\\ud800"}', "surrogate"),
    "half a surrogate pair as a key": (b'{"\\uDFff": 1}', "surrogate"),
    "depth bomb of lists": (b'{"a": ' + b"[" * 200_000, "nested too deeply"),
    "depth bomb of objects": (b'{"a": ' * 200_000, "nested too deeply"),
}


@pytest.mark.parametrize(("data", "wanted"), GOOD.values(), ids=GOOD)
def test_good(tmp_path, data, wanted):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    assert read_json(path) == wanted


@pytest.mark.parametrize(("data", "says"), BAD.values(), ids=BAD)
def test_bad(tmp_path, data, says):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"config\.json") as caught:
        read_json(path)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 500


def test_limit_and_error_class(tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"a": "x" * 100}))
    assert read_json(path, limit=path.stat().st_size)
    with pytest.raises(CheckpointError, match="more than 50 bytes"):
        read_json(path, limit=50, error=CheckpointError)


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        read_json(tmp_path / "config.json")
    with pytest.raises(ConfigError, match="a folder"):
        read_json(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_json("bad\0name")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ConfigError, match="special file"):
        read_json(tmp_path / "config.json")


def test_values_are_counted_before_they_are_made(tmp_path):
    """Thirty megabytes of brackets would be three gigabytes of lists."""
    path = tmp_path / "config.json"
    path.write_text('{"x": [' + "[]," * 10_000_000 + "[]]}")
    with pytest.raises(ConfigError, match="more than 1000000 values"):
        read_json(path)
    path.write_text('{"x": "' + "y" * 40_000_000 + '"}')
    with pytest.raises(ConfigError, match="more than 33554432 bytes"):
        read_json(path)
