"""How the text of a page's picture lies: upright, upside down or on its side, and tilted by how much.

Shapes: H, W of the picture.
"""

from __future__ import annotations

import numpy as np

from .tilt import find_tilt, reduce_image
from .turns import NOT_TURNED, SIDEWAYS, UPSIDE_DOWN, turn_chances

# Degrees.  A tilt is found to 0.1, and turning it away blurs letters: over 1000 pixels a line at 0.2 falls by 3.5, less
# than the gaps between lines, and a page that lies straighter is left as it is.
LEAST_TILT = 0.2
TURN_MARGIN = 6.0  # nats by which a quarter turn is likelier than none, at least: nearly all pages are upright
SIDEWAYS_MARGIN = (
    8.0  # nats by which letters look upright, or upside down, and not on their side: the page is not turned to look
)
MAX_SIDE = 3000  # pixels of the longer side that is looked at: of a page at 300 dpi all


def find_orientation(image: np.ndarray) -> float:
    """The direction of the text of a page (H, W, 3) uint8, in degrees clockwise from text that runs to the right.

    It is a tilt of -10 to 10 degrees, plus 90 for text that runs downwards, 180 upside down, 270 upwards.  0.0 is a
    page that is upright, or shows nothing else: a tilt below LEAST_TILT, no text, or letters that may be upright.
    """
    grey = reduce_image(image[..., 1], MAX_SIDE).astype(np.uint8)
    tilt = find_tilt(grey)
    chances = turn_chances(_level(grey, tilt))
    fits = {0: chances[NOT_TURNED], 180: chances[UPSIDE_DOWN]}
    tilts = {0: tilt, 180: tilt}
    if max(fits.values()) < chances[SIDEWAYS] + SIDEWAYS_MARGIN:
        side = np.ascontiguousarray(np.rot90(grey))  # upright where the text runs downwards
        of_side = find_tilt(side)
        on_side = turn_chances(_level(side, of_side))
        fits = {turn: fit + on_side[SIDEWAYS] for turn, fit in fits.items()}
        fits |= {90: chances[SIDEWAYS] + on_side[NOT_TURNED], 270: chances[SIDEWAYS] + on_side[UPSIDE_DOWN]}
        tilts |= {90: of_side, 270: of_side}
    best = max(fits, key=lambda turn: fits[turn])
    turn = best if fits[best] >= fits[0] + TURN_MARGIN else 0
    return turn + (round(tilts[turn], 2) if abs(tilts[turn]) >= LEAST_TILT else 0.0)


def _level(grey: np.ndarray, tilt: float) -> np.ndarray:
    """A picture (H, W) uint8 turned by a tilt until its lines are level."""
    if abs(tilt) < LEAST_TILT:
        return grey
    from PIL import Image

    paper = int(np.median(np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])))
    turned = Image.fromarray(grey).rotate(tilt, Image.Resampling.BILINEAR, expand=True, fillcolor=paper)
    return np.asarray(turned)
