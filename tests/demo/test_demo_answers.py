"""The demo's functions without the page: results are the tasks' own, and bad input is one error."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_checkpoint import write_chat_checkpoint
from PIL import Image

import zoo
from parity.checkpoints import build
from tests.small_pdf import pdf, text
from tests.tables.stub_config import StubConfig
from zoo.apps.cli import main
from zoo.apps.demo import answers, guard
from zoo.apps.demo.models import Models
from zoo.apps.serve import listening
from zoo.apps.tables import Table, TableExtractor
from zoo.errors import InputError, NotFoundError, UnsupportedError, ZooError
from zoo.optional import import_optional
from zoo.tasks.classify import Label
from zoo.tasks.segment import palette

DATA = Path(__file__).parent.parent / "data"
CATS = str(DATA / "images" / "coco_000000039769.png")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Models]:
    """`models(tab=spec)`: with random checkpoints, or folders, for these tabs."""
    home = tmp_path_factory.mktemp("checkpoints")

    def make(**specs: str | Path) -> Models:
        names = {tab: str(spec if isinstance(spec, Path) else build(spec, home / spec)) for tab, spec in specs.items()}
        return Models(StubConfig(detection=None), names)

    return make


@pytest.fixture
def document(tmp_path: Path) -> str:
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    path = tmp_path / "a & b.pdf"
    path.write_bytes(pdf([text(20, 170, "one") + text(220, 20, "nine"), text(120, 100, "five")]))
    return str(path)


def cells(html: str) -> list[list[list[str]]]:
    """The rows of each table on the page."""
    blocks = re.findall(r'<script type="application/json" class="page">(.*?)</script>', html)
    return [Table.from_dict(table).rows() for block in blocks for table in json.loads(block)["tables"]]


def test_tables_of_a_document(models, document):
    found = answers.find_tables(models(), document)
    assert cells(found) == [[["one", ""], ["", "nine"]], [["five"]]]  # without what is empty
    assert '"source": "a & b.pdf"' in found  # and not where it was put
    only = answers.find_tables(models(), document, " 2 ")
    assert cells(only) == cells(found)[1:]


def test_what_is_no_document(models, document, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="upload a PDF or a picture"):
        answers.find_tables(models(), None)
    with pytest.raises(InputError, match=r"a & b\.pdf has 2 pages, and page 5 is asked for"):
        answers.find_tables(models(), document, "5")
    with pytest.raises(InputError, match=r"encrypted-aes\.pdf: the PDF is encrypted"):
        answers.find_tables(models(), str(DATA / "documents" / "encrypted-aes.pdf"))
    with pytest.raises(InputError, match="the password is wrong"):
        answers.find_tables(models(), str(DATA / "documents" / "encrypted-aes.pdf"), password="another")
    found = answers.find_tables(models(), str(DATA / "documents" / "encrypted-aes.pdf"), password="secret")
    assert "secret" in str(cells(found))  # a word of the page
    (tmp_path / "text.pdf").write_text("no PDF")
    with pytest.raises(InputError, match=r"^text\.pdf: "):
        answers.find_tables(models(), str(tmp_path / "text.pdf"))
    monkeypatch.setattr("zoo.apps.documents.limits.MAX_PAGES", 1)
    with pytest.raises(InputError, match="2 pages, at most 1 at once: choose pages such as 1-1"):
        answers.find_tables(models(), document)
    assert len(cells(answers.find_tables(models(), document, "1"))) == 1


def test_no_table(models, document, monkeypatch):
    none = TableExtractor(lambda *_, **__: [], lambda *_, **__: [])
    monkeypatch.setattr(StubConfig, "extractor", lambda self: none)
    with pytest.raises(InputError, match=r"no table found: try a score below 0\.25, or tick"):
        answers.find_tables(models(), document, threshold=0.25)


def test_classify_takes_what_the_checkpoint_takes(models):
    pytest.importorskip("torch", reason="torch writes the .bin file of this checkpoint")
    pictures = models(classify="vit-base-patch16-224")
    shown, labels = answers.classify(pictures, CATS, "a text")
    assert shown is not None
    assert shown.shape == (480, 640, 3)
    assert list(labels.items()) == zoo.load(pictures.names["classify"], task="classify")(CATS, top_k=5)
    with pytest.raises(InputError, match=r"upload a picture, since .*vit-base-patch16-224 reads pictures"):
        answers.classify(pictures, None, "a text")
    texts = models(classify="twitter-roberta-base-sentiment")
    shown, labels = answers.classify(texts, CATS, "a text")
    assert shown is None
    assert list(labels.items()) == zoo.load(texts.names["classify"], task="classify")("a text", top_k=5)
    with pytest.raises(InputError, match="enter a text, since"):
        answers.classify(texts, CATS, " \n")


def test_labels_of_one_name_are_all_shown(models, monkeypatch):
    labels = [Label("crane", 0.5), Label("cat", 0.3), Label("crane", 0.2)]
    texts = models()
    monkeypatch.setattr(texts, "task", lambda tab: lambda text, top_k: labels)
    assert answers.classify(texts, None, "a text")[1] == {"crane": 0.5, "cat": 0.3, "crane (2)": 0.2}


def test_segment_says_what_its_colours_mean(models):
    shown, legend = answers.segment(models(segment="beit-base-finetuned-ade-640-640"), CATS)
    assert sum(area.share for area, _ in legend) == pytest.approx(1)
    photograph = np.asarray(Image.open(CATS).convert("RGB")).astype(int)
    colours = 2 * shown.astype(int) - photograph  # half of each was blended
    near = [np.abs(colours - colour).max(-1) <= 2 for _, colour in legend]
    assert np.allclose([at.mean() for at in near], [area.share for area, _ in legend], atol=0.01)
    assert len({colour for _, colour in legend}) == len(legend) <= len(palette(150))


def test_read(models):
    pytest.importorskip("torch", reason="torch writes the .bin file of this checkpoint")
    reading = models(read="trocr-small-printed")
    line = str(DATA / "text_lines" / "candle_noto.png")
    with pytest.warns(UserWarning, match="were cut"):
        _, said, confidence = answers.read(reading, line)
    with pytest.warns(UserWarning, match="were cut"):
        assert (said, confidence) == zoo.load(reading.names["read"])(line, lines=True)


def test_large_pictures_are_shown_small_and_larger_ones_refused(models, tmp_path, monkeypatch):
    Image.new("RGB", (2000, 100)).save(tmp_path / "wide.png")
    assert answers._thumbnail(answers._picture(str(tmp_path / "wide.png"))).shape == (80, 1600, 3)
    monkeypatch.setattr(answers, "MAX_PIXELS", 100_000)
    with pytest.raises(InputError, match=r"^wide\.png: .*100000"):
        answers.segment(models(), str(tmp_path / "wide.png"))


def test_neighbours(models, minilm):
    found = answers.neighbours(
        models(embed=minilm), "A cat is in the garden.", "Stocks fell.\n\n The cat sits outside. \n"
    )
    assert [line for _, line in found] == ["The cat sits outside.", "Stocks fell."]
    wanted = zoo.load(minilm).similarity("A cat is in the garden.", ["The cat sits outside.", "Stocks fell."])
    assert np.allclose([cosine for cosine, _ in found], wanted[0], atol=1e-5)


@pytest.mark.parametrize(
    ("given", "lines", "message"),
    [
        (" ", "a", "enter a text"),
        ("a", "\n", "enter lines"),
        ("a" * 20_001, "a", "20001 characters, at most 20000"),
        ("a", "a\n" * 501, "501 lines, at most 500"),
    ],
)
def test_texts_are_bounded(models, given, lines, message):
    with pytest.raises(InputError, match=message):
        answers.neighbours(models(), given, lines)


def test_what_goes_on_from_a_text(models):
    talk = answers.Talk(models())
    pieces = list(talk.say("Once upon a time", [], 20, 0))
    assert len(pieces) > 5
    assert "".join(pieces) == zoo.load("stories260k")("Once upon a time", max_new_tokens=20, do_sample=False)


def test_a_conversation_goes_on_where_it_was(models, tmp_path):
    pytest.importorskip("jinja2", reason="jinja2 (the extra chat) makes prompts of chats")
    talk = answers.Talk(models(chat=write_chat_checkpoint(tmp_path / "chat")))
    first = "".join(talk.say("Hello", [], 8, 0))
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": first}]
    kept = talk._last
    second = "".join(talk.say("And now?", said, 8, 0))
    assert talk._last is kept
    llm = talk.models.task("chat")
    asked = [*said, {"role": "user", "content": "And now?"}]
    assert second == llm.chat(asked, max_new_tokens=8, do_sample=False)
    # Another visitor in between: the first one's talk is known from what was said.
    list(talk.say("Hi", [], 2, 0))
    assert talk._last is not kept
    assert "".join(talk.say("And now?", said, 8, 0)) == second


def test_checkpoints_are_loaded_once_and_their_errors_stay_errors(models, tmp_path):
    some = models(classify="vit-base-patch16-224", segment=tmp_path / "nowhere")
    assert some.task("classify") is some.task("classify")
    for _ in range(2):
        with pytest.raises(NotFoundError, match="nowhere"):
            some.task("segment")
    with pytest.raises(UnsupportedError, match=r"no tab 'clasify'.*did you mean 'classify'"):
        Models(StubConfig(), {"clasify": "x"})


def test_a_tab_says_what_it_would_download(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    some = Models(StubConfig(), {"classify": "some/one"})
    assert some.note("read") == "zoo-read"
    assert some.note("classify") == "some/one (not on this machine yet: this tab's first use downloads it)"


# What stands before Gradio.


def ask(
    app: Any, method: str, path: str, body: bytes = b"", parts: int = 3, *, query: str | None = None, **headers: str
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of the answer; with the token in the query, unless another query is given."""
    cut = max(1, -(-len(body) // parts))
    messages = [
        {"type": "http.request", "body": body[i : i + cut], "more_body": i + cut < len(body)}
        for i in range(0, max(1, len(body)), cut)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": (f"token={app.token}" if query is None else query).encode(),
        "headers": [(k.encode(), v.encode()) for k, v in ({"host": "localhost:7860"} | headers).items()],
        "server": ("127.0.0.1", 7860),
    }
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive()).get("body", b"")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def test_the_guard(tmp_path, monkeypatch):
    app = guard.Guard(echo, tmp_path / "uploads", "127.0.0.1")
    inside, outside = str(tmp_path / "uploads" / "ab" / "x.pdf"), str(tmp_path / "uploads" / ".." / "x.pdf")
    body = json.dumps({"data": [{"path": inside, "url": "http://127.0.0.1/x"}, "text", None]}).encode()
    status, headers, back = ask(app, "POST", "/gradio_api/queue/join", body)
    assert (status, back) == (200, body)
    assert b"connect-src 'self'" in headers[b"content-security-policy"]
    for path in (outside, "/etc/passwd", "http://example.org/x.png", "x.png", "file:///etc/passwd", 7, "\0", ["a"]):
        nested = json.dumps({"data": [[{"a": {"path": path}}]]}).encode()
        status, headers, back = ask(app, "POST", "/gradio_api/queue/join", nested)
        assert status == 403, path
        assert b"was not uploaded" in back
        assert b"content-security-policy" in headers
        assert ask(app, "POST", "/gradio_api/call/upload", nested)[0] == 403  # which takes no files
    assert ask(app, "POST", "/gradio_api/queue/join", b"[" * 100_000)[0] == 200  # no JSON: Gradio says so
    assert ask(app, "GET", "/config")[0] == 200
    for method in ("GET", "HEAD", "POST"):  # Gradio answers 500
        for path in ("/gradio_api/proxy=", "/gradio_api/proxy=http://127.0.0.1:9/x", "/proxy=x"):
            status, _, back = ask(app, method, path)
            assert (status, b"asks no other servers" in back) == (404, True), path
    monkeypatch.setattr(guard, "MAX_REQUEST", 1000)
    monkeypatch.setattr(guard, "MAX_UPLOAD", 5000)
    assert ask(app, "POST", "/gradio_api/queue/join", b"x" * 1001)[0] == 413
    assert ask(app, "POST", "/gradio_api/upload", b"x" * 6000)[0] == 200
    assert ask(app, "POST", "/gradio_api/upload", b"x" * 6001)[0] == 413


def test_who_may_ask(tmp_path):
    app = guard.Guard(echo, tmp_path, "box.lan")
    for host in ("localhost:7860", "127.0.0.1:7860", "[::1]:7860", "192.168.0.7", "BOX.lan:7860"):
        assert ask(app, "GET", "/config", host=host)[0] == 200
    for host in ("evil.example:7860", "127.0.0.1.evil.example", "", "a\tb", "[::1", "box.lan.evil.example"):
        status, _, back = ask(app, "GET", "/config", host=host)
        assert (status, b"is not this machine's name" in back) == (403, True), host
    for origin in ("http://evil.example", "null", "http://localhost:7861", "http://evil.example:7860", "", "http://["):
        status, _, back = ask(app, "POST", "/gradio_api/upload", b"x", origin=origin)
        assert (status, b"not of this page" in back) == (403, True), origin
    assert ask(app, "POST", "/gradio_api/upload", b"x", origin="http://localhost:7860")[0] == 200


def test_the_token(tmp_path):
    app = guard.Guard(echo, tmp_path, "127.0.0.1")
    for query in ("", "token=", "token=x", f"token={app.token}x", "token=%ff"):
        status, _, back = ask(app, "GET", "/", query=query, cookie="zoo-demo-7860=x; a")
        assert (status, b"the address that `zoo demo` prints" in back) == (403, True)
    status, headers, _ = ask(app, "GET", "/")
    assert (status, headers[b"location"]) == (303, b"/")
    cookie = headers[b"set-cookie"].decode()
    assert "HttpOnly; SameSite=Lax" in cookie
    assert ask(app, "GET", "/", query="", cookie=f"a=b; {cookie.partition(';')[0]}")[0] == 200
    assert ask(app, "GET", "/", query="", cookie=cookie.replace("7860", "7861"))[0] == 403


def test_uploads_are_bounded_together_and_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(listening, "MAX_HELD", 1000)
    monkeypatch.setattr(listening, "CHUNK_SECONDS", 0.05)
    app = guard.Guard(echo, tmp_path, "127.0.0.1")
    assert ask(app, "POST", "/gradio_api/upload", b"x" * 1001)[0] == 503
    assert ask(app, "POST", "/gradio_api/upload", b"x" * 1000)[0] == 200
    assert app._bodies._held == 0
    stalled: list[Any] = []

    async def receive() -> Any:
        if stalled:
            await asyncio.sleep(60)
        stalled.append(1)
        return {"type": "http.request", "body": b"x" * 600, "more_body": True}

    async def send(message: Any) -> None:
        stalled.append(message)

    scope = {"type": "http", "method": "POST", "path": "/upload", "query_string": f"token={app.token}".encode()}
    asyncio.run(app({**scope, "headers": [(b"host", b"[::1]")], "server": ("::1", 1)}, receive, send))
    assert stalled[1]["status"] == 408
    assert app._bodies._held == 0


# The command.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "vit"], "expected TAB=NAME, with one of classify, segment"),
        (["--model", "tables=x"], "expected TAB=NAME, with one of classify, segment"),
        (["--port", "70000"], "not in 0 ... 65535"),
        (["--no-detection", "--detection", "x"], "leave out --detection"),
        (["--ocr", "tesseract", "--reader", "x"], "give one of them"),
    ],
)
def test_a_wrong_command_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as e:
        main(["demo", *arguments])
    assert e.value.code == 2
    assert message in capsys.readouterr().err


