"""The check by which zoo-read tells text in a script that it does not know: fits zoo/data/zoo-read/scripts.json.

    apt-get install fonts-noto-core fonts-noto-cjk ...   # beside those that training/fonts.py names
    pip install babel                                    # names of countries, languages and months in all scripts
    python -m training.scripts [--lines 300]

Lines of 25 scripts and of Latin ones are drawn as cells are cut, read by zoo-read, and told apart by a logistic
regression on what it made of them (`zoo.tasks.scripts`).  Thresholds and scores are those of lines in fonts that the
regression was not fitted on (five folds by family); `held_out_scripts` are those of scripts that it was not fitted on.
"""

import argparse
import datetime
import functools
import hashlib
import importlib
import itertools
import json
import random
import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import zoo
from training import fonts, lines, text
from zoo.tasks.scripts import FILE, MIN_CHARACTERS

OUTPUT = Path(zoo.__file__).parent / "data" / "zoo-read" / FILE
READER_SCRIPTS = ("Latin",)
# Script, as in the names of its letters in Unicode -> locales of CLDR.
LOCALES = {
    "CYRILLIC": "ru uk bg mk sr kk be",
    "GREEK": "el",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "HEBREW": "he yi",
    "ARABIC": "ar fa ur ps",
    "DEVANAGARI": "hi mr ne",
    "BENGALI": "bn as",
    "GURMUKHI": "pa",
    "GUJARATI": "gu",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "SINHALA": "si",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "ETHIOPIC": "am ti",
    "HANGUL": "ko",
    "CJK": "zh_Hans zh_Hant",
    "HIRAGANA|KATAKANA|CJK": "ja",
    "ORIYA": "or",
    "TIBETAN": "dz bo",
}
LATIN = "en de fr es it pt nl pl cs sv da fi hu ro tr hr id lt lv et sk sl nb is ga sw ca eu"
NEAR_LATIN = ("CYRILLIC", "GREEK", "ARMENIAN")  # alphabets that are near the Latin one: three times as many lines
# Faces that nobody sets a table in, of letters in keys, and what Pillow draws at one weight alone.
_LEFT_OUT = re.compile(
    r"Thin|Hairline|ExtraLight|Black|Heavy|ExtraBold|Math|Symbol|Emoji|Retina|Keyboard|Initials|Biolinum_K|Music|\["
)
FOLDS, RIDGE = 5, 10.0
LATIN_QUANTILE = 0.99  # of Latin lines have lower odds than one that is taken for another script by itself
FOREIGN_QUANTILE = 0.005  # of the lines in other scripts are not marked where a document has such lines
GROUP_SIZE = 10  # lines of a small table, for the scores of several


class Drawn(NamedTuple):
    """F features of a line, and its script and family of fonts."""

    features: np.ndarray
    script: str
    family: str
    characters: int  # that were read


@functools.cache
def names(locales: str, script: str) -> list[list[str]]:
    """The names that CLDR has in each locale, in that script alone."""
    found = []
    for code in locales.split():
        locale = importlib.import_module("babel").Locale.parse(code)
        own = {*locale.territories.values(), *locale.languages.values(), *locale.currencies.values()}
        for calendar in (locale.months, locale.days):
            own |= {name for of in calendar.values() for width in of.values() for name in width.values()}
        found.append(sorted(name for name in own if _is_in(name, script)))
    return found


def _is_in(name: str, script: str) -> bool:
    if script == "LATIN":
        return bool(name) and all(c in text.CHARACTERS for c in name)
    letters = [c for c in name if c.isalpha()]
    return bool(letters) and all(re.match(script, unicodedata.name(c, "")) for c in letters)


@functools.cache
def families(script: str) -> dict[str, list[str]]:
    """The fonts that have a script, by the beginning of their names."""
    sample = sorted({c for of in names(locales_of(script), script) for name in of[:150] for c in name if c.isalpha()})
    found: dict[str, list[str]] = {}
    for path in sorted(fonts.ROOT.rglob("*")):
        usual = path.suffix in (".ttf", ".otf", ".ttc") and not _LEFT_OUT.search(path.name)
        if usual and all(fonts.draws(str(path), c) for c in sample):
            found.setdefault(re.split("[-.]", path.name)[0], []).append(str(path))
    return found


