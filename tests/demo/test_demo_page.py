"""The demo's page in a browser, as a visitor uses it: a real drop, downloads, bad input, a phone, darkness."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parity.checkpoints import build
from tests.small_pdf import pdf, text
from tests.tables.stub_config import StubConfig
from tests.web.browser import chromium
from zoo.apps.demo.models import Models

pytest.importorskip("gradio", reason="gradio makes the page: pip install 'transformers-zoo[demo]'")
pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
pytestmark = pytest.mark.slow

CATS = Path(__file__).parent.parent / "data" / "images" / "coco_000000039769.png"
HOSTILE = '<img src=x onerror="alert(1)">.png'
DROP = """(zone, [name, type, content]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name, { type }));
  for (const kind of ["dragenter", "dragover", "drop"])
    zone.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a demo of random checkpoints, in this process."""
    from zoo.apps.demo.serve import serve

    home = tmp_path_factory.mktemp("checkpoints")
    names = {"classify": build("vit-base-patch16-224", home / "classify")}
    names["segment"] = build("beit-base-finetuned-ade-640-640", home / "segment")
    models = Models(StubConfig(detection=None), {tab: str(path) for tab, path in names.items()})
    found: list[Any] = []
    at_hand = threading.Event()

    def ready(*given: Any) -> None:
        found.extend(given)
        at_hand.set()

    thread = threading.Thread(target=serve, args=(models, "127.0.0.1", 0, ready), daemon=True)
    thread.start()
    assert at_hand.wait(120)
    yield found[0]
    found[1].should_exit = True
    thread.join(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


def opened(browser: Any, address: str, **context: Any) -> Any:
    page = browser.new_context(accept_downloads=True, **context).new_page()
    page.set_default_timeout(120_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("dialog", lambda dialog: page.problems.append(dialog.message))
    own = address.partition("?")[0]
    page.on("request", lambda request: page.problems.append(request.url) if is_stray(request.url, own) else None)
    page.goto(address)
    assert page.url == own  # the token has become a cookie
    page.wait_for_selector("#tables-run")
    return page


def is_stray(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:"))


def drop(page: Any, where: str, name: str, content: bytes, kind: str = "application/octet-stream") -> None:
    zone = page.locator(f"#{where}-file button").first
    zone.evaluate(DROP, [name, kind, base64.b64encode(content).decode()])


def test_a_page_is_dropped_and_its_tables_are_saved(browser: Any, address: str, tmp_path: Path) -> None:
    page = opened(browser, address)
    content = text(20, 170, "one") + text(220, 170, "two") + text(20, 20, "=3")
    drop(page, "tables", "a report.pdf", pdf([content, text(120, 100, "lone")]))
    found = page.frame_locator(".found iframe")
    boxes = found.locator("#cells td, #cells th")
    boxes.first.wait_for()
    assert boxes.all_inner_texts() == ["one", "two", "=3", ""]
    assert found.locator("#marks rect").count() == 4
    boxes.nth(3).click()
    page.keyboard.type("four")
    page.keyboard.press("Enter")
    with page.expect_download() as download:
        found.locator("#csv").click()
    assert download.value.suggested_filename == "a report-page-1-table-1.csv"
    saved = Path(download.value.path()).read_bytes().decode()
    assert list(csv.reader(io.StringIO(saved, newline=""))) == [["one", "two"], ["=3", "four"]]
    with page.expect_download() as download:
        found.locator("#html").click()
    assert "<td>four</td>" in Path(download.value.path()).read_text(encoding="utf-8")
    with page.expect_download() as download:
        found.locator("#xlsx").click()
    assert page.problems == []
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl (the extra tables) reads XLSX")
    download.value.save_as(tmp_path / "all.xlsx")
    assert len(openpyxl.load_workbook(tmp_path / "all.xlsx").sheetnames) == 2


def test_the_example_page(browser: Any, address: str) -> None:
    page = opened(browser, address)
    page.click("#tables-example")
    page.frame_locator(".found iframe").locator("#cells td, #cells th").first.wait_for()
    assert page.problems == []


def test_the_other_tabs(browser: Any, address: str) -> None:
    page = opened(browser, address)
    page.get_by_role("tab", name="Classify").click()
    drop(page, "classify", "cats.png", CATS.read_bytes(), "image/png")
    page.wait_for_function("document.querySelector('#classify-labels').innerText.includes('LABEL_')")
    page.get_by_role("tab", name="Segment").click()
    drop(page, "segment", "cats.png", CATS.read_bytes(), "image/png")
    page.wait_for_selector("#segment-legend li")
    page.get_by_role("tab", name="Chat").click()
    page.fill("#chat-text textarea", "Once upon a time")
    page.press("#chat-text textarea", "Enter")
    page.wait_for_function("document.querySelector('#chat-said').innerText.length > 150")
    page.click("#chat-stop")
    page.click("#chat-clear")
    page.wait_for_function("!document.querySelector('#chat-said').innerText.includes('Once upon')")
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_cannot_be_used_is_one_message_on_a_phone_too(browser: Any, address: str, scheme: str) -> None:
    page = opened(browser, address, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.click("#tables-run")
    note = page.get_by_test_id("toast-text")
    note.wait_for()
    assert note.inner_text() == "no file: upload a PDF or a picture of a page"
    page.click("#tables-example")  # which takes the note away
    page.wait_for_selector(".found iframe")
    assert note.count() == 0
    frame = page.frames[-1]
    frame.wait_for_selector("#cells table")
    assert frame.evaluate(
        "document.querySelector('#cells').scrollWidth <= document.querySelector('#cells').clientWidth"
    )
    drop(page, "tables", HOSTILE, b"nothing", "image/png")
    note.filter(has_text="not an image").wait_for()
    assert page.locator(".found iframe").count() == 0  # of the example
    assert "Traceback" not in page.content()
    assert note.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    paper = [int(v) for v in re.findall(r"\d+", colour)[:3]]
    assert (sum(paper) < 200) == (scheme == "dark")
    assert page.problems == []


def test_strangers_see_nothing(address: str) -> None:
    own, _, query = address.partition("?")
    for to, headers in (("", {}), (f"?{query}", {"Host": "evil.example"}), ("gradio_api/upload", {})):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(urllib.request.Request(own + to, headers=headers))
    request = urllib.request.Request(f"{own}gradio_api/upload?{query}", b"", {"Origin": "http://evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)


def test_nobody_reads_what_was_not_uploaded(address: str) -> None:
    own, _, query = address.partition("?")
    for path in (str(CATS), "http://127.0.0.1:9/x.png"):
        data = {"data": [{"path": path, "meta": {"_type": "gradio.FileData"}}], "fn_index": 0, "session_hash": "a"}
        headers = {"Content-Type": "application/json"}
        for to in ("queue/join", "run/run", "api/run", "call/run"):
            request = urllib.request.Request(f"{own}gradio_api/{to}?{query}", json.dumps(data).encode(), headers)
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(request)
    for to in (
        "proxy=",
        "proxy=http://127.0.0.1:9/x",
        f"file={CATS}",
        "file=http://127.0.0.1:9/x.png",
        f"file=../../../../../../../..{CATS}",
    ):
        with pytest.raises(urllib.error.HTTPError, match=r"403|404"):
            urllib.request.urlopen(f"{own}gradio_api/{to}?{query}")
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(address) as page:
        assert "connect-src 'self'" in page.headers["Content-Security-Policy"]
        config = page.read().decode()
    assert '"analytics_enabled":false' in config.replace(" ", "")
    assert "fonts.googleapis" not in config
