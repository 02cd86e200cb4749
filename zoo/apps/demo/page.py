"""The page of the demo, in Gradio: a tab for each thing to try.

What is shown is text, but for markup that is made here: everything in it that comes from elsewhere is escaped.
"""

from __future__ import annotations

import functools
import html
import inspect
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import ZooError
from ...optional import optional
from . import answers
from .models import Models

EXAMPLE_LINES = """\
The cat sits outside.
A man is playing guitar.
The new movie is awesome.
A kitten rests on the rug."""

CSS = """
.gradio-container { max-width: 90rem !important; }
.found iframe { width: 100%; height: max(32rem, calc(100vh - 8rem)); border: 1px solid var(--border-color-primary);
  border-radius: 8px; }
.legend { list-style: none; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
.legend i { display: inline-block; width: 1em; height: 1em; border-radius: 3px; margin-right: .4em;
  vertical-align: -.1em; border: 1px solid var(--border-color-primary); }
.note { margin: 0; padding: .6rem .8rem; border-left: 4px solid #d97706; border-radius: 4px; overflow-wrap: anywhere;
  background: rgb(217 119 6 / .12); }
.note[role=alert] { border-color: #dc2626; background: rgb(220 38 38 / .12); }
.lines { width: 100%; border-collapse: collapse; }
.lines td, .lines th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--border-color-primary);
  overflow-wrap: anywhere; }
"""

# One thing is computed at a time, whoever asks: it has all threads, and memory for one.
ONE_AT_A_TIME: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "models"}


