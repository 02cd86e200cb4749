"""Tiny random checkpoints, made once."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """name of a spec -> the folder of a tiny random checkpoint of it."""
    from parity.checkpoints import build

    folders = {}

    def of(spec):
        if spec not in folders:
            folders[spec] = build(spec, tmp_path_factory.mktemp("made") / spec)
        return folders[spec]

    return of
