"""The tables of a folder of invoices in one spreadsheet: `python examples/invoices.py FOLDER invoices.xlsx`.

Needs the extras pdf and tables, and pandas.  Each row has the name of its file and page; numbers and dates are cells
of these types.  Look at the pages of `zoo table FOLDER -o out --review review.html` before you pay by them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import pandas as pd

import zoo
from zoo.apps.documents import open_document
from zoo.apps.tables import extract_document


def rows(folder: Path, extract: zoo.TableExtractor) -> pd.DataFrame:
    """The rows of all tables, below the columns of all of them; a file that cannot be read is named and left out."""
    frames = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in (".pdf", ".png", ".jpg", ".tiff"):
            continue
        try:
            with open_document(path) as document:
                for table in extract_document(document, extract, join=True):
                    frame = table.flat().to_pandas(types=True)
                    frame.insert(0, "file", path.name)
                    frame.insert(1, "page", table.page)
                    if table.all_doubts:
                        warnings.warn(f"{path.name}: {'; '.join(map(str, table.all_doubts))}", stacklevel=2)
                    frames.append(frame)
        except zoo.ZooError as e:
            print(f"left out: {e}")
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["file", "page"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    found = rows(args.folder, zoo.TableExtractor())
    found.to_excel(args.output, index=False)
    print(f"{args.output}: {len(found)} rows of {found['file'].nunique()} files")


if __name__ == "__main__":
    main()
