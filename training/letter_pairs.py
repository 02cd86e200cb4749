"""How common each pair of letters is in sixteen languages: `python -m training.letter_pairs` counts them.

It writes zoo/data/letter-pairs.txt from the words of Debian's packages wamerican wdanish wdutch wfrench witalian
wngerman wpolish wportuguese wspanish wswedish hunspell-cs hunspell-hr hunspell-hu hunspell-id hunspell-lt hunspell-ro,
each of which counts once.  A pair is as probable as it is in the language that has it most, mixed with the mean of all;
letters are counted without their accents.
"""

import re
import unicodedata
from pathlib import Path

import numpy as np

from zoo.apps.documents.text_layer import LETTERS, PAIRS, STEP

WORDS = "american-english danish dutch french italian ngerman polish portuguese spanish swedish"
HUNSPELL = "cs_CZ hr_HR hu_HU id_ID lt_LT ro_RO"
FILES = [Path("/usr/share/dict", name) for name in WORDS.split()]
FILES += [Path("/usr/share/hunspell", f"{name}.dic") for name in HUNSPELL.split()]
MAX_WEIGHT, MEAN_WEIGHT = 0.7, 0.3  # parts of the mixture
MIN_PROBABILITY = 3e-5  # added to each probability


def counts(file: Path) -> np.ndarray:
    """The pairs (26, 26) of neighbouring letters in a list of words."""
    data = re.sub(rb"/.*", b"", file.read_bytes())  # flags of a hunspell dictionary follow its words
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("iso-8859-13")  # the Lithuanian file, and for the letters of the others the same
    text = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text.lower())).encode("ascii", "replace")
    codes = np.frombuffer(text, np.uint8).astype(int) - ord("a")
    pairs = np.stack([codes[:-1], codes[1:]])
    pairs = pairs[:, ((pairs >= 0) & (pairs < len(LETTERS))).all(0)]
    return np.bincount(len(LETTERS) * pairs[0] + pairs[1], minlength=len(LETTERS) ** 2).reshape(26, 26)


def main() -> None:
    languages = np.stack([counts(file) for file in FILES]).astype(float)
    languages /= languages.sum((1, 2), keepdims=True)
    mixture = MAX_WEIGHT * languages.max(0) + MEAN_WEIGHT * languages.mean(0) + MIN_PROBABILITY
    bits = -np.log2(mixture / mixture.sum())
    digits = np.round(bits / STEP).astype(int)
    rows = ["".join(chr(ord("0") + digit) for digit in row) for row in digits]
    PAIRS.write_text("\n".join(rows) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
