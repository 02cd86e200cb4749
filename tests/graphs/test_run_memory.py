"""A run on one large image gives back the memory that it took; others keep theirs for the next."""

from __future__ import annotations

import numpy as np
import pytest

import zoo


@pytest.mark.parametrize(("limit", "rows", "gives_back"), [(1000, 1, True), (1000, 2, False), (1 << 30, 1, False)])
def test_one_large_image_gives_its_memory_back(limit, rows, gives_back, kept, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    from parity.checkpoints import build
    from zoo.engines.onnx import session

    folder = build("pp-lcnet-table-cls", tmp_path / "model")
    monkeypatch.setattr(session, "LARGE_ROW", limit)
    seen, options_of = [], session.Session._run_options

    def keep(self, feeds):
        seen.append(options_of(self, feeds))
        return seen[-1]

    monkeypatch.setattr(session.Session, "_run_options", keep)
    pixels = np.random.default_rng(0).random((rows, 64, 64, 3), np.float32)
    found, wanted = (zoo.load_model(folder, device=device)(pixels) for device in ("onnx", "cpu"))
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=1e-4)
    assert [one is not None for one in seen] == [gives_back]
