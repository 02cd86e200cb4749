"""Fonts that come with matplotlib, so that no test needs those of a distribution."""

from __future__ import annotations

import random
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def few_fonts(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib, whose fonts are drawn with")
    from training import fonts

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    families = [[str(folder / f"{name}{cut}.ttf") for cut in ("", "-Bold")] for name in ("DejaVuSans", "DejaVuSerif")]
    monkeypatch.setattr(fonts, "families", lambda held_out=False: families[held_out:])


class Calm(random.Random):
    """Never does what is done now and then: no turning, no noise, no bits of rules."""

    def random(self) -> float:
        return 0.5 + super().random() * 0.04

    def getrandbits(self, k: int) -> int:
        return super().getrandbits(k)