def locales_of(script: str) -> str:
    return LATIN if script == "LATIN" else LOCALES[script]


@functools.lru_cache(maxsize=2000)
def _font(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.RAQM)  # which joins Arabic letters


def string(rng: random.Random, script: str) -> str:
    """A cell's text: a name or two, now and then with a number."""
    if script == "LATIN" and rng.random() < 0.4:
        return text.line(rng, 30)
    some = names(locales_of(script), script)
    words, kind = rng.choice(rng.choice(some)), rng.random()
    if kind < 0.15:
        words += " " + rng.choice(rng.choice(some))
    elif kind < 0.3:
        words = f"{words} {rng.randint(1, 2030)}" if kind < 0.25 else f"{rng.randint(1, 99)} {words}"
    words = words.upper() if rng.random() < 0.1 else words
    return words if len(words) <= 40 else words[:40].rsplit(" ", 1)[0]


def draw(rng: random.Random, words: str, path: str) -> np.ndarray | None:
    """A line (h, w, 3) as it is cut from a cell; None if the font draws nothing, or what is read in parts."""
    font = _font(path, size := rng.randint(9, 34))
    x0, y0, x1, y1 = (int(v) for v in font.getbbox(words))
    if x1 - x0 < 2 or y1 - y0 < 2:
        return None
    left, top, right, bottom = (rng.randint(0, max(2, round(0.3 * (y1 - y0)))) for _ in range(4))
    paper, ink = lines.colours(rng)
    image = Image.new("RGB", (x1 - x0 + left + right, y1 - y0 + top + bottom), paper)
    ImageDraw.Draw(image).text((left - x0, top - y0), words, fill=ink, font=font)
    if size > 14 and rng.random() < 0.4:
        scale = rng.uniform(max(0.5, 9 / size), 1)
        smaller = max(4, round(image.width * scale)), max(4, round(image.height * scale))
        image = image.resize(smaller, Image.Resampling.LANCZOS)
    return np.asarray(lines.degrade(image, rng)) if image.width < lines.WIDTH / lines.HEIGHT * image.height else None


def drawings(rng: random.Random, script: str, count: int) -> Iterator[tuple[np.ndarray, str]]:
    """Lines of a script, each with its family of fonts."""
    of = families(script)
    if not of:
        raise SystemExit(f"no font under {fonts.ROOT} has {script}")
    while count:
        family = rng.choice(sorted(of))
        image = draw(rng, string(rng, script), rng.choice(of[family]))
        if image is not None:
            count -= 1
            yield image, family


def training_lines(rng: random.Random, count: int) -> Iterator[tuple[np.ndarray, str]]:
    """Lines as zoo-read was trained on, each a family of its own."""
    for i in range(count):
        line = lines.line(rng) if rng.random() < 0.5 else lines.printed(rng, 16 if rng.random() < 0.6 else 40)
        yield np.repeat(line.pixels[..., None], 3, -1), f"line {i}"


class Recorder:
    """In the place of a reader's check: it keeps the features of the lines."""

    def __init__(self) -> None:
        self.features: list[np.ndarray] = []

    def log_odds(self, features: np.ndarray) -> float:
        self.features.append(features)
        return 0.0


def examples(count: int) -> list[Drawn]:
    """`count` lines of each script, and as many Latin ones as of all the others."""
    reader: Any = zoo.load("zoo-read")
    many = {script: count * (3 if script in NEAR_LATIN else 1) for script in LOCALES}
    half = sum(many.values()) // 2
    sources = {script: drawings(random.Random(script), script, n) for script, n in (many | {"LATIN": half}).items()}
    sources["TRAINING"] = training_lines(random.Random("training"), half)
    found = []
    for script, source in sources.items():
        while some := list(itertools.islice(source, 64)):
            reader.scripts = recorder = Recorder()
            texts = [line.text for line in reader.read_lines([image for image, _ in some])]
            one_each = zip(recorder.features, some, texts, strict=True)
            found += [Drawn(of, script, family, len(text)) for of, (_, family), text in one_each]
        print(f"{script}: {len(found)} lines in all", flush=True)
    return found


