"""Pictures of one line of text, and where each character ends."""

import io
import random
import re
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from training import fonts, phrases, text

HEIGHT, WIDTH = 32, 320
LEAST_INK = 0.5  # of a font's, in the thinnest letters made of it
RAISED = ("−1", "−1", "−2", "−3", "2", "3", "+", "−", "2+", "3+", "a", "b", "c", "1", "2,3", "†", "*", "ab", "st", "th")


class Line(NamedTuple):
    """pixels: (32, W) uint8 grey, W <= 320; ends: (characters + 1,) columns between which each character lies."""

    pixels: np.ndarray
    text: str
    ends: np.ndarray


def colours(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Paper and ink."""
    k = rng.random()
    if k < 0.55:
        return (255, 255, 255), (0, 0, 0)
    light, dark = (
        (rng.randint(225, 255), rng.randint(0, 90)) if k < 0.93 else (rng.randint(200, 255), rng.randint(0, 80))
    )
    paper = tuple(min(255, light + rng.randint(-8, 8)) for _ in "rgb")
    ink = tuple(max(0, dark + rng.randint(-20, 20)) for _ in "rgb")
    return (paper, ink) if k < 0.93 else (ink, paper)


def degrade(image: Image.Image, rng: random.Random) -> Image.Image:
    """Blur, noise, a weak contrast and JPEG, each now and then."""
    if rng.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.9)))
    if rng.random() < 0.3:
        normal = np.random.default_rng(rng.getrandbits(32)).standard_normal((image.height, image.width, 1), np.float32)
        noisy = np.asarray(image) + normal * np.float32(rng.uniform(1, 10))
        image = Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
    if rng.random() < 0.2:
        slope, shift = rng.uniform(0.6, 1), rng.uniform(-25, 25)
        image = image.point([round(min(255, max(0, (v - 128) * slope + 128 + shift))) for v in range(256)] * 3)
    if rng.random() < 0.25:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=rng.randint(30, 90))
        image = Image.open(file).convert("RGB")
    return image


def line(rng: random.Random, most: int = 40, held_out: bool = False) -> Line:
    """A line of at most `most` characters as it is cut from a cell: margins, a bit of a rule, what scanning does."""
    string = text.line(rng, most)
    path = fonts.choose(rng, held_out)
    for _ in range(20):
        if fonts.draws(path, string):
            break
        path = fonts.choose(rng, held_out)
    else:
        string = "".join(c for c in string if fonts.draws(path, c)).strip() or "0"
    raised = "" if held_out or rng.random() > 0.08 else rng.choice(RAISED)[: most - len(string)]
    raised = raised if fonts.draws(path, raised) else ""
    small = not held_out and rng.random() < 0.5  # as on a page's picture that was made smaller
    size = rng.randint(8, 16) if small else rng.randint(10, 36)
    font = fonts.load(path, size)
    x0, y0, x1, y1 = (int(v) for v in font.getbbox(string))
    above = fonts.load(path, max(6, round(size * rng.uniform(0.58, 0.72))))
    begin, top_of = font.getlength(string), y0 - rng.uniform(0, 0.2) * size
    rise = 0
    if raised:
        rise = int(top_of - above.getbbox("1" if fonts.draws(path, "1") else raised)[1])
        x1, y0 = int(begin + above.getlength(raised)) + 1, min(y0, int(top_of))
    most_margin = max(2, round((y1 - y0) * 0.3))
    left, top, right, bottom = (rng.randint(0, most_margin) for _ in range(4))
    if rng.random() < 0.5:  # from ascender to descender, as a PDF's word box; else the ink alone
        ascent, descent = font.getmetrics()
        y0, y1 = min(y0, 0), max(y1, ascent + descent)
    paper, ink = colours(rng)
    image = Image.new("RGB", (x1 - x0 + left + right, y1 - y0 + top + bottom), paper)
    draw = ImageDraw.Draw(image)
    draw.text((left - x0, top - y0), string, fill=ink, font=font)
    if raised:
        draw.text((left - x0 + begin, top - y0 + rise), raised, fill=ink, font=above)
    if rng.random() < 0.06:
        right, below = image.width - 1, image.height - 1
        draw.line(rng.choice([(0, 0, 0, below), (0, 0, right, 0), (0, below, right, below)]), fill=ink)
    if rng.random() < 0.15:
        image = image.rotate(rng.uniform(-1, 1), Image.Resampling.BILINEAR, fillcolor=paper)
    drawn = image.width
    width = min(WIDTH, max(4, round(drawn * HEIGHT / image.height)))
    if small:
        scale = rng.uniform(max(0.55, 6.5 / size), 1)  # smaller letters nobody could tell apart
        smaller = max(4, round(image.width * scale)), max(4, round(image.height * scale))
        image = image.resize(smaller, Image.Resampling.LANCZOS)
    image = degrade(image, rng)
    if rng.random() < 0.1:
        image = image.point([255 - v for v in range(256)] * 3)
    at = [font.getlength(string[:i]) for i in range(len(string) + 1)]
    at += [begin + above.getlength(raised[:i]) for i in range(1, len(raised) + 1)]
    ends = np.array(at, np.float32) - x0 + left
    ends *= width / drawn
    return Line(
        np.asarray(image.resize((width, HEIGHT), Image.Resampling.BILINEAR).convert("L")), string + raised, ends
    )


def printed(rng: random.Random, most: int = 40) -> Line:
    """Return a line of small print as a program draws a PDF's page: from 5 pixels high, without hinting.

    It is drawn several times as large, and each pixel is the mean of those that it covers. Around it is as much paper
    as `zoo.images.lines.split_lines` leaves.
    """
    tiny = rng.random() < 0.45  # a journal's table at 70 to 100 dpi
    string, upright = phrases.line(rng, most), rng.random() < 0.8
    path = fonts.choose(rng)
    for _ in range(20):
        if fonts.draws(path, phrases.plain(string)) and not (upright and re.search("Ital|Obli|cmunti|cmunbi", path)):
            break
        path = fonts.choose(rng)
    else:
        string = "".join(c for c in phrases.plain(string) if fonts.draws(path, c)).strip() or "0"
    size, finer = rng.uniform(6.5, 11) if tiny else rng.triangular(6.5, 22, 9), 6  # of the font, and parts of a pixel
    font = fonts.load(path, round(size * finer))
    while font.getlength(phrases.plain(string)) > 12 * font.size and " " in string:  # which is read in parts
        string = string[: string.rindex(" ")].rstrip()
    little = fonts.load(path, round(size * finer * rng.uniform(0.58, 0.75)))
    top, foot = (int(font.getbbox("H")[i]) for i in (1, 3))
    high = foot - top
    up, down = round(rng.uniform(-0.1, 0.35) * high), round(rng.uniform(0.1, 0.4) * high)
    drawn, ends, x = [], [0.0], 0.0
    for piece, level in phrases.pieces(string):
        face = little if level else font
        box = face.getbbox("H")
        y = top - up - box[1] if level > 0 else foot + down - box[3] if level < 0 else 0
        drawn.append((piece, face, x, round(y)))
        each = np.cumsum([fonts.width(path, int(face.size), c) for c in piece])
        x += face.getlength(piece)
        ends += (each + x - each[-1]).tolist()
    boxes = np.array([face.getbbox(piece) for piece, face, *_ in drawn]) + [[x, y, x, y] for *_, x, y in drawn]
    (x0, y0), (x1, y1) = boxes[:, :2].min(0).astype(int), np.ceil(boxes[:, 2:].max(0)).astype(int)
    cover = Image.new("L", (int(x1 - x0), int(y1 - y0)), 0)
    draw = ImageDraw.Draw(cover)
    for piece, face, x, y in drawn:
        draw.text((x - x0, y - y0), piece, fill=255, font=face)
    at = np.array(ends, np.float32) - x0
    if rng.random() < 0.5:
        cover, at = _other_face(cover, at, rng, bold=bool(re.search("Bold|Demi", path)))
    usual = font.getbbox("Hp")[3] - top
    margin = (0.25 if rng.random() < 0.7 else rng.uniform(0.05, 0.35)) * cover.height
    more = 0.0
    if cover.height < 0.72 * usual:  # `zoo.apps.tables.reading` gives a low line the height of the others
        more = max(0.0, (usual * 1.5 - cover.height - 2 * margin) / 2) * rng.choice([0, 1, 1, 1])
    left, above = round(margin) + rng.randrange(finer), round(margin + more) + rng.randrange(finer)
    if rng.random() < 0.02:
        left += round(high * rng.uniform(1.5, 2.5))  # room for a flag
    wide = -(-(cover.width + left + round(margin)) // finer) * finer + finer
    deep = -(-(cover.height + above + round(margin + more)) // finer) * finer + finer
    whole = Image.new("L", (wide, deep), 0)
    whole.paste(cover, (left, above))
    if left > 1.5 * high:
        _flag(ImageDraw.Draw(whole), rng, (margin, above + 0.1 * high, left - 0.4 * high, above + 1.1 * high))
    paper, ink = colours(rng) if not tiny or rng.random() < 0.4 else ((255,) * 3, (rng.choice([0, 0, 30, 70]),) * 3)
    image = _reduced(whole, finer, rng, paper, ink)
    if rng.random() < 0.08:  # as a cell's border does that lies too near
        cut, first, last = rng.uniform(0, 0.2) * cover.height, 0, image.height
        if rng.random() < 0.7:
            first = round((above + cut) / finer)
        else:
            last = round(last - (margin + cut) / finer)
        image = image.crop((0, first, image.width, max(last, first + 3)))
    width = min(WIDTH, max(4, round(image.width * HEIGHT / image.height)))
    at = (at + left) * np.float32(width / wide)
    image = degrade(image, rng) if rng.random() < (0.3 if tiny else 0.5) else image
    if rng.random() < 0.05:
        image = image.point([255 - v for v in range(256)] * 3)
    picture = image.resize((width, HEIGHT), Image.Resampling.BILINEAR).convert("L")
    return Line(np.asarray(picture), phrases.plain(string), at)


def _other_face(cover: Image.Image, at: np.ndarray, rng: random.Random, bold: bool) -> tuple[Image.Image, np.ndarray]:
    """Return what ink covers, and the characters' ends, as of a font that no package has.

    It is narrower or wider, thinner or thicker, or slanted.
    """
    k = rng.random()
    if k < 0.3:  # a kernel is as wide as a twentieth to a tenth of the letters' height
        kernel = 3 if cover.height < 70 else 5
        thinner = bold or rng.random() < 0.6
        filtered = cover.filter(ImageFilter.MinFilter(kernel) if thinner else ImageFilter.MaxFilter(kernel))
        blended = Image.blend(cover, filtered, rng.uniform(0.4, 1.0))
        if np.asarray(blended).mean() > LEAST_INK * np.asarray(cover).mean():
            cover = blended
    if k < 0.15 or 0.3 < k < 0.85:
        width = max(6, round(cover.width * rng.triangular(0.72, 1.18, 0.88)))
        at = at * np.float32(width / cover.width)
        cover = cover.resize((width, cover.height), Image.Resampling.BILINEAR)
    elif k >= 0.85:
        slope, high = rng.uniform(0.1, 0.28), cover.height
        wide = cover.width + round(slope * high)
        shear = (1, slope, -slope * high, 0, 1, 0)
        cover = cover.transform((wide, high), Image.Transform.AFFINE, shear, Image.Resampling.BILINEAR)
        at = at + np.float32(slope * high / 2)
    return cover, at


def _flag(draw: ImageDraw.ImageDraw, rng: random.Random, box: tuple[float, float, float, float]) -> None:
    """Draw a small picture before a text, such as a flag: it is no character."""
    x0, y0, x1, y1 = box
    across, n = rng.random() < 0.5, rng.randint(1, 3)
    for i in range(n):
        a, b, shade = i / n, (i + 1) / n, rng.choice([0, rng.randint(40, 255), rng.randint(40, 255)])
        part = (
            (x0 + a * (x1 - x0), y0, x0 + b * (x1 - x0), y1)
            if across
            else (x0, y0 + a * (y1 - y0), x1, y0 + b * (y1 - y0))
        )
        draw.rectangle(part, fill=shade)
    if rng.random() < 0.5:
        draw.rectangle(box, outline=rng.randint(60, 255), width=3)
    if rng.random() < 0.4:
        r, cx, cy = (y1 - y0) * rng.uniform(0.15, 0.3), (x0 + x1) / 2, (y0 + y1) / 2
        draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=rng.randint(0, 255))


def _reduced(
    cover: Image.Image, by: int, rng: random.Random, paper: tuple[int, ...], ink: tuple[int, ...]
) -> Image.Image:
    """Return the coloured picture of what ink covers, `by` times smaller; now and then with a screen's third pixels."""
    X, Y = cover.width // by, cover.height // by
    part = np.asarray(cover, np.float32) / 255
    if rng.random() < 0.2:
        thirds = part.reshape(Y, by, 3 * X, by // 3).mean((1, 3))
        spread = np.pad(thirds, ((0, 0), (2, 2)))
        mixed = [w * spread[:, i : i + 3 * X] for i, w in enumerate((1, 2, 3, 2, 1))]
        part = np.sum(mixed, 0).reshape(Y, X, 3) / 9
    else:
        part = part.reshape(Y, by, X, by).mean((1, 3))[..., None]
    part = part ** rng.choice([1.0, 1.0, rng.uniform(0.65, 1.4)])
    pixels = np.array(paper, np.float32) * (1 - part) + np.array(ink, np.float32) * part
    return Image.fromarray(pixels.round().astype(np.uint8))


def pad(pixels: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """(32, W) -> (32, width): paper on the right, as dark as the line's border mostly is."""
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, -1]])
    out = np.full((HEIGHT, width), np.median(border), np.uint8)
    out[:, : pixels.shape[1]] = pixels
    return out
