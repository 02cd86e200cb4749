"""`python -m training reader|structure|detect`: trains one of the models, or goes on with it."""

import argparse
from pathlib import Path
from typing import Any

from training.loop import Run, parse_run
from zoo.apps.train import StoppedError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("what", choices=("reader", "structure", "detect"))
    parser.add_argument("--out", help="the run's folder; a run that lies there goes on (default: runs/WHAT)")
    begin = "begin a new run with the weights that training.export wrote here (the models in zoo/data, say)"
    parser.add_argument("--from", dest="begin", metavar="FOLDER", help=begin)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; the next call goes on")
    parser.add_argument("--steps", type=int, help="how long the learning rate's schedule is; may change between calls")
    parser.add_argument(
        "--rate", type=float, help="the highest learning rate; a third of the recipe's to go on briefly"
    )
    parser.add_argument("--printed", type=float, default=0.0, help="reader: the part of lines in real small print (0)")
    args = parse_run(parser)
    options: dict[str, Any] = {} if args.steps is None else {"steps": args.steps}
    if args.what == "reader":
        from training.reader import Reader

        recipe = Reader(printed=args.printed, **options)
    else:
        from training.detector import Detector, Structure

        recipe = Structure(**options) if args.what == "structure" else Detector(**options)
    if args.rate is not None:
        recipe.rate = args.rate
    run = Run(recipe, args.out or f"runs/{args.what}", args.seed, args.precision)
    if args.begin and not run.path.exists():  # a run that lies there goes on
        from training.export import start

        start(run, Path(args.begin))
    try:
        run.train(args.minutes)
    except StoppedError as e:
        print(e)


if __name__ == "__main__":
    main()
