"""Real tables, found and read by zoo and by other libraries, each alone in a process, with nothing given.

    python -m benchmarks.table_material                      # fetches the pictures and PDFs
    python -m venv PEERS && PEERS/bin/pip install -r benchmarks/tables_requirements.txt
    python -m benchmarks.tables --peers PEERS/bin/python     # all, and writes benchmarks/results/tables-...json
    python -m benchmarks.tables --half look --only zoo --sets pubtabnet gmft --rows    # while zoo is improved
    python -m benchmarks.tables --half look --only zoo --structure slanet              # another network of zoo's

zoo is `zoo table FILES -o tables.jsonl`, as README has it.  Two rows are told more than the others, and say so:
"told it is a table" is --no-detection, and "objects and words given" hands over the truth, off by up to 1.2 pixels.
rapid_table takes every picture as one table.  The peers' answers are kept in the cache folder by the file's sha256.
ICDAR's PDFs come twice: as they are, and as pictures of their pages, of which no library gets the words.

Of the tables of a page each true one is compared with the found one that shares most text with it.  GriTS-Con and
GriTS-Top, 0 ... 1, are means over the true tables, 0 for one that was not found.  A row is right if all of its texts
are, and no other row comes between; white space and leaders are left out, and dashes, quotes and signs that look alike
are the same, as in `benchmarks.lines`.  A table is right if it has the true number of rows and of columns and a
GriTS-Con of 0.95; a file, if all of its tables are and nothing else was taken for one.
The truth of the ruled PDFs is pdfplumber's, faults included (words of two lines in disorder, say).  "agreed" are those
of its rows that camelot, which finds the lines in a picture of the page, has with the same texts: all of camelot's own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import harness
from .checkpoints import cache_folder
from .table_contenders import CONTENDERS
from .table_material import Material, material, material_folder, pubtabnet
from .table_samples import annotated
from .table_scores import score, summary, tables_of

if TYPE_CHECKING:
    from zoo.apps.tables import Table

ALONE, TOLD, GIVEN = "zoo", "zoo told it is a table", "zoo with objects and words given"
SETS = {
    "pages": "pages and screenshots",
    "more": "more pages and screenshots",
    "pubtabnet": "PubTabNet's tables, cut out",
    "validation": "more of PubTabNet's tables, cut out",
    "gmft": "gmft's tables, cut out (answer: gmft's)",
    "icdar": "PDFs of ICDAR 2013",
    "drawn": "the same as pictures of 150 dpi, without their words",
    "ruled": "ruled PDFs (answer: pdfplumber's; agreed: camelot's, too)",
}
PDFS = ("icdar", "ruled")
PICTURES = ("pages", "more", "pubtabnet", "validation", "gmft")
FOR = {  # the sets that a contender can take
    TOLD: ("pubtabnet", "validation", "gmft"),
    GIVEN: ("pubtabnet",),
    "img2table + tesseract": PICTURES,  # the PDFs have their words
    "rapid_table": PICTURES,
    "camelot": PDFS,
    "pdfplumber": ("icdar",),  # the answer of the ruled ones is its own
}
NAMES = (ALONE, TOLD, GIVEN, *CONTENDERS)
PROCESS = "The page that comes with zoo to a CSV file, start included"
REQUIREMENTS = Path(__file__).with_name("tables_requirements.txt")
INSTALL = f"it is missing: pip install -r {REQUIREMENTS}, and name that Python with --peers"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=("look", "final"), help="default: both")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all")
    parser.add_argument("--files", nargs="+", default=(), metavar="PART", help="only files with this in their path")
    parser.add_argument("--rows", action="store_true", help="a line for each table, too")
    parser.add_argument("--material", type=Path, default=material_folder(), metavar="DIR", help="default: %(default)s")
    parser.add_argument(
        "--peers", default=sys.executable, metavar="PYTHON", help="the one that has the other libraries"
    )
    parser.add_argument("--keep", type=Path, default=cache_folder() / "tables", help="answers (default: %(default)s)")
    parser.add_argument("--structure", metavar="NAME", help="of `zoo table`, instead of its own (nothing is written)")
    parser.add_argument("--json", type=Path, help="default: benchmarks/results/tables-..., if nothing is missing")
    args = parser.parse_args(argv)
    threads = harness.take_threads(None)

    wanted = [
        one
        for one in material(args.material)
        if one.set in args.sets
        and args.half in (None, one.half)
        and (not args.files or any(part in one.path for part in args.files))
    ]
    for one in wanted:
        if not one.file.is_file():
            print(f"skipped: {one.path} of {one.repo} is missing: python -m benchmarks.table_material")
    wanted = [one for one in wanted if one.file.is_file()]
    result: dict[str, Any] = {"environment": harness.environment(threads), "sets": {}}
    requirements = re.findall(r"^(\S+)==(\S+)$", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    result["environment"]["versions"] |= dict(requirements)
    print(harness.summary(result["environment"]))
    for name in dict.fromkeys(one.set for one in wanted):
        of = [one for one in wanted if one.set == name]
        truth = truths(of, args.keep, args.peers)
        second = run("camelot", of, args.keep, args.peers) if name == "ruled" and truth else None
        runs = {}
        for contender in args.only if truth else ():
            if name in FOR.get(contender, SETS):
                answers = run(contender, of, args.keep, args.peers, args.structure)
                runs[contender] = answers and [
                    score(truth[one.key], answers[one.key], one, second and second[one.key]) for one in of
                ]
        result["sets"][name] = {
            "files": [{"file": one.path, "repo": one.repo, "half": one.half, "sha256": one.sha256} for one in of],
            "contenders": {contender: found for contender, found in runs.items() if found is not None},
        }
        show(name, result["sets"][name], args.rows)
    done = {(name, contender) for name, found in result["sets"].items() for contender in found["contenders"]}
    all_of_it = {(name, contender) for contender in NAMES for name in FOR.get(contender, SETS)}
    if args.json or (done == all_of_it and not args.structure and len(wanted) == len(material(args.material))):
        result["process"] = process()
        path = args.json or harness.RESULTS / f"tables-{result['environment']['processor']}.json"
        text = re.sub(r"\n {5,}", "", json.dumps(result, indent=1))  # a line for each file and contender
        path.write_text(text + "\n", encoding="utf-8")
        print(f"written to {path}: python -m benchmarks.pages writes it into the docs")
    return 0


# Answers by the file's key: {"pages": {number: [cells of a table, ...]}, "wall", "cpu", "peak", ...}


def run(
    name: str, of: Sequence[Material], keep: Path, peers: str, structure: str | None = None
) -> dict[str, Any] | None:
    """The answers of a contender; None if it cannot run here."""
    if name == GIVEN:
        return {one.key: given(one) for one in of}
    if name in (ALONE, TOLD):
        more = ["--structure", structure] if structure else []
        return zoo(of, [*more, "--no-detection"] if name == TOLD else more)
    folder = keep / name.replace(" ", "")
    folder.mkdir(parents=True, exist_ok=True)
    command = [peers, "-m", "benchmarks.table_contenders", name]
    with open(folder / "log.txt", "w", encoding="utf-8") as log:
        missing = [one for one in of if not (folder / f"{one.key}.json").is_file()]
        if missing and subprocess.run(command, stderr=log, cwd=harness.ROOT).returncode:
            print(f"{name} is skipped: {INSTALL} (why: {log.name})")
            return None
        while missing:
            process = subprocess.Popen(
                [*command, *(str(one.file.resolve()) for one in missing)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=harness.ROOT,
            )
            assert process.stdout
            for line in process.stdout:
                (folder / f"{missing.pop(0).key}.json").write_text(line, encoding="utf-8")
            if process.wait() and missing:  # it died in this one
                died = {"pages": {}, "error": f"the process died: {process.returncode}", "wall": 0, "cpu": 0, "peak": 0}
                (folder / f"{missing.pop(0).key}.json").write_text(json.dumps(died), encoding="utf-8")
    return {one.key: json.loads((folder / f"{one.key}.json").read_text(encoding="utf-8")) for one in of}


def zoo(of: Sequence[Material], options: Sequence[str]) -> dict[str, Any]:
    """The command, as a user types it, on all files at once."""
    files = [str(one.file) for one in of]
    with tempfile.TemporaryDirectory() as folder:
        output, log = Path(folder) / "tables.jsonl", Path(folder) / "log"
        command = [sys.executable, "-m", "zoo", "table", *files, "-o", str(output), *options]
        wall, used = timed(command, log)
        if not output.is_file():
            raise SystemExit(f"zoo table wrote nothing:\n{log.read_text()}")
        lines = output.read_text(encoding="utf-8").splitlines()
    by_file: dict[str, list[Any]] = {file: [] for file in files}
    for line in lines:
        page = json.loads(line)
        by_file[page["source"]].append(page)
    inside = sum(page["seconds"] for pages in by_file.values() for page in pages)
    answers = {}
    for one in of:
        pages = by_file[str(one.file)]
        fields = ("row", "column", "row_span", "column_span", "text")
        seconds = sum(page["seconds"] for page in pages)
        answers[one.key] = {
            "pages": {p["page"]: [[[c[f] for f in fields] for c in t["cells"]] for t in p["tables"]] for p in pages},
            "error": next((page["error"] for page in pages if page["error"]), None if pages else "no page"),
            "start": wall - inside,
            "wall": seconds,
            "cpu": (used.ru_utime + used.ru_stime) * seconds / wall,
            "peak": used.ru_maxrss * 1024,
        }
    return answers


def timed(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> tuple[float, resource.struct_rusage]:
    """Run a command with its errors in a file -> its seconds, and what it used."""
    begin = time.perf_counter()
    with open(log, "w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stderr=errors, cwd=harness.ROOT, env=environment)
        used = os.wait4(process.pid, 0)[2]
    return time.perf_counter() - begin, used


def process(times: int = 5) -> dict[str, float]:
    """The least seconds of the whole command on the page that comes with zoo, and its peak memory.

    Modules are compiled before, as pip does.
    """
    from zoo.apps.documents import EXAMPLE

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "zoo", "table", str(EXAMPLE), "-o", f"{folder}/page.csv"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        runs = [timed(command, Path(folder) / "log", environment) for _ in range(times + 1)][1:]
    return {
        "wall": min(wall for wall, _ in runs),
        "cpu": min(used.ru_utime + used.ru_stime for _, used in runs),
        "peak": min(used.ru_maxrss for _, used in runs) * 1024 / 1e6,
    }


def given(one: Material) -> dict[str, Any]:
    """zoo is handed the true rows, columns and spanning cells, and the true words."""
    from zoo.apps.tables import build_table

    data = next(data for data in pubtabnet(one.beside(one.answer_path or "")) if data["filename"] in one.path)
    sample = annotated(data)
    wall, cpu = time.perf_counter(), time.process_time()
    table = build_table(sample.objects, sample.words)
    cells = [[c.row, c.column, c.row_span, c.column_span, c.text] for c in table.cells]
    return {
        "pages": {1: [cells]},
        "error": None,
        "start": 0.0,
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def truths(of: Sequence[Material], keep: Path, peers: str) -> dict[str, dict[int, list[Table]]]:
    """The true tables of each file by its sha256; empty if they are pdfplumber's, and it cannot run."""
    if of[0].set != "ruled":
        return {one.key: one.answer for one in of}
    answers = run("pdfplumber", of, keep, peers) or {}
    return {digest: tables_of(answer) for digest, answer in answers.items()}


