"""Hostile and damaged pytorch_model.bin: nothing runs, nothing is allocated, one clear error."""

from __future__ import annotations

import collections
import contextlib
import os
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest
from limits import run_limited
from made_bin import Saved, integer, numbers, program, rebuilt, storage, text

from zoo.errors import CheckpointError, UnsupportedError, ZooError
from zoo.weights.torch_bin import TorchBinFile


@pytest.fixture
def saved(tmp_path):
    return Saved(tmp_path)


BUILDERS = pytest.mark.parametrize("form", ["zip", "stream"])


@BUILDERS
def test_the_builder_itself(saved, form):
    file = TorchBinFile(getattr(saved, form)(program(rebuilt())))
    np.testing.assert_array_equal(file.read("w").array, np.zeros(4, "f4"))


BAD_TENSORS = {
    "shape beyond the storage": (rebuilt(shape=(5,)), "goes beyond the 4 elements"),
    "offset beyond the storage": (rebuilt(offset=1), "goes beyond"),
    "negative offset": (rebuilt(offset=-1), "goes beyond"),
    "stride beyond the storage": (rebuilt(shape=(2, 2), stride=(3, 1)), "goes beyond"),
    "offset of an empty tensor": (rebuilt(offset=5, shape=(0,)), "goes beyond"),
    "negative stride": (rebuilt(stride=(-1,)), "strides"),
    "negative dimensions": (rebuilt(shape=(-2, -2), stride=(2, 1)), "non-negative integers"),
    "more strides than dimensions": (rebuilt(stride=(1, 1)), "strides"),
    "product overflows": (rebuilt(shape=(2**32, 2**32), stride=(0, 0)), "beyond any memory"),
    "huge stride": (rebuilt(shape=(2,), stride=(2**62,)), "goes beyond"),
    "stride over 64 bits": (rebuilt(shape=(0,), stride=(2**70,)), "strides"),
    "expanded without bounds": (rebuilt(shape=(2**40,), stride=(0,)), "expanded"),
    "33 dimensions": (rebuilt(shape=(1,) * 33, stride=(1,) * 33), "33 dimensions"),
    "storage smaller than announced": (rebuilt(of=storage(numel=5)), "storage"),
    "storage larger than announced": (rebuilt(of=storage(numel=3), shape=(3,)), "storage"),
    "storage of negative size": (rebuilt(of=storage(numel=-1)), "persistent id"),
    "storage that is not there": (rebuilt(of=storage(key="1")), "not in the file"),
    "storage out of the archive": (rebuilt(of=storage(key="../data.pkl")), "not in the file"),
    "view beyond its storage": (rebuilt(of=storage(view=b"(" + text("v") + b"K\x02K\x03t")), "beyond the end"),
    "storage key a number": (rebuilt(of=storage().replace(text("0"), b"K\x00")), "persistent id"),
    "conjugated": (rebuilt(more=b"\x89}}" + text("conj") + b"\x88s"), "unusual kind"),
    "dimension a float": (
        rebuilt().replace(numbers((4,)), b"(G" + struct.pack(">d", 4.0) + b"t", 1),
        "non-negative integers",
    ),
    "dimension a link bomb": (
        rebuilt().replace(numbers((4,)), b"(]q\x00(" + b"h\x00" * 200 + b"et", 1),
        "non-negative integers",
    ),
}


