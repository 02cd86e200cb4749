"""The report as one HTML file that can be read offline: its policy forbids scripts and requests."""

from __future__ import annotations

import base64
import io
import math
import re
import shlex
from collections.abc import Sequence
from datetime import datetime, timezone
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from zoo.errors import ZooError
from zoo.optional import pip_install

from .cases import short_name
from .compare import Multiple, Rule, Stage, Tolerance
from .exhibits import Exhibit, Overlays
from .report import document, figures, format_small, of_scale, rules_of, share, verdict, worst_figures
from .run import Result

MAX_OPEN = 3  # a page of at most so many results has all of them open
# A curve's size in SVG's units, which the page scales; how many stages have a name below it, of how many letters.
WIDTH, HEIGHT = 440, 150
MAX_LABELS, MAX_LETTERS = 20, 16
WORDS = re.compile(r"\s+|\w+|[^\w\s]")
MAX_WORDS = 5000  # the time to compare two texts word by word grows with their square
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f]")  # each has a visible symbol in Unicode
UNSEEN_CHARACTERS = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Words in a row of scripts that are written from right to left.
RIGHT_TO_LEFT_WORDS = re.compile(
    r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: [\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*)"
)


class MissingToolError(ZooError):
    """A package that makes the page is not installed."""


def require() -> None:
    """Import the package that makes the page; MissingToolError tells how to install it."""
    try:
        import jinja2  # noqa: F401
    except ImportError as e:
        raise MissingToolError(f"the HTML report needs {e.name}: {pip_install('parity')}") from None


