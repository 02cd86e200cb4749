"""Pickles, safetensors, GGUF files, archives of arrays: weights that are programs, or lie about their sizes."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.weights.made_bin import FOUR_ZEROS, Saved, program, rebuilt, storage, text

from .case import SECRET, add, chat, copy, generate, touch

SCANNED = "picklescan, of the Hub, lists what is dangerous; torch.load(weights_only=True) lists what is allowed"
RUNS = "would run code as it is unpickled"


def _no_weights(at: Path) -> Path:
    (copy(at) / "model.safetensors").unlink()
    return at


def _call(module: str, name: str, argument: str) -> bytes:
    return f"c{module}\n{name}\n".encode() + b"(" + text(argument) + b"tR"


def _bin(at: Path, value: bytes, form: str = "zip", **more: Any) -> Path:
    _no_weights(at)
    saved: Any = Saved(at)
    return getattr(saved, form)(b"\x80\x02}" + text("w") + value + b"s.", **more)


# What a call would run; the argument of each makes the mark or is harmless where the module is another's.
CALLS = {
    "os system": "", "posix system": "", "nt system": "", "subprocess Popen": "", "builtins exec": "",
    "builtins eval": "", "builtins getattr": "", "builtins __import__": "", "runpy run_path": "",
    "importlib import_module": "", "pip main": "CVE-2025-1716 (picklescan)", "asyncio run": "",
    "pydoc pipepager": "", "uuid _get_command_stdout": "CVE-2026-56315 (picklescan)",
    "imaplib IMAP4_stream": "CVE-2026-56315 (picklescan)", "webbrowser open": "", "timeit timeit": "",
    "pickle loads": "", "operator attrgetter": "", "functools partial": "", "ctypes CDLL": "",
    "numpy.testing._private.utils runstring": "", "torch.hub load": "", "torch.storage _load_from_bytes": "",
    "torch.utils.collect_env run": "", "torch._dynamo.guards GuardBuilder.get": "", "zoo.plugins __dict__": "",
}  # fmt: skip
for _names, _where in CALLS.items():
    _module, _function = _names.split()
    _value = _call(_module, _function, f"touch ../{'mark'}")
    add(f"a pickle that calls {_module}.{_function}", RUNS, partial(_bin, value=_value), _function, _where, SCANNED)


def _deep_names(at: Path) -> None:
    """Names with dots, of protocol 4."""
    value = b"\x8c\x05torch\x8c\x09os.system\x93" + b"(" + text("touch ../mark") + b"tR"
    _bin(at, value)


def _instance(at: Path) -> None:
    _bin(at, b"(" + text("touch ../mark") + b"ios\nsystem\n")


def _build(at: Path) -> None:
    _bin(at, b"ccollections\nOrderedDict\n)R}" + text("__setstate__") + text("x") + b"sb")


def _setitem(at: Path) -> None:
    _bin(at, rebuilt() + text("k") + text("v") + b"s")


def _storage_key(at: Path) -> None:
    _bin(at, rebuilt(of=storage(key="../../../" + SECRET)))


for _name, _write, _says, _where in (
    ("dotted names of protocol 4", _deep_names, "", "CVE-2025-32434 (torch before 2.6)"),
    ("the opcode INST", _instance, "", ""),
    ("a state that is set", _build, "", ""),
    ("an item of a tensor that is set", _setitem, "", "CVE-2026-24747 (torch before 2.10)"),
    ("a storage out of the archive", _storage_key, "", ""),
):
    add(f"a pickle with {_name}", RUNS, _write, _says or "pytorch_model.bin", _where, SCANNED)
for _protocol in (0, 2, 4, 5):
    _forge: Any = lambda at, protocol=_protocol: (_no_weights(at), with_bytes(at, touch(at, protocol)))
    add(f"a plain pickle of protocol {_protocol}", RUNS, _forge, "pytorch_model.bin", "", SCANNED)


def with_bytes(at: Path, data: bytes, name: str = "pytorch_model.bin") -> Path:
    (at / name).write_bytes(data)
    return at / name


def _stream(at: Path) -> None:
    _bin(at, _call("os", "system", "touch ../mark"), "stream", keys=("0",), storages=FOUR_ZEROS)


def _as_safetensors(at: Path) -> None:
    _no_weights(at)
    with_bytes(at, touch(at), "model.safetensors")


def _other_extension(at: Path) -> None:
    _no_weights(at)
    with_bytes(at, touch(at), "weights.dat")
    index = {"metadata": {}, "weight_map": {"w": "weights.dat"}}
    (at / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def _spoil_zip(at: Path, old: bytes, new: bytes, count: int) -> None:
    path = _bin(at, _call("os", "system", "touch ../mark"))
    path.write_bytes(path.read_bytes().replace(old, new, count))


def _bad_flags(at: Path) -> None:
    path = _bin(at, _call("os", "system", "touch ../mark"))
    data = bytearray(path.read_bytes())
    at_central = data.find(b"PK\x01\x02")
    data[at_central + 8] |= 1
    path.write_bytes(bytes(data))


def _bomb(at: Path) -> None:
    _no_weights(at)
    with zipfile.ZipFile(at / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", program(rebuilt()))
        with file.open("archive/data/0", "w") as member:
            for _ in range(300):
                member.write(bytes(1 << 20))


def _overlapping(at: Path) -> None:
    path = _bin(at, rebuilt())
    data = path.read_bytes()
    path.write_bytes(data[:-22] * 3 + data[-22:])


for _name, _write, _where in (
    ("an old torch file that calls", _stream, ""),
    ("a pickle named model.safetensors", _as_safetensors, ""),
    ("a pickle of another extension", _other_extension, "CVE-2025-1889 (picklescan)"),
    (
        "a zip with two names of a member",
        partial(_spoil_zip, old=b"data.pkl", new=b"datap.kl", count=1),
        "CVE-2025-1944",
    ),
    ("a zip with flags of a cipher", _bad_flags, "CVE-2025-1945 (picklescan)"),
    ("a zip with a wrong checksum", partial(_spoil_zip, old=b"system", new=b"systen", count=1), "CVE-2025-10156"),
    ("a zip that grows to 300 MB", _bomb, ""),
    ("a zip of overlapping members", _overlapping, ""),
):
    _says = {"a pickle named model.safetensors": "model.safetensors", "a pickle of another extension": "weights.dat"}
    _says["a zip of overlapping members"] = "no tensor"
    add(_name, RUNS, _write, _says.get(_name, "pytorch_model.bin"), _where, SCANNED)

# safetensors.

LIES = "would read or write beyond a buffer"
OFFICIAL = "safetensors refuses it"


def _safetensors(at: Path, head: Any, size: int | None = None, data: bytes = bytes(64)) -> None:
    _no_weights(at)
    raw = head if isinstance(head, bytes) else json.dumps(head).encode()
    (at / "model.safetensors").write_bytes(struct.pack("<Q", len(raw) if size is None else size) + raw + data)


def _tensor(shape: Any, begin: int, end: int, kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


for _name, _options in {
    "a header of 2^63 bytes": {"head": b"{}", "size": 2**63},
    "a header of 100 GB": {"head": b"{}", "size": 100 << 30},
    "offsets beyond the file": {"head": {"w": _tensor([16], 0, 1 << 40)}},
    "tensors that overlap": {"head": {"a": _tensor([16], 0, 64), "b": _tensor([8], 32, 64)}},
    "a shape that overflows": {"head": {"w": _tensor([2**32, 2**32], 0, 64)}},
    "a negative offset": {"head": {"w": _tensor([16], -64, 64)}},
    "a name twice": {"head": b'{"a":%s,"a":%s}' % ((json.dumps(_tensor([16], 0, 64)).encode(),) * 2)},
    "an unknown type": {"head": {"w": _tensor([16], 0, 64, "evil.Evil")}},
    "10^5 brackets": {"head": b"[" * 100_000},
}.items():
    add(f"safetensors with {_name}", LIES, partial(_safetensors, **_options), "model.safetensors", "", OFFICIAL)


def _index(at: Path, name: str) -> None:
    _no_weights(at)
    index = {"metadata": {}, "weight_map": {"model.norm.weight": name}}
    (at / "model.safetensors.index.json").write_text(json.dumps(index))


for _name, _path in {
    "a parent": f"../{SECRET}", "an absolute path": "/etc/passwd", "a nested parent": f"x/../../{SECRET}",
    "a drive": "C:\\x.safetensors", "a URI": "http://127.0.0.1:9/x.safetensors", "a device": "NUL",
}.items():  # fmt: skip
    add(f"an index that names {_name}", "would read another file", partial(_index, name=_path), "index.json")

# Arrays of NumPy.


def _npz(at: Path, array: Any, compressed: bool = False) -> None:
    _no_weights(at)
    (np.savez_compressed if compressed else np.savez)(at / "model.npz", **{"model.norm.weight": array})


def _objects(at: Path) -> None:
    objects = np.empty(1, object)
    objects[0] = pickle.loads(b"\x80\x02X\x01\x00\x00\x00xq\x00.")
    _npz(at, objects)


NUMPY = "numpy.load refuses objects since 1.16.3 (allow_pickle=False)"
add("npz with objects", RUNS, _objects, "model.npz", "CVE-2019-6446 (NumPy)", NUMPY)
add("npz that grows", "would fill the memory", partial(_npz, array=np.zeros(4 << 20), compressed=True), "model.npz")

# GGUF: counts and sizes that nothing bounds, and a template that is a program.


def _gguf(at: Path, data: bytes) -> None:
    at.mkdir(exist_ok=True)
    (at / "m.gguf").write_bytes(data)


def open_gguf(at: Path) -> Any:
    return generate(at / "m.gguf")


def _words(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _head(tensors: int, pairs: int, rest: bytes = b"") -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", 3, tensors, pairs) + rest


def _dimensions(*shape: int) -> bytes:
    return _head(1, 0, _words("w") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0)) + bytes(64)


def _pair(name: str, kind: int, value: bytes) -> bytes:
    return (
        _words("general.architecture")
        + struct.pack("<I", 8)
        + _words("llama")
        + _words(name)
        + struct.pack("<I", kind)
        + value
    )


CHECKED = "llama.cpp checks it since"
for _name, _data, _where in (
    ("2^63 tensors", _head(2**63, 0), "ggml-org/llama.cpp#15711"),
    ("2^61 pairs", _head(0, 2**61), "ggml-org/ggml#709"),
    ("a text of 2^64 - 1 bytes", _head(0, 1, struct.pack("<Q", 2**64 - 1)), "ggml-org/ggml#709"),
    ("2^32 - 1 dimensions", _head(1, 0, _words("w") + struct.pack("<I", 2**32 - 1)), "ggml-org/ggml#709"),
    ("a size that wraps to 0", _dimensions(64, 2**42 + 1, 2**22), "ggml-org/llama.cpp#18674"),
    ("a negative number of elements", _dimensions(2**63 - 1, 2), "ggml-org/llama.cpp#27203"),
    ("sizes whose sum wraps", _dimensions(2**62), "ggml-org/llama.cpp#14595"),
    ("an alignment of 0", _head(0, 2, _pair("general.alignment", 4, bytes(4))), "ggml-org/llama.cpp#26318"),
    ("an alignment that is a text", _head(0, 2, _pair("general.alignment", 8, _words("x"))), "llama.cpp#26318"),
    ("an array of 2^60", _head(0, 2, _pair("x", 9, struct.pack("<IQ", 4, 2**60))), "ggml-org/llama.cpp#19856"),
    ("arrays in arrays", _head(0, 2, _pair("x", 9, struct.pack("<IQ", 9, 1) * 5000)), ""),
    ("10^9 layers", _head(0, 2, _pair("llama.block_count", 4, struct.pack("<I", 10**9))), "ggml-org/llama.cpp#25821"),
    ("2^16 parts", _head(0, 2, _pair("split.count", 2, struct.pack("<H", 65535))), ""),
):  # fmt: skip
    add(f"GGUF with {_name}", LIES, partial(_gguf, data=_data), "m.gguf", _where, CHECKED if _where else "", open_gguf)


def _gguf_template(at: Path) -> None:
    from checks.fuzz.targets.gguf import gguf_file

    from .templates import OUT

    pieces = {"model": "llama", "tokens": ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a"], "bos_token_id": 1}
    pieces |= {"scores": [0.0, 0.0, 0.0, -3.0, -4.0, -5.0, -1.0, -2.0], "token_type": [2, 3, 3, 1, 1, 1, 1, 1]}
    sizes = {"context_length": 16, "embedding_length": 32, "block_count": 1, "feed_forward_length": 32}
    pairs: dict[str, object] = {"general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": 1e-5}
    pairs |= {f"llama.{key}": value for key, value in {**sizes, "attention.head_count": 2}.items()}
    pairs |= {f"tokenizer.ggml.{key}": value for key, value in pieces.items()}
    row, square = ((32,), 0, 128), ((32, 32), 0, 4096)
    tensors = {"token_embd.weight": ((32, 8), 0, 1024), "output_norm.weight": row, "blk.0.attn_norm.weight": row}
    parts = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    tensors |= {"blk.0.ffn_norm.weight": row} | {f"blk.0.{name}.weight": square for name in parts}
    _gguf(at, gguf_file(pairs | {"tokenizer.chat_template": OUT["globals of cycler"]}, tensors))


add(
    "GGUF with a template that runs code",
    "would run code as it is rendered",
    _gguf_template,
    "chat template",
    "CVE-2024-34359 (llama-cpp-python), CVE-2026-5760 (SGLang)",
    "transformers and llama-cpp-python render in jinja2's sandbox",
    lambda at: chat(at / "m.gguf"),
)