@BUILDERS
@pytest.mark.parametrize(("value", "says"), BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_bad_tensors(saved, form, value, says):
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin") as caught:
        TorchBinFile(getattr(saved, form)(program(value)))
    assert says in str(caught.value) or (form == "stream" and "no tensor has" in str(caught.value))
    assert len(str(caught.value)) < 1000


def test_views_of_storages(saved):
    """The older form can describe a storage as a part of another: (key, first element, number of elements)."""
    data = struct.pack("<q4f", 4, 0, 1, 2, 3)
    part = storage(view=b"(" + text("v") + b"K\x01K\x02t")
    file = TorchBinFile(saved.stream(program(rebuilt(of=part, offset=1, shape=(1,))), storages=data))
    assert file.read("w").array.tolist() == [2.0]
    with pytest.raises(CheckpointError, match=r"beyond the 2 elements"):
        TorchBinFile(saved.stream(program(rebuilt(of=part, shape=(3,))), storages=data))


def test_pickles_of_python_2(saved):
    """Strings without an encoding, and an OrderedDict that is made of a list of pairs."""
    short = lambda value: b"U" + bytes([len(value)]) + value.encode()
    value = rebuilt(of=storage().replace(text("storage"), short("storage")).replace(text("0"), short("0")))
    made = b"\x80\x02ccollections\nOrderedDict\n(]]" + short("w") + b"a" + value + b"aatR."
    assert list(TorchBinFile(saved.stream(made)).names()) == ["w"]


class Evil:
    """Pickles as a call of `function(*arguments)`."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def attacks(mark: str) -> dict[str, bytes]:
    """Programs that each create the file `mark` when a standard Unpickler reads them, and kin that would do worse."""
    code = f"open({mark!r}, 'w').close()"
    calls = {
        "os.system": Evil(os.system, f"touch {mark}"),
        "eval": Evil(eval, code.replace(".close()", "")),
        "exec": Evil(exec, code),
        "nested": Evil(tuple, [Evil(eval, code)]),
        "inside a dict": {"w": Evil(eval, code)},
        "inside an OrderedDict": collections.OrderedDict(w=Evil(exec, code)),
    }
    found = {f"{n}, protocol {p}": pickle.dumps(c, p) for n, c in calls.items() for p in range(6)}
    quoted = text(code)
    run = b"cbuiltins\nexec\n(" + quoted + b"tR"
    return found | {
        "INST": b"\x80\x02(" + quoted + b"ibuiltins\nexec\n.",
        "OBJ": b"\x80\x02(cbuiltins\nexec\n" + quoted + b"o.",
        "NEWOBJ": b"\x80\x02cbuiltins\nexec\n(" + quoted + b"t\x81.",
        "EXT1": b"\x80\x02\x82\x01.",
        "STACK_GLOBAL": b"\x80\x04" + text("builtins") + text("exec") + b"\x93(" + quoted + b"tR.",
        "getattr by a dotted name": b"\x80\x04" + text("torch") + text("Size.__class__") + b"\x93.",
        "submodule of an allowed name": b"\x80\x04"
        + text("torch._utils")
        + text("_rebuild_tensor_v2.__globals__")
        + b"\x93.",
        "getattr": b"\x80\x02cbuiltins\ngetattr\n(" + run + text("x") + b"tR.",
        "as a persistent id": b"\x80\x02" + run + b"Q.",
        "as a storage type": program(rebuilt(of=storage(kind="os\nsystem"))),
        "as a hook": program(rebuilt(more=b"\x89" + run)),
        "persistent id as text": b"\x80\x02P" + mark.encode() + b"\n.",
        "persistent module": b"\x80\x02(" + text("module") + run + quoted + quoted + b"tQ.",
        "BUILD of an OrderedDict": b"\x80\x02ccollections\nOrderedDict\n)R}" + text("__class__") + run + b"sb.",
        "BUILD of a function": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}" + text("__code__") + quoted + b"sb.",
        "BUILD of a tensor": program(rebuilt() + b"}" + text("shape") + quoted + b"sb"),
        "BUILD with two states": b"\x80\x02ccollections\nOrderedDict\n)R}}\x86b.",
        "call of a storage type": b"\x80\x02ctorch\nFloatStorage\n)R.",
        "call of a result": b"\x80\x02ccollections\nOrderedDict\n)R)R.",
        "load from bytes": b"\x80\x02ctorch.storage\n_load_from_bytes\n(" + quoted + b"tR.",
        "codecs": b"\x80\x02c_codecs\nencode\n(" + quoted + b"tR.",
        "numpy": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R.",
        "out-of-band buffer": b"\x80\x05\x97.",
    }


def test_nothing_is_executed(saved, tmp_path):
    mark = tmp_path / "executed"
    for name, attack in attacks(str(mark)).items():
        with pytest.raises(ZooError) as caught:
            TorchBinFile(saved.zip(attack))
        assert not mark.exists(), name
        assert len(str(caught.value)) < 1000, name


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_the_attacks_are_real(tmp_path):
    mark = tmp_path / "executed"
    worked = set()
    for name, attack in attacks(str(mark)).items():
        with contextlib.suppress(Exception):
            pickle.loads(attack)
        if mark.exists():
            worked.add(name)
            mark.unlink()
    assert {"INST", "OBJ", "STACK_GLOBAL", "nested, protocol 2", "BUILD of an OrderedDict"} <= worked


DAMAGED = {
    "nothing": b"",
    "stop at once": b".",
    "only a mark": b"(.",
    "open mark": b"\x80\x02}(.",
    "tuple of too little": b"\x80\x02K\x01\x86.",
    "unknown opcode": b"\x80\x02\xff.",
    "get of nothing": b"\x80\x02h\x05.",
    "put of nothing": b"\x80\x02q\x05.",
    "persistent id of nothing": b"\x80\x02Q.",
    "reduce of nothing": b"\x80\x02R.",
    "odd items": b"\x80\x02}(K\x01u.",
    "items of a list": b"\x80\x02](K\x01K\x02u.",
    "append to a dict": b"\x80\x02}K\x01a.",
    "tuple as a key": b"\x80\x02})K\x01s.",
    "the same key twice": b"\x80\x02}(" + (text("w") + rebuilt()) * 2 + b"u.",
    "text not UTF-8": b"\x80\x02}X\x01\x00\x00\x00\xffK\x01s.",
    "half of a surrogate pair": b"\x80\x02}X\x03\x00\x00\x00\xed\xa0\x80K\x01s.",
    "text longer than the file": b"\x80\x02X\xff\xff\xff\xffabc.",
    "text of 2^63": b"\x80\x04\x8d" + struct.pack("<Q", 2**63) + b"abc.",
    "integer of 2^31": b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
    "name without an end": b"\x80\x02c" + b"a" * 5000,
    "protocol 0": b"(dp0\n.",
    "stack global of numbers": b"\x80\x04K\x01K\x02\x93.",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_pickles(saved, data):
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin"):
        TorchBinFile(saved.zip(data))


def test_damaged_streams(saved):
    good = program(rebuilt())
    for says, path in {
        "cut short": lambda: saved.stream(good, storages=struct.pack("<q", 4) + bytes(15)),
        "cut short ": lambda: saved.stream(good, storages=struct.pack("<q", -1)),
        "1 bytes after": lambda: saved.stream(good, storages=struct.pack("<q", 4) + bytes(17)),
        "which no tensor has": lambda: saved.stream(good, keys=["1"]),
        "different storage keys": lambda: saved.stream(good, keys=["0", "0"]),
        "byte order": lambda: saved.stream(good, little=False),
        "version 7": lambda: saved.stream(good, version=7),
    }.items():
        with pytest.raises(ZooError) as caught:
            TorchBinFile(path())
        assert says.strip() in str(caught.value)
    saved.path.write_bytes(pickle.dumps({"w": 1}, 2))
    with pytest.raises(CheckpointError, match=r"not a file that torch.save wrote"):
        TorchBinFile(saved.path)
    saved.path.write_bytes(pickle.dumps({"w": 1}, 0))
    with pytest.raises(CheckpointError, match=r"neither a zip nor a pickle"):
        TorchBinFile(saved.path)
    saved.path.write_bytes(bytes(257) + b"ustar" + bytes(1000))
    with pytest.raises(UnsupportedError, match="the tar form"):
        TorchBinFile(saved.path)


def test_damaged_zips(saved):
    good = program(rebuilt())

    def patched(old: bytes, new: bytes):
        data = saved.zip(good).read_bytes()
        assert old in data
        saved.path.write_bytes(data.replace(old, new))
        return saved.path

    def twice():
        with pytest.warns(UserWarning, match="Duplicate name"):
            return saved.zip(good, [("0", bytes(16)), ("0", bytes(16))])

    def cut():
        saved.path.write_bytes(saved.zip(good).read_bytes()[:-5])
        return saved.path

    def member(name):
        return lambda: saved.zip(good, **{name: b"x"})

    for says, path in {
        "is compressed": lambda: saved.zip(good, compression=zipfile.ZIP_DEFLATED),
        "occurs twice": twice,
        "torch.save writes one": member("other__data.pkl"),
        "TorchScript": member("archive__constants.pkl"),
        "byte order": member("archive__byteorder"),
        "damaged zip": cut,
        "is encrypted": lambda: patched(b"PK\1\2\x14\x03\x14\0\0\0", b"PK\1\2\x14\x03\x14\0\1\0"),
        "no member at byte": lambda: patched(b"PK\3\4", b"PK\3\5"),
        "magic number for central directory": lambda: patched(b"PK\1\2", b"PK\1\3"),
    }.items():
        with pytest.raises(ZooError) as caught:
            TorchBinFile(path())
        assert says.strip() in str(caught.value)


def test_overlapping_zip_members(saved):
    """Two directory entries for the same bytes: the way of the better zip bombs."""
    data = saved.zip(program(rebuilt()), [("0", bytes(16)), ("1", bytes(16))]).read_bytes()
    where = [data.index(b"archive/data/%d" % i) - 30 for i in (0, 1)]
    data = data.replace(
        struct.pack("<I", where[1]) + b"archive/data/1", struct.pack("<I", where[0]) + b"archive/data/1"
    )
    saved.path.write_bytes(data)
    with pytest.raises(CheckpointError, match="overlaps"):
        TorchBinFile(saved.path)


OPEN = """
from zoo.errors import ZooError
from zoo.weights.torch_bin import TorchBinFile
try:
    print(len(TorchBinFile(sys.argv[1]).names()))
except ZooError as e:
    print(str(e)[:500])
"""

LINKS = b"".join(
    b"]q" + bytes([i]) + b"(" + b"h" + bytes([i - 1]) + b"h" + bytes([i - 1]) + b"e" for i in range(1, 200)
)

BOMBS = {
    "memo index of 2^32": (b"\x80\x02}r\xff\xff\xff\xff.", r"^0$"),
    "memo indices far apart": (
        b"\x80\x02}" + b"".join(b"r" + struct.pack("<I", i << 14) for i in range(200_000)) + b".",
        r"^0$",
    ),
    "bytes of 2^62": (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.", "opcode"),
    "text of 2^62": (b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"x.", "ends in the middle|not UTF-8|decode"),
    "frame of 2^62": (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.", r"^0$"),
    "marks": (b"\x80\x02" + b"(" * 500_000 + b".", "damaged or unusual"),
    "nested lists": (b"\x80\x02" + b"(" * 400_000 + b"t" * 400_000 + b".", "found a tuple"),
    "links that double": (b"\x80\x02]q\x00" + LINKS + b"t.", "pickle"),
    "links that double, as a size": (
        program(rebuilt().replace(numbers((4,)), b"(]q\x00" + LINKS + b"t", 1)),
        "at most 32",
    ),
}


@pytest.mark.parametrize(("data", "says"), BOMBS.values(), ids=BOMBS)
def test_bombs_in_little_memory(saved, data, says):
    assert re.search(says, run_limited(OPEN, saved.zip(data)))


PAIRS = b"](" + b"".join(text(f"k{i}") + b"N\x86" for i in range(20_000)) + b"e\x85q\x01R"

# Few bytes that stand for much work or memory, and as many of them as there may be.
MUCH = {
    "a dict a byte": b"\x80\x02(" + b"}" * 12_000_000 + b"t.",
    "a storage in three bytes": b"\x80\x02(" + storage()[:-1] + b"q\0" + b"h\0Q" * 3_000_000 + b"t.",
    "pairs copied by reference": b"\x80\x02](ccollections\nOrderedDict\nq\0" + PAIRS + b"h\0h\x01R" * 10_000 + b"e.",
}


@pytest.mark.slow
@pytest.mark.parametrize("data", MUCH.values(), ids=MUCH)
def test_the_limit_of_steps(saved, data):
    assert "steps" in run_limited(OPEN, saved.zip(data))


def test_keys_that_collide(saved):
    """Integers of one hash, which make a dict take quadratic time."""
    keys = b"".join(integer((2**61 - 1) * k) + b"N" for k in range(1, 20_000))
    said = run_limited(OPEN, saved.zip(b"\x80\x02}(" + keys + b"u."), seconds=20)
    assert "names or numbers below" in said


@BUILDERS
def test_many_names_for_one_storage(saved, form):
    """1,000 tensors of one storage of 1 MB: what a model makes of each would take memory of its own."""
    size = 1 << 18
    data = bytes(4 * size)
    one = rebuilt(of=storage(numel=size), shape=(size,))[:-1] + b"Rq\1"
    many = b"".join(text(f"w{i}") + b"h\1" for i in range(1000))
    program = b"\x80\x02}(" + text("w") + one + many + b"u."
    stored = {"storages": (("0", data),)} if form == "zip" else {"storages": struct.pack("<q", size) + data}
    with pytest.raises(CheckpointError, match="its tensors name 1049"):
        TorchBinFile(getattr(saved, form)(program, **stored))


def test_no_torch_is_imported(saved):
    path = saved.zip(program(rebuilt()))
    assert run_limited(OPEN + "print('torch' in sys.modules)", path).split() == ["1", "False"]
