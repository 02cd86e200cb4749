"""A GPU that lacks what the kernels need gets a message, and torch's own functions."""

from __future__ import annotations

import pytest
import torch

from zoo.engines import triton as kernels


@pytest.mark.parametrize(
    ("capability", "found", "says"),
    [((7, 5), "/usr/bin/gcc", "capability 7.5"), ((9, 0), None, "apt-get install gcc"), ((9, 0), "/usr/bin/gcc", "")],
)
def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capability, found, says) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "a GPU")
    monkeypatch.setattr(kernels.shutil, "which", lambda name: found)
    why = kernels._why_not(0)
    assert says in why
    assert bool(why) == bool(says)
