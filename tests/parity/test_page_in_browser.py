"""The parity report's page in a browser: it can be read on a phone, in the dark and on paper, and asks for nothing."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from chromium import Chromium, find
from made_up import write
from PIL import Image

DARK = [{"name": "prefers-color-scheme", "value": "dark"}]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    pytest.importorskip("jinja2", reason="needs jinja2, which makes the page")
    return write(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if find() is None:
        pytest.skip("needs Chromium (apt-get install chromium), to look at the page")
    with Chromium(tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(360, 740), (1280, 900)])
def test_a_browser_shows_it_at_each_width(browser, path, width, height, dark):
    browser.open(path, width, height, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    shot = np.asarray(Image.open(io.BytesIO(browser.screenshot())).convert("RGB"))
    assert shot.shape == (height, width, 3)
    assert len(np.unique(shot @ [1, 256, 65536])) > 50  # colours
    assert (shot[:, -1].mean() < 80) == dark
    loaded = "[...document.images].map(one => one.complete && one.naturalWidth)"
    assert browser.evaluate(loaded) == [320] * 4
    drawn = "[...document.querySelectorAll('.plot > svg')].map(one => one.getBoundingClientRect().height > 100)"
    assert browser.evaluate(drawn) == [True] * 4
    assert browser.evaluate("getComputedStyle(document.querySelector('.plot .zoo circle')).color") != "rgb(0, 0, 0)"
    assert browser.problems == []
    assert [url.partition(":")[0] for url in browser.requests if not url.startswith("data:")] == ["file"]


@pytest.mark.parametrize("width", [360, 480, 620, 768, 840, 1024, 1280])
def test_wide_tables_scroll_and_the_page_does_not(browser, path, width):
    browser.open(path, width, 900)
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth).length"
    assert width < 1000 or browser.evaluate(cut) == 0
    row = "[...document.querySelectorAll('.stages tr')].find(row => row.innerText.startsWith('written')).innerText"
    shown = browser.evaluate(row)
    assert "0.0 %" in shown
    assert "4 of 4 rows differ" in shown


def test_figures_stand_after_words_from_right_to_left(browser, path):
    browser.open(path, 1280, 900)
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    place = """(() => {
        const word = document.querySelector('blockquote bdi'), range = document.createRange();
        range.setStart(word.nextSibling, 2);
        range.setEnd(word.nextSibling, 8);
        return [range.toString(), range.getBoundingClientRect().left - word.getBoundingClientRect().right];
    })()"""
    text, after = browser.evaluate(place)
    assert text == "0.0029"
    assert after > 0


def test_a_link_opens_its_section(browser, path):
    browser.open(path, 1280, 900)
    closed = "[...document.querySelectorAll('.model')].map(one => one.open)"
    assert browser.evaluate(closed)[2] is False
    browser.evaluate("document.querySelectorAll('.models a')[2].click()")
    assert browser.evaluate(closed)[2] is True


def test_it_prints_all_sections(browser, path):
    browser.open(path, 1280, 900, dark=True)
    browser.send("Emulation.setEmulatedMedia", media="print", features=DARK)
    seen = "[...document.querySelectorAll('details > :not(summary)')].map(one => one.checkVisibility())"
    assert browser.evaluate(seen) == [True] * 6  # five models, and what words mean
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    content = browser.pdf()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 6  # the head, and five models on pages of their own
