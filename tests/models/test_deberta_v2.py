"""DeBERTa's buckets of distances, and the names of its masked language models' heads."""

from __future__ import annotations

import numpy as np
import pytest

from zoo import ops
from zoo.models.deberta_v2 import DebertaV2Config


@pytest.mark.parametrize(("buckets", "positions"), [(256, 512), (16, 64), (4, 16), (-1, 9)])
def test_buckets_are_those_of_transformers(buckets, positions):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    theirs = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2", reason="needs transformers")
    config = DebertaV2Config(position_buckets=buckets, max_relative_positions=positions)
    tokens = torch.zeros(1, 2 * positions, 1)
    found = theirs.build_relative_position(tokens, tokens, buckets, positions)[0, :, 0].clamp(max=config.span)
    ours = ops.bucket(np.arange(2 * positions), config.bucket_starts)
    np.testing.assert_array_equal(ours, found.numpy())
