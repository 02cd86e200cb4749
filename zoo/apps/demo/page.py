"""The demo's page in Gradio, a tab for each kind of task.

Untrusted texts go to components that show plain text, or are escaped.
"""

from __future__ import annotations

import html
import inspect
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ...errors import ZooError
from ...optional import import_optional
from ...task_kinds import TaskKind
from ..documents import EXAMPLE
from . import answers
from .models import Models

# What runs in the browser before a request is sent, and passes its values on.
CLOSE_NOTES = """(...values) => {
  document.querySelectorAll("[data-testid=toast-close]").forEach((button) => button.click());
  return values;
}"""
LINES = "The cat sits outside.\nA man is playing guitar.\nThe new movie is awesome.\nA kitten rests on the rug."
CSS = """
.gradio-container { max-width: 90rem !important; }
html, body, button, input, select, textarea { font-family: system-ui, sans-serif !important; }
.found, .found .html-container { padding: 0 !important; }
.found iframe { width: 100%; height: max(32rem, calc(100vh - 8rem)); border: 1px solid var(--border-color-primary); }
@media (max-width: 30rem) {
  .found, .found .html-container { overflow: visible !important; }
  .found iframe { width: calc(100% + 3rem); max-width: none; margin-left: -1.5rem; }
}
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; list-style: none; margin: 0; padding: 0; }
.legend i { display: inline-block; width: 1em; height: 1em; margin-right: .4em; vertical-align: -.1em; }
"""


