"""Results that nobody computed, for tests of what is written about them, and what such a page is made of."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from parity.cases import Case
from parity.compare import FLOAT32, Multiple, Stage
from parity.exhibits import Overlays, Texts
from parity.page import write_page
from parity.run import File, Result

NAN = math.nan
HOSTILE = "x</script><script>alert('name')</script>\" onload='alert(1)' {{ 7 * 7 }} $x$ ‮"
COMMAND = "zoo parity --all --html 'a <b> & c'"
STAGES = (
    Stage("tokenizer", "padded", 100, NAN, NAN, NAN, NAN, 1.0, True),
    Stage("embeddings", "pairs", 5000, 1.0, 0.0, 0.0, 1.0, None, True),
    Stage("layer.0", "alone", 5000, 1.0, 2.5e-6, 3.2e-7, 1 - 5e-14, None, True),
    Stage("layer.1", "alone", 5000, 2.0, 4e-6, 4.5e-7, 1 - 1e-13, None, True),
    Stage("logits", "longest", 5000, 1.0, 2e-6, 9.2e-7, 1 - 4e-13, 1.0, True),
)
HOLDS = Result(
    Case("random:one", "tiny"),
    "BertForMaskedLM",
    "a" * 40,
    "numpy",
    "cpu",
    "float32",
    3,
    FLOAT32,
    (File("model.safetensors", 415832, "0123456789abcdef" * 4),),
    STAGES,
    1.25,
    lock="sha256:" + "cd" * 32,
)
DIVERGES = replace(
    HOLDS,
    case=Case("random:two", "full"),
    stages=(
        *STAGES[:3],
        replace(STAGES[3], relative_l2=3.2e-2, max_abs=0.5, holds=False, note="<i>a note</i>"),
        replace(STAGES[4], relative_l2=4e-2, max_abs=0.5, top1=0.9996, holds=False),
    ),
    exhibits=(Texts("what it reads", "The quick fox <b>jumps", "The quick brown fox jumped"),),
)
FAILED = Result(Case(HOSTILE), error=f"ConfigError: {HOSTILE}")
LOW = replace(
    HOLDS,
    case=Case("random:low", "tiny"),
    backend="torch",
    device="torch:cpu",
    dtype="bfloat16",
    tolerance=Multiple(3, 1.5e-3),
    exhibits=(Texts("greedy, pairs", "alike", "alike"),),
    stages=(
        STAGES[0],
        replace(STAGES[1], relative_l2=1e-3, reference_error=1e-3),
        replace(STAGES[2], relative_l2=4e-3, reference_error=5e-3),
        replace(STAGES[3], relative_l2=6e-3, reference_error=4e-3),
        replace(STAGES[4], relative_l2=7e-3, reference_error=7.7e-3, top1=0.984, reference_top1=0.981),
        Stage("written, greedy", "padded", 80, NAN, NAN, NAN, NAN, 0.0, True, "4 of 4 rows differ", None, 0.5),
    ),
)


def image(shift: int = 0) -> bytes:
    image = Image.fromarray(np.mgrid[:240, :320].sum(0).astype(np.uint8)).convert("RGB")
    ImageDraw.Draw(image).rectangle((20 + shift, 30, 200, 180), outline=(200, 30, 30), width=3)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def with_exhibits() -> Result:
    overlays = Overlays("Objects", image(), image(4)), Overlays("Mask", image(), image())
    texts = Texts("greedy, lines", "the same", "the same"), Texts("nothing", "", "a\x00b")
    words = Texts("The likeliest words", *["  ##\N{HEBREW LETTER SHIN}  0.0029\n  the  0.0028"] * 2)
    return replace(HOLDS, case=Case("random:seen", "tiny"), exhibits=(*overlays, *texts, words))


class Parsed(HTMLParser):
    """The elements of a page; one that is not closed in order is an error."""

    VOID = frozenset(("meta", "link", "img", "br"))

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.declared = ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_decl(self, decl: str) -> None:
        self.declared = decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        assert tag not in self.VOID
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def text(self, within: str = "body") -> str:
        """The text in all elements of a name, with single spaces."""
        return " ".join(" ".join(data for path, data in self.texts if within in path).split())

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def write(folder: Path) -> Path:
    """The page about one result of each kind."""
    return write_page(folder, [HOLDS, LOW, FAILED, with_exhibits(), DIVERGES], COMMAND)
