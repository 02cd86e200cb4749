"""docs/performance.md, docs/measurements.md and the figures of docs/tables.md, made of the files in benchmarks/results.

    python -m benchmarks.pages            # writes them
    python -m benchmarks.pages --check    # exit status 1 if they are not what the files give

They hold what the files hold, the rows that lose among it, and nothing else that could change from run to run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import jobs, tables
from .harness import RESULTS

PERFORMANCE = Path(__file__).parent.parent / "docs" / "performance.md"
PAGE = PERFORMANCE.with_name("measurements.md")
TABLES = PAGE.with_name("tables.md")
FIGURES = "<!-- Made by `python -m benchmarks.pages`: do not edit. -->", "<!-- End of the figures. -->"
HEAD = """\
# All measurements

<!-- Made by `python -m benchmarks.pages` from benchmarks/results/*.json: do not edit. -->

Each benchmark runs both sides in turns, on the same weights and inputs, after their outputs have been compared.
Times are medians in milliseconds where no other unit is named. A ratio is zoo's time over the peer's, the median over
the rounds: **below 1 zoo is faster**, above 1 it is slower. Every row that was measured is here, with the newest
figures of a processor. [performance.md](performance.md) has the best and the worst for each job.
"""
NO_GPU = """\
No GPU has been measured: there is no `gpu-*.json` among the results. `python -m benchmarks.gpu all` measures one.
"""

Result = Mapping[str, Any]


class Kind(NamedTuple):
    """A benchmark's section of the page, and the function that makes tables of its results."""

    title: str
    about: str
    tables: Callable[[Result], str]
    command: str = ""  # if it is not called like its files


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 1 with --check if the page is not up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    args = parser.parse_args(argv)
    status = 0
    results = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    tables_page = with_figures(TABLES.read_text(encoding="utf-8"), RESULTS)
    for path, text in ((PERFORMANCE, jobs.page(results)), (PAGE, page(RESULTS)), (TABLES, tables_page)):
        if not args.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is not what the results give: run python -m benchmarks.pages", file=sys.stderr)
            status = 1
    return status


def with_figures(text: str, results: Path) -> str:
    """docs/tables.md with the figures of the newest result between its two comments."""
    found = {path: json.loads(path.read_text(encoding="utf-8")) for path in results.glob("tables-*.json")}
    before, _, rest = text.partition(FIGURES[0])
    newest = max(found, key=lambda path: found[path]["environment"]["date"], default=None)
    figures = ""
    if newest is not None:
        result = found[newest]
        figures = f"\n{_machine(result['environment'], newest)}\n\n{tables_of_half(result, 'final')}\n"
    return f"{before}{FIGURES[0]}\n{figures}{FIGURES[1]}{rest.partition(FIGURES[1])[2]}"


def page(results: Path) -> str:
    """The page for a folder of results."""
    paths = sorted(results.glob("*.json"))
    gpu = [path for path in paths if path.name.startswith("gpu-")]
    parts = [HEAD]
    for name, kind in KINDS.items():
        mine = [path for path in paths if _kind(path) == name]
        if not mine:
            continue
        parts.append(f"## {kind.title}\n\n{kind.about} `python -m benchmarks.{kind.command or name}`\n")
        for path in mine:
            result = json.loads(path.read_text(encoding="utf-8"))
            parts.append(f"{_machine(result['environment'], path)}\n\n{kind.tables(result)}")
    unknown = [path.name for path in paths if path not in gpu and _kind(path) not in (*KINDS, *ELSEWHERE)]
    if unknown:
        raise SystemExit(
            f"no table for {', '.join(unknown)}: a result's name begins with one of {', '.join(KINDS)}, gpu"
        )
    parts.append(f"## On a GPU\n\n{_gpu_tables(gpu) if gpu else NO_GPU}")
    return "\n".join(parts)


def _kind(path: Path) -> str:
    """cpu-zen4-2026-11-21.json -> cpu"""
    return path.name.partition("-")[0].removesuffix(".json")


def _machine(environment: Mapping[str, Any], path: Path) -> str:
    versions = ", ".join(f"{name} {environment['versions'][name]}" for name in SHOWN if name in environment["versions"])
    cores = f"{environment['cores']} cores, {environment['threads']} threads"
    if environment.get("blas_core"):
        cores += f", OpenBLAS for {environment['blas_core']}"
    if environment.get("clock") == "cpu":
        cores += ", **CPU seconds instead of wall time** since others computed there too"
    return f"{environment['date'][:10]}, {environment['cpu']}, {cores}; {versions} (`{path.name}`):"


SHOWN = (
    *("numpy", "torch", "transformers", "onnxruntime", "openvino", "sentence-transformers"),
    *("camelot-py", "img2table", "pdfplumber", "rapid-table", "rapidocr"),
)


# Tables


def _rows(result: Result) -> str:
    """The table of a file whose rows have times and ratios."""
    timed = [row for row in result["rows"] if row.get("times")]
    peers = list(dict.fromkeys(peer for row in timed for peer in row["ratios"]))
    head = ["", "zoo", *(cell for peer in peers for cell in (peer, "ratio"))]
    lines = []
    for row in timed:
        line = [row["row"], _ms(row["times"]["zoo"]["median_ms"])]
        for peer in peers:
            has = peer in row["ratios"]
            line += [_ms(row["times"][peer]["median_ms"]), _ratio(row["ratios"][peer]["ratio"])] if has else ["", ""]
        lines.append(line)
    ratios = [found["ratio"] for row in timed for found in row["ratios"].values()]
    return f"{_markdown(head, lines)}\n{_tally(ratios)}\n"


def _rows_and_errors(result: Result) -> str:
    """Rows, and the relative error and smallest cosine of each contender's states."""
    names = list(result["rows"][0]["errors"])
    lines = [
        [row["row"], *(f"{row['errors'][name]['error']:.1e}, {row['errors'][name]['cosine']:.4f}" for name in names)]
        for row in result["rows"]
    ]
    return f"{_rows(result)}\n{_markdown(['error, cosine', *names], lines)}\n"


def _quantised(result: Result) -> str:
    contexts = list(next(iter(result["runs"].values()))["decode"])
    lines = [
        [
            who,
            *(_ms(1e3 * found[what][n]) for what in ("prefill", "decode") for n in contexts),
            _mb(found["peak"]),
            _ratio(found["peak_of_file"]),
            _ratio(result["making"][who]) if who in result["making"] else "",
            f"{result['starts'][who]:.2f}" if who in result.get("starts", ()) else "",
        ]
        for who, found in result["runs"].items()
    ]
    ratios = [[f"{r['what']}: {r['ours']} / {r['theirs']}", _ratio(r["ratio"])] for r in result["ratios"]]
    head = ["", *(f"prompt of {n}, ms" for n in contexts), *(f"a token after {n}, ms" for n in contexts)]
    return (
        f"{_markdown([*head, 'peak memory', '/ file', 'while the graph is made', 'next start, s'], lines)}\n"
        f"{_markdown(['', 'ratio'], ratios)}\n{_tally([r['ratio'] for r in result['ratios']])}\n"
    )


def _answers(result: Result) -> str:
    """Seconds of each contender, and the peak of its memory."""
    lines = []
    for row in result["rows"]:
        for who, times in row["times"].items():
            run, peer = result["runs"][who][0], result["runs"]["transformers"][0]
            seconds = times["median_ms"], row["times"]["transformers"]["median_ms"]
            parts = [f"{n:.1f}" for n in (seconds[0] / 1e3, run["first"] - run["tiles"], run["cpu"] - run["first"])]
            ratios = _ratio(seconds[0] / seconds[1]), _ratio(run["peak"] / peer["peak"])
            lines.append([f"{row['row']}: {who}", *parts, ratios[0], _mb(run["peak"]), ratios[1]])
    head = ["", "seconds", "image and prompt", "tokens", "/ transformers", "peak memory", "/ transformers"]
    note = f"\n{result['note']}\n" if "note" in result else ""
    return f"{_markdown(head, lines)}{note}\n"


def _images(result: Result) -> str:
    """Seconds to the first token after an image, and for a token; the least of the rounds."""
    lines = []
    for who, of in result["runs"].items():
        first, token, peak = (min(one[key] for one in of) for key in ("first", "token", "peak"))
        lines.append([who, f"{first:.1f}", _ms(1e3 * token), _mb(peak), f"{result['differences'][who]:.3f}"])
    head = ["", "first token, s", "a token, ms", "peak memory", "logits, difference from zoo's"]
    ratios = [
        [f"{r['what']}: {r['ours']} / {r['theirs']}", _ratio(r["ratio"]), f"{r['target']:.2f}"]
        for r in result["ratios"]
    ]
    tally = _tally([r["ratio"] for r in result["ratios"]])
    note = f"{result['note']}\n\n" if "note" in result else ""
    return f"{note}{_markdown(head, lines)}\n{_markdown(['', 'ratio', 'wanted'], ratios)}\n{tally}\n"


def _soak(result: Result) -> str:
    """The visits of each kind of client."""
    lines = [
        [who, f"{found['visits']:,}", *(_ms(found[key]) for key in ("p50 ms", "p99 ms"))]
        for who, found in result["visits"].items()
    ]
    about = f"{result['minutes']:g} minutes, {result['rate']:g} clients a second.\n\n"
    return f"{about}{_markdown(['client', 'visits', 'median, ms', '99 of 100 within, ms'], lines)}"


def _coldstart(result: Result) -> str:
    lines = []
    for who, marks in {**result["processes"], **{f"zoo, {k} file": v for k, v in result["stored"].items()}}.items():
        times = [f"{marks[mark]['seconds']:.3f}" if mark in marks else "" for mark in ("import", "load", "output")]
        peak = max(mark["peak"] for mark in marks.values() if "peak" in mark)
        lines.append([who, *times, f"{marks['whole']['seconds']:.3f}", _mb(peak)])
    head = ["seconds since the start, to the end of", "import", "load", "output", "process", "peak memory"]
    figures = [[name, f"{found['value']:.3g}"] for name, found in result["figures"].items()]
    return f"{_markdown(head, lines)}\n{_markdown(['', ''], figures)}"


def _tables(result: Result) -> str:
    """Both halves of each set, and the tables that a peer gets better than zoo."""
    return "".join(f"\n{tables_of_half(result, half)}\n{_behind(result, half)}" for half in ("final", "look")).lstrip()


def tables_of_half(result: Result, half: str) -> str:
    """The figures of every contender on one half of each set; the best of those that are told nothing is bold."""
    text = f"**The half {HALVES[half]}**\n"
    for name, found in result["sets"].items():
        mine = [i for i, file in enumerate(found["files"]) if file["half"] == half]
        of = {who: tables.summary(files[i] for i in mine) for who, files in found["contenders"].items()}
        best = max((one["con"] for who, one in of.items() if who not in (tables.TOLD, tables.GIVEN)), default=0)
        lines = []
        for who, one in of.items():
            con, *more = tables.figures(one)
            lines.append([who, f"**{con}**" if one["con"] == best else con, *more, *tables.speed(one)])
        head = [f"{tables.SETS[name]}: {len(mine)} files", *tables.HEAD, *tables.HEAD_OF_SPEED]
        text += f"\n{_markdown(head, lines)}" if mine else ""
    return text + "\n{}: {wall:.2f} s, {cpu:.2f} s of the CPU, {peak:.0f} MB.\n".format(
        tables.PROCESS, **result["process"]
    )


def _behind(result: Result, half: str) -> str:
    """The tables in which a peer that is told as little as zoo has a higher GriTS-Con."""
    lines = []
    for found in result["sets"].values():
        for i, file in enumerate(found["files"]):
            for who in tables.CONTENDERS if file["half"] == half else ():
                if who not in found["contenders"]:
                    continue
                pairs = zip(found["contenders"][who][i]["tables"], found["contenders"]["zoo"][i]["tables"], strict=True)
                of = [f"{t[3]:.3f} to {z[3]:.3f}" for t, z in pairs if t[3] > z[3]]
                lines += [f"{'/'.join(file['file'].split('/')[-2:])}: {who} {', '.join(of)}"] if of else []
    return f"zoo is behind in GriTS-Con here: {'; '.join(lines) or 'nowhere'}.\n"


HALVES = {"final": "that was opened for these figures only", "look": "that was looked at while zoo was improved"}


def _gpu_tables(paths: Sequence[Path]) -> str:
    from .gpu.table import table

    names = ", ".join(f"`{path.name}`" for path in paths)
    return f"`python -m benchmarks.gpu`: {names}\n\n{table(list(paths)).strip()}\n"


def _speculative(result: Result) -> str:
    return _rows({"rows": result["results"]})


def _serving(result: Result) -> str:
    """A line for each way of asking, offline and over HTTP."""
    head = ["", "a second", "median, ms", "99 % within, ms", "CPU, ms of each"]
    lines = []
    for part in ("embeddings", "generation"):
        for name, one in result.get(part, {}).items():
            waits = [_ms(one[key]) if key in one else "" for key in ("p50 ms", "p99 ms", "CPU ms")]
            lines.append([f"{part}: {name}", f"{one['a second']:.1f}", *waits])
    load = result["environment"]["load_before"]
    return f"{_markdown(head, lines)}\nThe machine's load was {load:.1f} before: others may have computed there too.\n"


def _streams(result: Result) -> str:
    """Rates, and how many times as much the streams together get: more is better."""
    lines = [[what, f"{rate:.1f}"] for what, rate in result["tokens a second"].items()]
    found = ", ".join(f"{ratio:.2f} {what}" for what, ratio in result["ratios of streams"].items())
    newcomer = result.get("newcomer")
    first = f" A newcomer has its first token after {newcomer['ms']:.0f} ms." if newcomer else ""
    return f"{_markdown(['', 'tokens a second'], lines)}\nThe streams' rate is {found}.{first}\n"


KINDS = {
    "cpu": Kind("Texts and images", "Encoders, from ids or pixel values to outputs; a JPEG to pixel values.", _rows),
    "table": Kind("Table Transformer", "A table's image to boxes.", _rows, "cpu --models table-structure"),
    "tables": Kind("Tables", "Pictures and PDFs, nothing given, see [tables.md](tables.md).", _tables),
    "sentences": Kind("Sentences", "10,000 of mixed length to vectors, each side in a process of its own.", _rows),
    "families": Kind("Families", "One short input each at full size, zoo on ONNX Runtime, each in a process.", _rows),
    "answers": Kind(
        "Answers about images", "A page's image to 300 tokens by Granite Docling's layout, each side alone.", _answers
    ),
    "images": Kind(
        "Images and llama.cpp",
        "An image of 1,008 tokens and the tokens after it, Qwen2.5-VL's layout in 4 bits, zoo and llama.cpp's mtmd.",
        _images,
    ),
    "whisper": Kind("Whisper", "A minute of speech to 200 tokens by whisper-base, each side in a process.", _rows),
    "onnx": Kind("ONNX graphs", "zoo's against torch.onnx's of transformers, both by ONNX Runtime.", _rows),
    "openvino": Kind(
        "bfloat16 on a CPU",
        "zoo on OpenVINO in bfloat16, zoo in float32, and transformers, each alone, see [onnx.md](onnx.md#openvino).",
        _rows_and_errors,
    ),
    "onnx_int8": Kind(
        "int8 on ONNX Runtime", "Time, and errors to transformers, see [onnx.md](onnx.md).", _rows_and_errors
    ),
    "quantised": Kind(
        "Quantised weights",
        "The shapes of Llama-3.2-1B or Qwen3-0.6B (qwen3), packed, on NumPy, ONNX Runtime and llama.cpp.",
        _quantised,
    ),
    "soak": Kind("Serving", "`zoo serve` beside clients that also send nonsense, dawdle or vanish.", _soak),
    "serving": Kind("Serving", "Sentences and tokens a second, offline and over HTTP.", _serving),
    "streams": Kind("Streams", "Tokens a second of `zoo serve`, and of llama.cpp's batches.", _streams),
    "speculative": Kind("Guessed tokens", "Prompt lookup beside plain decoding.", _speculative),
    "coldstart": Kind("Start and memory", "From a new process to a first output.", _coldstart),
}

ELSEWHERE = ("kills", "openvino_start")  # results that other pages tell of

# Cells


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(
        "| " + "".join(f"{cell} | " if cell else "| " for cell in line).rstrip() + "\n" for line in (head, rule, *lines)
    )


def _tally(ratios: Sequence[float]) -> str:
    """Rounded as they are shown, so that nobody counts to another sum."""
    shown = [round(ratio, 2) for ratio in ratios]
    faster, slower = sum(ratio < 1 for ratio in shown), sum(ratio > 1 for ratio in shown)
    return f"zoo is faster in {faster} of {len(shown)} comparisons, and slower in {slower}."


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _ratio(value: float) -> str:
    return f"**{value:.2f}**" if round(value, 2) < 1 else f"{value:.2f}"


def _mb(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


if __name__ == "__main__":
    raise SystemExit(main())
