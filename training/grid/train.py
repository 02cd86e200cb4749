"""This script trains the split network on typeset pages and real tables, or goes on with it.

`python -m training.grid.train PACKS [--real FOLDER] --out RUN`

A run lies in a folder, as those of `python -m training` do, and is stopped and called again as one likes.
"""

import argparse
import pickle
from pathlib import Path

from training.grid.pack import Packs
from training.grid.recipe import Separators
from training.loop import Run, parse_run
from zoo.apps.train import StoppedError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.grid.train", description=__doc__)
    parser.add_argument("packs", type=Path, help="the folder that training.grid.pack wrote")
    parser.add_argument("--real", type=Path, help="a folder with train.pkl, and others that are scored")
    parser.add_argument("--out", default="runs/separators", help="the run's folder")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; the next call goes on")
    parser.add_argument("--steps", type=int, default=40000, help="where the learning rate ends")
    parser.add_argument("--rate", type=float, help="the highest learning rate")
    parser.add_argument("--share", type=float, default=0.3, help="of real tables among all (0.3)")
    parser.add_argument("--pictures", type=int, default=120, help="typeset tables that are scored (120)")
    args = parse_run(parser)
    real = {p.stem: pickle.loads(p.read_bytes()) for p in sorted(args.real.glob("*.pkl"))} if args.real else {}
    own = real.pop("train", [])
    real.pop("held_out", None)
    recipe = Separators(Packs(args.packs / "train"), Packs(args.packs / "held_out"), own, real, args.share, args.steps)
    if args.rate is not None:
        recipe.rate = args.rate
    run = Run(recipe, args.out, args.seed, args.precision, args.pictures)
    run.folder.mkdir(parents=True, exist_ok=True)
    run.log(typeset=len(recipe.typeset), real=len(own), begins=run.step)
    try:
        run.train(args.minutes)
    except StoppedError as e:
        print(e)


if __name__ == "__main__":
    main()
