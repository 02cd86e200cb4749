"""The page that comes with zoo, for a first try: `python -m training.example` draws zoo/data/page.png.

Its font is one of those that training never shows.
"""

from PIL import Image, ImageDraw

from training import fonts
from zoo.apps.documents import EXAMPLE

SIZE, MARGIN = (820, 660), 80
TITLE = "Orchard report, third quarter"
TEXT = """The wet spring held the early fruit back, and most of the cherries were lost to it. Apples and pears came
in a week late but in good number, and prices kept up until the end of September. Plums were the surprise of the year:
after two poor summers the young trees above the river carried for the first time."""
AFTER = """Figures are in tonnes and thousands of euros. The change is that of revenue against the third quarter of
the year before. Quinces were sold for the first time."""
ROWS = [
    ["Fruit", "Variety", "Harvest", "Price", "Revenue", "Change"],
    ["Apples", "Boskoop", "412.5", "0.84", "346.5", "+12.4%"],
    ["Apples", "Elstar", "288.0", "0.92", "265.0", "+3.1%"],
    ["Apples", "Cox Orange", "97.2", "1.15", "111.8", "-8.7%"],
    ["Pears", "Conference", "305.4", "1.08", "329.8", "+5.9%"],
    ["Pears", "Williams", "154.9", "1.21", "187.4", "-2.0%"],
    ["Plums", "Victoria", "76.3", "1.64", "125.1", "+41.3%"],
    ["Plums", "Mirabelle", "18.8", "2.35", "44.2", "+18.6%"],
    ["Cherries", "Regina", "9.1", "4.80", "43.7", "-63.5%"],
    ["Quinces", "Vranja", "6.4", "1.90", "12.2", "n/a"],
]
COLUMNS = (0, 120, 260, 370, 460, 570)  # where each begins; the last ends at WIDTH
WIDTH, STEP = 660, 28


def draw() -> Image.Image:
    path = next(f for family in fonts.families(held_out=True) for f in family if "Carlito-Regular" in f)
    plain, bold = fonts.load(path, 17), fonts.load(path.replace("Regular", "Bold"), 17)
    image = Image.new("L", SIZE, 255)
    pen = ImageDraw.Draw(image)
    pen.text((MARGIN, 60), TITLE, fill=0, font=fonts.load(path, 28))
    y = _paragraph(pen, TEXT, 120, plain) + 34
    pen.line((MARGIN, y, MARGIN + WIDTH, y), fill=0, width=2)
    for r, row in enumerate(ROWS):
        for c, text in enumerate(row):
            font = plain if r else bold
            x = MARGIN + COLUMNS[c] + 6
            if c > 1:  # numbers stand on the right
                end = COLUMNS[c + 1] if c + 1 < len(COLUMNS) else WIDTH
                x = MARGIN + end - 14 - font.getlength(text)
            pen.text((x, y + 4), text, fill=0, font=font)
        y += STEP
        if r == 0:
            pen.line((MARGIN, y, MARGIN + WIDTH, y), fill=0)
    pen.line((MARGIN, y, MARGIN + WIDTH, y), fill=0, width=2)
    _paragraph(pen, AFTER, y + 34, plain)
    return image


def _paragraph(pen: ImageDraw.ImageDraw, text: str, y: int, font: fonts.ImageFont.FreeTypeFont) -> int:
    """Set in lines as wide as the page; where it ends."""
    line = ""
    for word in [*text.split(), ""]:
        if not word or font.getlength(f"{line} {word}") > WIDTH:
            pen.text((MARGIN, y), line, fill=0, font=font)
            y, line = y + 24, word
        else:
            line = f"{line} {word}".strip()
    return y


if __name__ == "__main__":
    draw().quantize(16).save(EXAMPLE, optimize=True)