HEAD = ("GriTS-Con", "GriTS-Top", "rows right", "tables right", "missed", "false", "files right")
HEAD_OF_SPEED = ("s a page", "CPU s a page", "start, s", "peak, MB")


def figures(found: Mapping[str, Any]) -> list[str]:
    """A summary as texts, in the order of HEAD."""
    agreed = f"; agreed: {found['right agreed rows']} of {found['agreed rows']}" if found["agreed rows"] else ""
    return [
        f"{found['con']:.3f}",
        f"{found['top']:.3f}",
        f"{found['right rows']} of {found['rows']}{agreed}",
        f"{found['right tables']} of {found['tables']}",
        str(found["missed"]),
        str(found["false"]),
        f"{found['right files']} of {found['files']}",
    ]


def speed(found: Mapping[str, Any]) -> list[str]:
    """A summary as texts, in the order of HEAD_OF_SPEED."""
    return [f"{found['wall']:.2f}", f"{found['cpu']:.2f}", f"{found['start']:.1f}", f"{found['peak'] / 1e6:.0f}"]


def show(name: str, result: Mapping[str, Any], rows: bool) -> None:
    found = result["contenders"]
    print(f"\n{SETS[name]}: {len(result['files'])} files")
    for contender, files in found.items():
        for i, file in enumerate(files):
            where = "/".join(result["files"][i]["file"].split("/")[-2:])
            if file["error"]:
                print(f"{contender}: {where}: {file['error']}")
            for page, true, shape, con, top, of, right, *_ in file["tables"] if rows else ():
                shapes = f"{true[0]}x{true[1]} as {'x'.join(map(str, shape)) if shape else 'nothing'}"
                print(f"{contender}: {where} page {page}: {shapes}, con {con:.3f}, top {top:.3f}, rows {right} of {of}")
            if rows and file["false"]:
                print(f"{contender}: {where}: {file['false']} that are no tables")
    summaries = {contender: summary(files) for contender, files in found.items()}
    print(
        harness.table(["", *HEAD, *HEAD_OF_SPEED], [[c, *figures(s), *speed(s)] for c, s in summaries.items()]),
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
