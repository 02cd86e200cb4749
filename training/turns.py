"""The network that sees which way up a line of text is: `python -m training.turns` trains it.

It is written to zoo/data/line-turns.safetensors.  Examples are pieces of lines as zoo cuts them out of a page
(`zoo.apps.documents.turns`).  Pages are drawn: those of `training.pages` and `training.tables` with Latin letters, and
lines in other scripts, some of them with figures.  A piece of a page as it stands is upright, turned about upside
down; pieces of the page on its side are the third class.  A page is drawn from its number alone.

The shipped weights are those of the default arguments: 3,186 steps on 136,107 pieces of 3,000 pages.  Of 13,520 pieces
of 300 pages in held-out fonts 80 % of the upright ones are right, 80 % upside down, 98 % of those on their side.
"""

import argparse
import random
from pathlib import Path
from typing import cast

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from safetensors.numpy import save_file
from torch import nn

from training import fonts, pages, tables, text
from training.typeset import scans
from zoo.apps.documents.turns import NAMES, NOT_TURNED, SIDEWAYS, UPSIDE_DOWN, WEIGHTS, text_windows

WIDTHS = 12, 24, 48, 64
NOTO = "truetype/noto/Noto"
CJK = [
    "opentype/noto/NotoSansCJK-Regular.ttc",
    "opentype/noto/NotoSerifCJK-Regular.ttc",
    "opentype/noto/NotoSansCJK-Bold.ttc",
]
_LATIN = "abcdefghijklmnopqrstuvwxyz"
# Letters that stand for the Latin ones of a word, so that common ones are common; or the ranges that letters are of.
SCRIPTS: dict[str, tuple[str | list[tuple[int, int]], list[str]]] = {
    "Cyrillic": ("абцдефгхийклмнопярстувшыуз", []),
    "Ukrainian": ("абчдефгщіїжлмнопюрстувькєз", []),
    "Greek": ("αβψδεφγηιξκλμνοπςρστυωςχυζ", []),
    "Hebrew": ("אבצדהפגחיקכלמנופערשתוטסםןז", [f"{NOTO}SansHebrew-Regular.ttf", f"{NOTO}SerifHebrew-Regular.ttf"]),
    "Arabic": ("ابصدعفجحيقكلمنوپةرستوطشخيز", [f"{NOTO}SansArabic-Regular.ttf", f"{NOTO}NaskhArabic-Regular.ttf"]),
    "Devanagari": ([(0x905, 0x94D)], [f"{NOTO}SansDevanagari-Regular.ttf", f"{NOTO}SerifDevanagari-Regular.ttf"]),
    "Thai": ([(0xE01, 0xE30)], [f"{NOTO}SerifThai-Regular.ttf", f"{NOTO}LoopedThai-Regular.ttf"]),
    "Chinese": ([(0x4E00, 0x8000)], CJK),
    "Japanese": ([(0x3041, 0x3094), (0x30A1, 0x30F4), (0x4E00, 0x7000)], CJK),
    "Korean": ([(0xAC00, 0xD7A0)], CJK),
}


def random_text(rng: random.Random, script: str, longest: int) -> str:
    """Some words of a script, or figures."""
    letters, _ = SCRIPTS[script]
    if rng.random() < 0.25:
        return text.number(rng)
    words = []
    for _ in range(rng.randint(1, longest)):
        if isinstance(letters, str):
            word = text.word(rng).lower()
            word = "".join(letters[_LATIN.index(c)] if c in _LATIN else c for c in word)
            word = word.capitalize() if rng.random() < 0.4 else word.upper() if rng.random() < 0.1 else word
        else:
            ranges = [rng.choice(letters) for _ in range(rng.randint(1, 6))]
            word = "".join(chr(rng.randrange(*one)) for one in ranges)
        words.append(word + rng.choice(["", "", "", "", ",", ".", ":"]))
    return " ".join(words)