def gradio() -> Any:
    """The package gradio, with its analytics switched off."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    return import_optional("gradio", "the demo", "demo")


def build(models: Models) -> Any:
    """The page: gradio.Blocks."""
    gr, config = gradio(), models.config
    make: dict[str, Any] = {"render": False}  # `_tab` places the components
    picture = partial(gr.File, label="A picture", **make)
    shown = partial(gr.Image, show_label=False, interactive=False, buttons=["fullscreen"], **make)
    with gr.Blocks(title="zoo", analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        gr.Markdown("# zoo\nEverything runs on this machine. A checkpoint is loaded when its tab is first used.")
        inputs = [
            gr.File(label="A PDF, or a picture of a page", elem_id="tables-file", **make),
            gr.Textbox(label="Pages", placeholder="all; or such as 3-7,9", max_length=200, **make),
            gr.Slider(0, 1, config.threshold, step=0.05, label="Least score of tables and their parts", **make),
            gr.Checkbox(config.detection is None, label="The whole page is one table", **make),
            gr.Textbox(label="Password of an encrypted PDF", type="password", max_length=200, **make),
        ]
        outputs = [gr.HTML(elem_classes="found", **make)]
        _tab(gr, "Tables", "Find tables", partial(_tables, models), inputs, outputs, example=str(EXAMPLE), scale=5)
        inputs = [
            picture(elem_id="classify-file"),
            gr.Textbox(label="Or a text, for a checkpoint that reads texts", lines=3, **make),
        ]
        outputs = [shown(), gr.Label(label="Labels", elem_id="classify-labels", buttons=[], **make)]
        _tab(gr, "Classify", "Classify", partial(answers.classify, models), inputs, outputs, models.note("classify"))
        inputs, outputs = [picture(elem_id="segment-file")], [shown(), gr.HTML(elem_id="segment-legend", **make)]
        _tab(gr, "Segment", "Segment", partial(_segment, models), inputs, outputs, models.note("segment"))
        inputs = [picture(elem_id="read-file"), gr.Checkbox(True, label="Several lines", **make)]
        outputs = [
            shown(),
            gr.Textbox(label="Text", lines=3, buttons=["copy"], interactive=False, **make),
            gr.Number(label="Confidence, 0 to 1", interactive=False, precision=3, **make),
        ]
        run = partial(answers.read, models)
        _tab(gr, "Read", "Read", run, inputs, outputs, models.note("read"), example=str(EXAMPLE))
        inputs = [
            gr.Textbox("A cat is in the garden.", label="A text", **make),
            gr.Textbox(LINES, label="Lines to compare it with", lines=8, **make),
        ]
        outputs = [gr.Dataframe(headers=["cosine", "line"], datatype="str", interactive=False, wrap=True, **make)]
        _tab(gr, "Embed", "Compare", partial(_embed, models), inputs, outputs, models.note("embed"))
        for kind in models.rows:
            _add_row(gr, models, kind)
        with gr.Tab("Chat"):
            _chat(gr, models)
    page.queue(max_size=20, api_open=False)
    return page


def _add_row(gr: Any, models: Models, kind: TaskKind) -> None:
    """Add the tab of a task, made from its row: fields for its arguments, a table and perhaps a picture."""
    make: dict[str, Any] = {"render": False}
    inputs: list[Any] = []
    if kind.reads != "text":
        what = "A picture" if kind.reads == "image" else "A recording"
        inputs.append(gr.File(label=what, elem_id=f"{kind.name}-file", **make))
    for name in answers.text_fields(kind):
        label = name.replace("_", " ").capitalize().removesuffix("" if answers.is_list(kind, name) else "s")
        option = kind.option(name)
        many = answers.is_list(kind, name) and option is None
        hint = ", one in each line" if many else ", with commas between them" if answers.is_list(kind, name) else ""
        lines = 8 if many else 3 if option is None else 1
        inputs.append(gr.Textbox(label=label + hint, lines=lines, **make))
    table = gr.Dataframe(
        label="Result", datatype="str", interactive=False, wrap=True, elem_id=f"{kind.name}-result", **make
    )
    outputs = (
        [gr.Image(show_label=False, interactive=False, buttons=["fullscreen"], **make), table]
        if kind.draws
        else [table]
    )

    def run(*values: Any) -> Any:
        path, texts = (None, values) if kind.reads == "text" else (values[0], values[1:])
        picture, rows = answers.run_task(models, kind, path, texts)
        width = max(map(len, rows), default=1)
        found = {
            "headers": [" " * (i + 1) for i in range(width)],
            "data": [row + [""] * (width - len(row)) for row in rows],
        }
        return (picture, found) if kind.draws else found

    _tab(gr, kind.name.replace("-", " ").capitalize(), "Run", run, inputs, outputs, models.note(kind.name))


def _tab(
    gr: Any,
    name: str,
    verb: str,
    run: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    note: str = "",
    example: str | None = None,
    scale: int = 1,
) -> None:
    """Add a tab that runs when a file is uploaded, Enter is pressed in its first text, or its button is pressed.

    An error leaves no results of an earlier input on the page.

    example: a file that a second button takes in place of an uploaded one.  scale: the width of the outputs relative to
    the inputs.
    """
    with gr.Tab(name):
        gr.HTML(f"<small>{html.escape(note)}</small>")
        with gr.Row():
            with gr.Column():
                for one in inputs:
                    one.render()
                button = gr.Button(verb, variant="primary", elem_id=f"{name.lower()}-run")
                if example is not None:
                    other = gr.Button("Try an example page", elem_id=f"{name.lower()}-example")
                    _on(gr, [other.click], partial(run, example), inputs[1:], outputs, clears=True)
            with gr.Column(scale=scale):
                for one in outputs:
                    one.render()
        first = inputs[0]
        triggers = [button.click, first.upload if isinstance(first, gr.File) else first.submit]
        _on(gr, triggers, run, inputs, outputs, clears=True)


def _tables(models: Models, path: str | None, pages: str, threshold: float, whole: bool, password: str = "") -> str:
    whole = whole or models.config.detection is None
    page = answers.find_tables(models, path, pages, threshold, whole, password or None)
    # A document of its own, which runs the one script that its policy names, and knows nothing of this page.
    frame = 'sandbox="allow-scripts allow-downloads" title="The tables that were found"'
    return f'<iframe {frame} srcdoc="{html.escape(page)}"></iframe>'


def _segment(models: Models, path: str | None) -> tuple[Any, str]:
    shown, areas = answers.segment(models, path)
    label = '<li><i style="background:rgb{}"></i>{} {:.1%}</li>'
    items = [label.format(colour, html.escape(area.label), area.share) for area, colour in areas]
    return shown, f'<ul class="legend">{"".join(items)}</ul>'


def _embed(models: Models, text: str, lines: str) -> list[list[str]]:
    return [[f"{cosine:.3f}", line] for cosine, line in answers.neighbours(models, text, lines)]


def _chat(gr: Any, models: Models) -> None:
    gr.HTML(f"<small>{html.escape(models.note('chat'))}</small>")
    messages = gr.State([])
    shown = gr.Chatbot(
        label="Chat", render_markdown=False, feedback_options=None, buttons=["copy"], height="50vh", elem_id="chat-said"
    )
    text = gr.Textbox(show_label=False, placeholder="Enter sends", max_lines=6, elem_id="chat-text", submit_btn=True)
    with gr.Row():
        stop, clear = gr.Button("Stop", elem_id="chat-stop"), gr.Button("New chat", elem_id="chat-clear")
    with gr.Row():
        most = gr.Slider(1, 1000, 200, step=1, label="Maximum tokens of an answer")
        temperature = gr.Slider(0, 2, 0.7, step=0.05, label="Temperature; 0: no sampling")
    talk = answers.Talk(models)

    def run(text: str, before: list[Any], most: float, temperature: float) -> Iterator[tuple[Any, Any, str]]:
        answer = ""
        for piece in talk.say(text, before, int(most), temperature):
            answer += piece
            now = [*before, {"role": "user", "content": text}, {"role": "assistant", "content": answer}]
            yield now, now, ""

    inputs, outputs = [text, messages, most, temperature], [shown, messages, text]
    asked = _on(gr, [text.submit], run, inputs, outputs, show_progress="hidden")
    stop.click(None, cancels=[asked], queue=False, api_visibility="private")
    gr.on([clear.click, shown.clear], lambda: ([], []), None, outputs[:2], cancels=[asked], api_visibility="private")


def _on(
    gr: Any, triggers: list[Any], run: Callable[..., Any], inputs: Any, outputs: Any, clears: bool = False, **more: Any
) -> Any:
    """Call `run`, a function or a generator, on events; errors and warnings are shown as notes over the page.

    Notes of what was asked before go away.  clears: an error empties the outputs.
    """

    def answer(*given: Any) -> Iterator[Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                result = run(*given)
                yield from result if inspect.isgenerator(result) else [result]
            except Exception as e:
                if clears:
                    yield [None] * len(outputs) if len(outputs) > 1 else None
                raise gr.Error(html.escape(_problem(e)), duration=None, print_exception=False) from None
        for one in caught:
            gr.Warning(html.escape(str(one.message)), duration=None)

    # Only one request is computed at a time: it uses all threads, and memory may not suffice for two.
    limit = {"concurrency_limit": 1, "concurrency_id": "models"}
    more |= {"api_visibility": "private", "js": CLOSE_NOTES}
    return gr.on(triggers, answer, inputs, outputs, **limit, **more)


def _problem(error: Exception) -> str:
    """The message to show.  For an error that no input should cause, the traceback goes to stderr."""
    if isinstance(error, ZooError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory"
    traceback.print_exception(error)
    return "internal error: the terminal shows the traceback"
