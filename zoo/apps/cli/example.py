"""`zoo example`: a page picture that comes with zoo, to try `zoo table` with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..tables.export import write
from . import UsageError

PAGE = Path(__file__).parents[2] / "data" / "page.png"


def example(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    data, path = PAGE.read_bytes(), Path(args.output)
    if path.suffix.lower() != PAGE.suffix:
        raise UsageError(f"{args.output}: it is a PNG file, name it so")
    if path.is_file() and path.read_bytes() != data:
        raise UsageError(f"{args.output} is there already, and another file")
    write(path, lambda part: part.write_bytes(data))
    print(f"zoo: wrote {args.output}", file=sys.stderr)