def fit(features: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights (F,) and bias of a ridge logistic regression, by Newton's method.  features (N, F), wanted (N,) bool."""
    mean, spread = features.mean(0), features.std(0) + 1e-6
    X = np.c_[(features - mean) / spread, np.ones(len(features))]
    penalty = np.diag([RIDGE] * (X.shape[1] - 1) + [1e-9])
    w = np.zeros(X.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(X @ w, -30, 30)))
        step = np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X + penalty, X.T @ (p - wanted) + penalty @ w)
        w -= step
        if np.abs(step).max() < 1e-6:
            break
    return w[:-1] / spread, float(w[-1] - (mean / spread) @ w[:-1])


def held_out_odds(features: np.ndarray, unknown: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The log-odds (N,) of each line by a regression on the other folds (N,)."""
    odds = np.empty(len(features))
    for one in np.unique(fold):
        weights, bias = fit(features[fold != one], unknown[fold != one])
        odds[fold == one] = features[fold == one] @ weights + bias
    return odds


def group_means(odds: np.ndarray, count: int = GROUP_SIZE, times: int = 2000) -> np.ndarray:
    """Means (times,) of the log-odds of some lines."""
    return np.random.default_rng(0).choice(odds, (times, count)).mean(1)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.scripts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=300, metavar="N", help="of each script (300)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="an .npz file that keeps what was read")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help="default: %(default)s")
    args = parser.parse_args(argv)
    if args.keep and args.keep.exists():
        with np.load(args.keep) as kept:
            features, script, family, characters = (kept[name] for name in Drawn._fields)
    else:
        features, script, family, characters = map(np.array, zip(*examples(args.lines), strict=True))
    if args.keep:
        np.savez(args.keep, features=features, script=script, family=family, characters=characters)
    unknown = ~np.isin(script, ("LATIN", "TRAINING"))
    fonts_fold = np.array([zlib.crc32(name.encode()) % FOLDS for name in family])
    odds = held_out_odds(features, unknown, fonts_fold)
    order = {name: i for i, name in enumerate(LOCALES)}
    scripts_fold = np.array([order.get(s, zlib.crc32(f.encode())) % FOLDS for s, f in zip(script, family, strict=True)])
    new = held_out_odds(features, unknown, scripts_fold)
    long = characters >= MIN_CHARACTERS
    alone = float(np.quantile(odds[~unknown & long], LATIN_QUANTILE))
    odds, new = (np.clip(one, -alone, alone) for one in (odds, new))
    known_most = max(group_means(odds[script == s]).max() for s in ("LATIN", "TRAINING"))
    unknown_least = min(np.quantile(group_means(odds[script == s]), 0.01) for s in LOCALES)
    limits = {"line_limit": alone, "mean_limit": float(known_most + unknown_least) / 2}
    limits["marked_limit"] = float(np.quantile(odds[unknown & long], FOREIGN_QUANTILE))
    weights, bias = fit(features, unknown)

    def found(of: np.ndarray) -> dict[str, list[float]]:
        parts = {s: of[(script == s) & long] for s in LOCALES}
        shares = {
            s: ((part >= alone).mean(), (group_means(part) >= limits["mean_limit"]).mean()) for s, part in parts.items()
        }
        return {s: [round(float(share), 3) for share in pair] for s, pair in shares.items()}

    scores = {
        "lines": len(features),
        "latin_lines_taken_for_others": round(float((odds[~unknown & long] >= alone).mean()), 4),
        "most_of_ten_latin_lines": round(float(known_most), 2),
        "found_alone_and_of_ten": found(odds),
        "held_out_scripts": found(new),
    }
    data = {
        "scripts": READER_SCRIPTS,
        "model": hashlib.sha256((OUTPUT.parent / "model.safetensors").read_bytes()).hexdigest(),
        "fitted": f"training.scripts, {datetime.date.today()}, {args.lines} lines of each of {len(LOCALES)} scripts",
        "scores": scores,
        **{name: round(value, 3) for name, value in limits.items()},
        "bias": round(bias, 5),
        "weights": [round(float(w), 5) for w in weights],
    }
    args.output.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({**limits, **scores}, indent=1))


if __name__ == "__main__":
    main()
