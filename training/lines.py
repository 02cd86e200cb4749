"""Pictures of one line of text, and where each character ends."""

import io
import random
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from training import fonts, text

HEIGHT, WIDTH = 32, 320
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


def pad(pixels: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """(32, W) -> (32, width): paper on the right, as dark as the line's border mostly is."""
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, -1]])
    out = np.full((HEIGHT, width), np.median(border), np.uint8)
    out[:, : pixels.shape[1]] = pixels
    return out