def gradio() -> Any:
    """The package; no word of it leaves this machine."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    return optional("gradio", "the demo", "zoo[demo]")


def build(models: Models) -> Any:
    """The page: gradio.Blocks."""
    gr = gradio()
    with gr.Blocks(title="zoo", analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        gr.Markdown("# zoo\nEverything runs on this machine. A checkpoint is loaded when its tab is first used.")
        with gr.Tab("Tables", id="tables"):
            _tables(gr, models)
        with gr.Tab("Classify", id="classify"):
            _classify(gr, models)
        with gr.Tab("Segment", id="segment"):
            _segment(gr, models)
        with gr.Tab("Read", id="read"):
            _read(gr, models)
        with gr.Tab("Embed", id="embed"):
            _embed(gr, models)
        with gr.Tab("Chat", id="chat"):
            _chat(gr, models)
    page.queue(max_size=20, api_open=False)
    return page


def _tables(gr: Any, models: Models) -> None:
    recipe = models.recipe
    with gr.Row():
        with gr.Column(scale=2):
            file = gr.File(label="A PDF, or a picture of a page", elem_id="tables-file")
        with gr.Column(scale=1):
            pages = gr.Textbox(label="Pages", placeholder="all; or such as 3-7,9", max_length=200)
            threshold = gr.Slider(0, 1, recipe.threshold, step=0.05, label="Least score of tables and their parts")
            whole = gr.Checkbox(recipe.detection is None, label="The whole page is one table")
            button = gr.Button("Find tables", variant="primary", elem_id="tables-run")
    note, found = gr.HTML(elem_id="tables-note"), gr.HTML(elem_classes="found")

    def run(path: str | None, pages: str, threshold: float, whole: bool) -> tuple[str]:
        one = answers.find_tables(models, path, pages, threshold, whole or recipe.detection is None)
        # A document of its own, which runs the one script that its policy names, and knows nothing of this page.
        frame = 'sandbox="allow-scripts allow-downloads" title="The tables that were found"'
        return (f'<iframe {frame} srcdoc="{html.escape(one.html)}"></iframe>',)

    _on(gr, [button.click, file.upload], run, [file, pages, threshold, whole], [note, found])


def _classify(gr: Any, models: Models) -> None:
    _of(gr, models, "classify")
    with gr.Row():
        with gr.Column():
            file = gr.File(label="A picture", elem_id="classify-file")
            text = gr.Textbox(label="Or a text, for a checkpoint that reads texts", lines=3, elem_id="classify-text")
            button = gr.Button("Classify", variant="primary", elem_id="classify-run")
        with gr.Column():
            note = gr.HTML(elem_id="classify-note")
            image = gr.Image(show_label=False, interactive=False, buttons=[])
            labels = gr.Label(label="Labels", elem_id="classify-labels", buttons=[])

    def run(path: str | None, text: str) -> tuple[Any, dict[str, float]]:
        shown, found = answers.classify(models, path, text)
        return shown, dict(found)

    _on(gr, [button.click, file.upload, text.submit], run, [file, text], [note, image, labels])


def _segment(gr: Any, models: Models) -> None:
    _of(gr, models, "segment")
    with gr.Row():
        with gr.Column():
            file = gr.File(label="A picture", elem_id="segment-file")
            button = gr.Button("Segment", variant="primary", elem_id="segment-run")
        with gr.Column():
            note = gr.HTML(elem_id="segment-note")
            image = gr.Image(show_label=False, interactive=False, buttons=["fullscreen"])
            legend = gr.HTML(elem_id="segment-legend")

    def run(path: str | None) -> tuple[Any, str]:
        shown, areas = answers.segment(models, path)
        items = (
            f'<li><i style="background:rgb{area.colour}"></i>{html.escape(area.label)} {area.share:.1%}</li>'
            for area in areas
        )
        return shown, f'<ul class="legend">{"".join(items)}</ul>'

    _on(gr, [button.click, file.upload], run, file, [note, image, legend])


def _read(gr: Any, models: Models) -> None:
    _of(gr, models, "read")
    with gr.Row():
        with gr.Column():
            file = gr.File(label="A picture of text", elem_id="read-file")
            lines = gr.Checkbox(True, label="Several lines")
            button = gr.Button("Read", variant="primary", elem_id="read-run")
        with gr.Column():
            note = gr.HTML(elem_id="read-note")
            image = gr.Image(show_label=False, interactive=False, buttons=[])
            text = gr.Textbox(label="Text", lines=3, buttons=["copy"], interactive=False, elem_id="read-text")
            sure = gr.Number(label="Confidence, 0 to 1", interactive=False, precision=3)

    def run(path: str | None, lines: bool) -> tuple[Any, str, float]:
        return answers.read(models, path, lines)

    _on(gr, [button.click, file.upload], run, [file, lines], [note, image, text, sure])


def _embed(gr: Any, models: Models) -> None:
    _of(gr, models, "embed")
    with gr.Row():
        with gr.Column():
            text = gr.Textbox("A cat is in the garden.", label="A text", elem_id="embed-text")
            lines = gr.Textbox(EXAMPLE_LINES, label="Lines to compare it with", lines=8, elem_id="embed-lines")
            button = gr.Button("Compare", variant="primary", elem_id="embed-run")
        with gr.Column():
            note, found = gr.HTML(elem_id="embed-note"), gr.HTML(elem_id="embed-found")

    def run(text: str, lines: str) -> tuple[str]:
        among = answers.neighbours(models, text, lines)
        rows = (f"<tr><td>{cosine:.3f}</td><td>{html.escape(line)}</td></tr>" for line, cosine in among)
        return (f'<table class="lines"><tr><th>cosine</th><th>line</th></tr>{"".join(rows)}</table>',)

    _on(gr, [button.click, text.submit], run, [text, lines], [note, found])


def _chat(gr: Any, models: Models) -> None:
    _of(gr, models, "chat")
    said = gr.State([])
    shown = gr.Chatbot(
        label="Chat", render_markdown=False, feedback_options=None, buttons=["copy"], height="50vh", elem_id="chat-said"
    )
    note = gr.HTML(elem_id="chat-note")
    text = gr.Textbox(
        show_label=False, placeholder="Say something: Enter sends", max_lines=6, elem_id="chat-text", submit_btn=True
    )
    with gr.Row():
        stop, clear = gr.Button("Stop", elem_id="chat-stop"), gr.Button("New chat", elem_id="chat-clear")
    with gr.Row():
        most = gr.Slider(1, 1000, 200, step=1, label="Tokens of an answer, at most")
        heat = gr.Slider(0, 2, 0.7, step=0.05, label="Temperature; 0 takes the most likely")
    talk = answers.Talk(models)

    def run(text: str, before: list[dict[str, str]], most: float, heat: float) -> Iterator[tuple[Any, Any, str]]:
        answer, asked = "", [*before, {"role": "user", "content": text}]
        for piece in talk.say(text, before, int(most), heat):
            answer += piece
            messages = [*asked, {"role": "assistant", "content": answer}]
            yield messages, messages, ""

    outputs = [note, shown, said, text]
    (asked,) = _on(gr, [text.submit], run, [text, said, most, heat], outputs, show_progress="hidden")
    stop.click(None, cancels=[asked], queue=False, api_visibility="private")
    gr.on(
        [clear.click, shown.clear],
        lambda: ("", [], []),
        None,
        [note, shown, said],
        cancels=[asked],
        api_visibility="private",
    )


def _of(gr: Any, models: Models, tab: str) -> None:
    gr.HTML(f"<small>{html.escape(models.names[tab])}</small>")


def _on(gr: Any, events: list[Any], run: Callable[..., Any], inputs: Any, outputs: list[Any], **more: Any) -> list[Any]:
    """Let `run` answer to events, one thing at a time; what it has to say is written into the first of the outputs."""
    told = _streamed(gr, run, len(outputs)) if inspect.isgeneratorfunction(run) else _told(run, len(outputs))
    return [event(told, inputs, outputs, api_visibility="private", **ONE_AT_A_TIME, **more) for event in events]


def _told(run: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """A function whose result begins with what went wrong, or with what is warned of; "" where there is nothing."""

    @functools.wraps(run)
    def told(*given: Any) -> tuple[Any, ...]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            try:
                found = run(*given)
            except Exception as e:
                return _problem(e), *[None] * (outputs - 1)
        return _note(" ".join(str(one.message) for one in said)), *found

    return told


def _streamed(gr: Any, run: Callable[..., Iterator[Any]], outputs: int) -> Callable[..., Iterator[Any]]:
    """Likewise, of what comes piece by piece; what has come stays."""

    @functools.wraps(run)
    def told(*given: Any) -> Iterator[tuple[Any, ...]]:
        try:
            for found in run(*given):
                yield "", *found
        except Exception as e:
            yield _problem(e), *[gr.skip()] * (outputs - 1)

    return told


def _problem(error: Exception) -> str:
    """One message.  What no input should cause is told on stderr in full."""
    if isinstance(error, ZooError):
        return _note(str(error), "alert")
    if isinstance(error, MemoryError):
        return _note("not enough memory", "alert")
    traceback.print_exception(error)
    return _note("an error of zoo itself: the terminal says more", "alert")


def _note(text: str, role: str = "status") -> str:
    return f'<p class="note" role="{role}">{html.escape(text)}</p>' if text else ""
