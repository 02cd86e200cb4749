"""The process of one version of transformers: `python -m parity.drift FOLDER NAME` records every job of FOLDER."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from ..reference import require
from .faults import reproduce_faults
from .recording import faults_file, job_files, read_pickle, record, recording_file


def main(folder: Path, name: str) -> None:
    require()
    faults_file(folder, name).write_bytes(pickle.dumps(reproduce_faults()))
    for path in job_files(folder):
        recording_file(path, name).write_bytes(pickle.dumps(record(read_pickle(path))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
