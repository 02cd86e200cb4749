"""Files like those of torch.save, made byte by byte and without torch, so that every part of them can be spoiled."""

from __future__ import annotations

import pickle
import struct
import zipfile

FOUR_ZEROS = struct.pack("<q", 4) + bytes(16)  # a storage of the older form


class Saved:
    """A file of the pickle `program` and storages, in either form; by default one storage "0" of four float32."""

    magic = 0x1950A86A20F9469CFC6C

    def __init__(self, tmp_path):
        self.path = tmp_path / "pytorch_model.bin"

    def zip(self, program: bytes, storages=(("0", bytes(16)),), compression=zipfile.ZIP_STORED, **more: bytes):
        with zipfile.ZipFile(self.path, "w", compression) as file:
            file.writestr("archive/data.pkl", program)
            for key, data in storages:
                file.writestr(f"archive/data/{key}", data)
            for name, data in more.items():
                file.writestr(name.replace("__", "/"), data)
        return self.path

    def stream(self, program: bytes, keys=("0",), storages=FOUR_ZEROS, *, little=True, version=1001):
        head = [pickle.dumps(x, 2) for x in (self.magic, version, {"little_endian": little})]
        self.path.write_bytes(b"".join(head) + program + pickle.dumps(list(keys), 2) + storages)
        return self.path


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def numbers(values) -> bytes:
    return b"(" + b"".join(map(integer, values)) + b"t"


def storage(kind="torch\nFloatStorage", key="0", numel=4, view=b"") -> bytes:
    return b"(" + text("storage") + f"c{kind}\n".encode() + text(key) + text("cpu") + integer(numel) + view + b"tQ"


def rebuilt(offset=0, shape=(4,), stride=(1,), of=None, more=b"\x89}") -> bytes:
    head = b"ctorch._utils\n_rebuild_tensor_v2\n("
    return head + (of or storage()) + integer(offset) + numbers(shape) + numbers(stride) + more + b"tR"


def program(value: bytes, name="w") -> bytes:
    return b"\x80\x02}" + text(name) + value + b"s."
