"""This script goes on training a model, on a mix of drawn and typeset pages.

`python -m training.typeset.train detect|structure|reader PAGES --steps N --from FOLDER`

A run lies in a folder, as those of `python -m training` do, and is stopped and called again as one likes. Pages that
were rendered in the meantime are seen from the next call on.
"""

import argparse
from pathlib import Path

from training.export import start
from training.loop import Run, parse_run
from training.typeset.cache import Pages
from training.typeset.mix import RECIPES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.typeset.train", description=__doc__)
    parser.add_argument("what", choices=tuple(RECIPES))
    parser.add_argument("pages", help="the folder that training.typeset.render wrote")
    parser.add_argument("--out", help="the run's folder (default: runs/WHAT)")
    parser.add_argument("--from", dest="begin", metavar="FOLDER", help="begin with what was exported to this folder")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; the next call goes on")
    parser.add_argument("--steps", type=int, required=True, help="where the learning rate ends, all steps counted")
    parser.add_argument("--rate", type=float, help="the highest learning rate")
    parser.add_argument("--share", type=float, default=0.6, help="of typeset examples among all (0.6)")
    parser.add_argument("--printed", type=float, default=0.0, help="reader: of drawn lines, those in small print (0)")
    parser.add_argument("--pictures", type=int, default=200, help="of each kind, that these are taken on (200)")
    args = parse_run(parser)
    pages, held_out = Pages(args.pages), Pages(args.pages, held_out=True)
    more = {"printed": args.printed} if args.what == "reader" else {}
    recipe = RECIPES[args.what](pages, held_out, args.share, steps=args.steps, **more)
    if args.rate is not None:
        recipe.rate = args.rate
    run = Run(recipe, args.out or f"runs/{args.what}", args.seed, args.precision, args.pictures)
    if args.begin and not run.path.exists():
        start(run, Path(args.begin))
        run.folder.mkdir(parents=True, exist_ok=True)
        run.evaluate()
    run.log(pages={engine: len(shards) for engine, shards in pages.shards.items()}, begins=run.step)
    run.train(args.minutes)


if __name__ == "__main__":
    main()