def write_page(folder: Path, results: Sequence[Result], command: str) -> Path:
    """Write folder/index.html about the results of `command` -> its path.  The folder is made if it does not exist."""
    require()
    import jinja2

    options: dict[str, Any] = dict.fromkeys(("autoescape", "trim_blocks", "lstrip_blocks"), True)
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, finalize=_visible_value, **options
    )
    functions = (command_for, curve, difference_of, differences, figure, figures, is_low, png_uri)
    functions += (runs, sentence, share, short_name, times_of_limit, worst_figures)
    text = environment.get_template("page.html.jinja").render(
        # Those that diverge are first, then those that could not be run.
        results=sorted(results, key=lambda result: (result.holds, result.error is not None)),
        verdict=verdict(results),
        rules=rules_of(results),
        facts=document(results, command),
        now=datetime.now(timezone.utc),
        max_open=MAX_OPEN,
        **{function.__name__: function for function in functions},
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def is_low(result: Result) -> bool:
    """True for low precision, where both sides are compared with the reference in float32."""
    return isinstance(result.tolerance, Multiple)


def figure(value: float) -> str:
    """An error as text: 0 only for arrays that are equal to the last bit."""
    return "0" if value == 0 else format_small(value)


# Limits


def limit_of(stage: Stage, rule: Rule | None) -> float | None:
    """The largest relative L2 error with which a stage holds; None if no number decides."""
    if rule is None or math.isnan(stage.relative_l2) or stage.name == "processor":
        return None
    if isinstance(rule, Tolerance):
        return rule.relative_l2
    return None if stage.reference_error is None else rule.times * max(stage.reference_error, rule.least)


def share_of_limit(stage: Stage, rule: Rule | None) -> float | None:
    """A stage's error divided by its limit: for relative L2 or max abs, whichever is nearer to its limit."""
    limit = limit_of(stage, rule)
    if limit is None:
        return None
    parts = [stage.relative_l2 / limit]
    if isinstance(rule, Tolerance):
        parts.append(of_scale(stage) / rule.max_abs)
    return max(parts)


def nearest(result: Result) -> tuple[float | None, Stage | None]:
    """The stage nearest to its limit, or farthest beyond it, after the part of the limit that it uses."""
    shares = [(share_of_limit(stage, result.tolerance), stage) for stage in result.stages]
    known = [(used, stage) for used, stage in shares if used is not None]
    return max(known, key=lambda pair: pair[0], default=(None, None))


def times(used: float) -> str:
    """A part of the limit as text, "0.09" or "3,200": never rounded across the limit."""
    if used < 10:
        return f"{(math.floor if used < 1 else math.ceil)(100 * used) / 100:.2f}"
    return f"{used:,.0f}" if used < 1e6 else f"{used:.0e}"


def times_of_limit(result: Result) -> str:
    used, _ = nearest(result)
    return "" if used is None else f"{times(used)} ×"


def sentence(result: Result) -> str:
    """The verdict in words, with the stage that decides it."""
    if result.error:
        return f"Could not be run: {result.error}"
    stages, (used, stage) = result.stages, nearest(result)
    first = next((stage for stage in stages if not stage.holds), None)
    if first is None:
        at = f" {stage.name} is nearest to its limit: {times(used)} of it." if stage and used else ""
        return f"All {len(stages)} stages hold.{at}"
    used = share_of_limit(first, result.tolerance)
    why = first.note or f"top-1 agreement is {share(first.top1)}"
    if used is not None and used > 1:
        why = f"its error is {times(used)} times its limit"
    at = f"{stages.index(first) + 1} of {len(stages)}, in the batch “{first.batch}”"
    return f"The first stage that diverges is {first.name}, {at}: {why}."


def command_for(result: Result) -> str:
    """The command that reproduces this result alone."""
    words = ["zoo", "parity", result.case.name]
    words += ["--full"] * (result.case.size == "full")
    words += ["--lock", result.case.lock_file] if result.case.lock_file else []
    words += ["--revision", result.revision or result.case.revision] if result.case.revision else []
    words += ["--device", result.device] * (result.device not in ("", "cpu"))
    words += ["--dtype", result.dtype] * (result.dtype not in ("", "float32"))
    words += ["--seed", str(result.seed)] * bool(result.seed)
    return shlex.join(words)


# The curve of the error


def curve(result: Result) -> dict[str, Any]:
    """The curve of relative L2 over the stages, in SVG's units on a logarithmic scale; {} where no stage has a number.

    Zero is at the bottom and infinity at the top; a stage without a number is a gap.
    """
    stages = [s for s in result.stages if not math.isnan(s.relative_l2) or s.name == result.first_divergence]
    limits = [limit_of(stage, result.tolerance) for stage in stages]
    lines: dict[str, list[float | None]] = {"zoo": [stage.relative_l2 for stage in stages]}
    if is_low(result):
        lines = {"transformers": [stage.reference_error for stage in stages], **lines}
    lines = {who: [None if v is None or math.isnan(v) else v for v in values] for who, values in lines.items()}
    known = [v for values in (*lines.values(), limits) for v in values if v is not None]
    if not known:
        return {}
    decades = [math.log10(v) for v in known if 0 < v < math.inf] or [-8, -4]
    # The same for all small errors, so that curves can be compared.
    bottom, top = min(math.floor(min(decades)), -8 if min(decades) < -4 else -5), math.ceil(max(decades) + 0.3)
    step = WIDTH / len(stages)

    def y(value: float) -> float:
        decade = min(max(math.log10(value), bottom), top) if value else bottom
        return round(HEIGHT * (top - decade) / (top - bottom), 1)

    def line(values: list[float | None]) -> dict[str, Any]:
        marks, path, pen = [], "", "M"
        for i, value in enumerate(values):
            if value is None:
                pen = "M"
                continue
            marks.append((round(step * (i + 0.5), 1), y(value), f"{stages[i].name}: {value:.1e}"))
            path += f"{pen}{marks[-1][0]} {marks[-1][1]}"
            pen = "L"
        return {"marks": marks, "path": path}

    at = next((i for i, stage in enumerate(stages) if stage.name == result.first_divergence), None)
    every = math.ceil(len(stages) / MAX_LABELS)
    labelled = [i for i in range(len(stages)) if i == at or (i % every == 0 and (at is None or abs(i - at) >= every))]
    names = [(step * (i + 0.5), stages[i].name) for i in labelled]
    return {
        "ticks": [
            (y(10.0**decade), "0" if decade == bottom and 0 in known else f"1e{decade}")
            for decade in range(bottom, top + 1, math.ceil((top - bottom) / 6))
        ],
        "names": [(x, name if len(name) <= MAX_LETTERS else name[: MAX_LETTERS - 1] + "…") for x, name in names],
        "lines": {who: line(values) for who, values in lines.items()},
        "limits": "".join(f"M{step * i:.1f} {y(v)}h{step:.1f}" for i, v in enumerate(limits) if v),
        "height": HEIGHT + 40 + 5 * max(min(len(name), MAX_LETTERS) for _, name in names),  # with the turned names
        "diverged": None if at is None else (step * at, step),
    }


# Exhibits


def png_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def difference_of(exhibit: Exhibit) -> str:
    """A phrase that says in how much the two sides differ."""
    if exhibit.ours == exhibit.reference:
        return "identical"
    if not isinstance(exhibit, Overlays):
        count = max(sum(marked for _, marked in side) for side in differences(exhibit.ours, exhibit.reference))
        return f"differ in {count} place{'s' * (count != 1)}"
    import numpy as np
    from PIL import Image

    a, b = (np.asarray(Image.open(io.BytesIO(png)).convert("RGB")) for png in (exhibit.ours, exhibit.reference))
    if a.shape != b.shape:
        return "differ in size"
    count = int((a != b).any(-1).sum())
    return f"{count:,} of {a.shape[0] * a.shape[1]:,} pixels differ" if count else "identical"


def differences(ours: str, reference: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces, with True where the other text differs."""
    a, b = WORDS.findall(ours), WORDS.findall(reference)
    if max(len(a), len(b)) > MAX_WORDS:
        a, b = ours.splitlines(keepends=True), reference.splitlines(keepends=True)
    left: list[tuple[str, bool]] = []
    right: list[tuple[str, bool]] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for pieces, words in ((left, a[i:j]), (right, b[k:m])):
            if words:
                pieces.append(("".join(words), kind != "equal"))
    return left, right


def runs(text: str) -> list[tuple[str, bool]]:
    """The text in parts, with True for words from right to left, which swap places with figures beside them."""
    return [(part, i % 2 == 1) for i, part in enumerate(RIGHT_TO_LEFT_WORDS.split(text)) if part]


def visible(text: str) -> str:
    """The text with a symbol for each character that HTML cannot show, or that reverses the text after it."""
    return UNSEEN_CHARACTERS.sub(
        "\N{REPLACEMENT CHARACTER}", CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])), text)
    )


def _visible_value(value: Any) -> Any:
    """What the template shows of a value; markup, which its macros made of such values, stays."""
    return visible(value) if type(value) is str else value