def foreign_page(rng: random.Random, held_out: bool) -> Image.Image:
    """Lines of another script than Latin in one to five columns."""
    script = rng.choice(list(SCRIPTS))
    files = [str(fonts.ROOT / one) for one in SCRIPTS[script][1] if (fonts.ROOT / one).is_file()]
    size, columns = rng.randint(11, 26), rng.randint(1, 5)
    width, height = rng.randint(300, 1000), rng.randint(300, 1000)
    path = rng.choice(files) if files else ""
    while not path or not (files or fonts.draws(path, str(SCRIPTS[script][0])[:24])):
        path = fonts.choose(rng, held_out)
    font = ImageFont.truetype(path, size, index=rng.randrange(5) if path.endswith(".ttc") else 0)
    paper, ink = (rng.randint(200, 255), rng.randint(0, 90)) if rng.random() < 0.9 else (rng.randint(0, 60), 255)
    image = Image.new("L", (width, height), paper)
    pen, step, wide = ImageDraw.Draw(image), round(size * rng.uniform(1.25, 2.2)), width // columns
    ruled = rng.random() < 0.4
    for y in range(size, height - 2 * size, step):
        for x in range(size // 2, width - size, wide):
            words = random_text(rng, script, max(1, 14 // columns))
            while words and pen.textlength(words, font) > wide - size:
                words = words[:-1]
            if words.strip() and rng.random() < 0.9:
                pen.text((x, y), words, fill=ink, font=font)
            if ruled and x > wide // 2:
                pen.line((x - size // 4, 0, x - size // 4, height), fill=ink)
        if ruled:
            pen.line((0, y - step * 0.15, width, y - step * 0.15), fill=ink)
    return image


def draw_page(number: int, held_out: bool = False) -> np.ndarray:
    """The picture (H, W) uint8 of page `number`, upright but for a tilt that is too small to be noticed."""
    rng = random.Random(f"{number} {held_out}")
    kind = rng.random()
    if kind < 0.4:
        image = foreign_page(rng, held_out)
    elif kind < 0.7:
        image = pages.page(rng, held_out).image
    else:
        image = tables.table(rng, held_out=held_out).image
    image = image.convert("L")
    if rng.random() < 0.3:
        image = image.rotate(rng.uniform(-0.4, 0.4), Image.Resampling.BILINEAR, fillcolor=scans.paper_of(image))
    return np.asarray(scans.scan(image, rng).convert("L"))


def examples(numbers: range, held_out: bool = False, most: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """The pieces (N, *WINDOW) uint8 of these pages, and their classes (N,): upright or sideways."""
    found, classes = [], []
    for number in numbers:
        page = draw_page(number, held_out)
        for quarters, label in ((0, NOT_TURNED), (1, SIDEWAYS), (3, SIDEWAYS)):
            windows = text_windows(
                np.ascontiguousarray(np.rot90(page, quarters)), most if label == NOT_TURNED else most // 2
            )
            found.append((255 * windows).astype(np.uint8))
            classes += [label] * len(windows)
    return np.concatenate(found), np.array(classes)


class Network(nn.Module):
    """Three convolutions, each of half the size of the one before, one over the whole height, and their mean."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d = WIDTHS
        self.convolutions = nn.ModuleList(
            [
                nn.Conv2d(1, a, 5, 2, 2, bias=False),
                nn.Conv2d(a, b, 3, 2, 1, bias=False),
                nn.Conv2d(b, c, 3, 2, 1, bias=False),
                nn.Conv2d(c, d, (4, 3), 1, (0, 1), bias=False),
            ]
        )
        self.norms = nn.ModuleList(map(nn.BatchNorm2d, WIDTHS))
        self.head = nn.Linear(d, 3)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        x = windows[:, None].contiguous(memory_format=torch.channels_last)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(x)).relu()
        return self.head(x.mean((2, 3)))

    def weights(self) -> dict[str, np.ndarray]:
        """The weights for `zoo.apps.documents.turns`, norms folded into the convolutions before them."""
        found = {"head.weight": self.head.weight, "head.bias": self.head.bias}
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True), 1):
            assert isinstance(norm, nn.BatchNorm2d)
            assert isinstance(convolution, nn.Conv2d)
            factor = norm.weight / (cast(torch.Tensor, norm.running_var) + norm.eps).sqrt()
            found[f"conv{i}.weight"] = convolution.weight * factor[:, None, None, None]
            found[f"conv{i}.bias"] = norm.bias - cast(torch.Tensor, norm.running_mean) * factor
        return {name: np.ascontiguousarray(value.detach().numpy(), np.float16) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.turns", description=__doc__)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--cache", type=Path, help="a file to keep the pieces of lines in")
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.cache and args.cache.is_file():
        loaded = np.load(args.cache)
        x, y, xv, yv = (loaded[name] for name in ("x", "y", "xv", "yv"))
    else:
        x, y = examples(range(args.pages))
        xv, yv = examples(range(max(20, args.pages // 10)), held_out=True)
        if args.cache:
            np.savez(args.cache, x=x, y=y, xv=xv, yv=yv)
    print(f"{len(x):,} pieces of {args.pages:,} pages", flush=True)
    model = Network()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] - nearly twice as fast
    steps, batch = args.epochs * (len(x) // 256), 256
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    generator = np.random.default_rng(0)
    for step in range(steps):
        rows = generator.integers(0, len(x), batch)
        windows, classes = torch.tensor(x[rows], dtype=torch.float32) / 255, torch.tensor(y[rows])
        over = torch.rand(batch) < 0.5
        windows[over] = windows[over].flip(1, 2)
        classes[over & (classes == NOT_TURNED)] = UPSIDE_DOWN
        shift = int(generator.integers(-2, 3))
        windows = torch.roll(windows, shift, 1)
        loss = nn.functional.cross_entropy(model(windows), classes, label_smoothing=0.02)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 400 == 399 or step == steps - 1:
            print(step, round(loss.item(), 4), evaluate(model, xv, yv), flush=True)
    save_file(model.weights(), args.out)


def evaluate(model: nn.Module, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of held-out pieces, the share of right classes, by class."""
    model.eval()
    with torch.no_grad():
        windows = torch.tensor(x, dtype=torch.float32) / 255
        found = torch.cat([model(part).argmax(1) for part in windows.split(4096)]).numpy()
        over = torch.cat([model(part.flip(1, 2)).argmax(1) for part in windows[y == NOT_TURNED].split(4096)]).numpy()
    right = {
        NOT_TURNED: found[y == NOT_TURNED] == NOT_TURNED,
        UPSIDE_DOWN: over == UPSIDE_DOWN,
        SIDEWAYS: found[y == SIDEWAYS] == SIDEWAYS,
    }
    return {NAMES[label]: round(float(of.mean()), 4) for label, of in right.items()}


if __name__ == "__main__":
    main()