def test_without_gradio(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gradio", None)
    assert main(["demo"]) == 1
    assert "the demo requires the package gradio: pip install 'transformers-zoo[demo]'" in capsys.readouterr().err


def test_a_port_that_is_taken():
    listen = listening.listen
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1, port {port}: "):
            listen("127.0.0.1", port)
    with pytest.raises(InputError, match=r"cannot listen at nowhere\.invalid"):
        listen("nowhere.invalid", 0)


def test_a_package_that_cannot_be_loaded(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import surely_not_there.at_all")
    (tmp_path / "broken.py").write_text("raise ImportError('libm.so.9')")
    monkeypatch.syspath_prepend(tmp_path)
    assert import_optional("socket", "x") is socket
    with pytest.raises(ZooError, match=r"^x requires the package not_there: pip install not_there$"):
        import_optional("not_there.part", "x")
    with pytest.raises(ZooError, match=r"^x requires the package half_there, which cannot be loaded \(No module"):
        import_optional("half_there", "x")
    with pytest.raises(ZooError, match=r"^x requires the package broken, which cannot be loaded \(libm.so.9\): pip"):
        import_optional("broken", "x", "y")


@pytest.mark.parametrize(
    ("task", "spec", "values"),
    [
        ("tag", "bert-base-NER", ["Angela Merkel was born in Hamburg."]),
        ("answer", "bert-base-squad2", ["Who wrote it?", "Ann wrote it in May."]),
        ("rerank", "ms-marco-MiniLM-L6-v2", ["What purrs?", "A cat.\nA train.\n\n"]),
        ("detect", "detr-resnet-50-timm", [CATS]),
    ],
)
def test_a_tab_of_any_task_is_made_from_its_row(models, task, spec, values):
    """The table has what `zoo run` shows, and the picture what `--overlay` writes."""
    one = models(**{task: spec})
    (kind,) = one.rows
    path, texts = (values[0], values[1:]) if kind.reads == "image" else (None, values)
    assert len(answers.text_fields(kind)) == len(texts)
    picture, rows = answers.run_task(one, kind, path, texts)
    loaded = zoo.load(one.names[task], task=task)
    arguments = [values[0], ["A cat.", "A train."]] if task == "rerank" else values
    wanted = loaded.results.lines(loaded(*arguments))
    assert rows == [[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in wanted]
    assert (picture is not None) == kind.draws
    if texts:
        with pytest.raises(InputError, match="no text: enter"):
            answers.run_task(one, kind, path, [" ", *texts[1:]])


def test_labels_of_a_tab_have_commas_between_them(models):
    one = models(**{"zero-shot-classification": "bert-base-NER"})
    (kind,) = one.rows
    assert answers.text_fields(kind) == ["texts", "candidate_labels"]
    assert [answers.is_list(kind, name) for name in answers.text_fields(kind)] == [False, True]


def test_a_tab_that_there_is_not(models):
    with pytest.raises(UnsupportedError, match=r"no tab 'tagg', only classify, .*did you mean 'tag'"):
        models(tagg="bert-base-NER")
