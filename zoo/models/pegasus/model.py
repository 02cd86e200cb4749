"""Pegasus (Zhang et al. 2019, https://arxiv.org/abs/1912.08777), which writes summaries: mBART's layers, with Marian's
sines and cosines for positions.

Shapes: as in mBART's model.
"""

from __future__ import annotations

from ..mbart import model as mbart
from .config import PegasusConfig


class PegasusForConditionalGeneration(mbart.MBartForConditionalGeneration):
    config_class = PegasusConfig


class PegasusModel(mbart.MBartModel):
    config_class = PegasusConfig


class PegasusForCausalLM(mbart.MBartForCausalLM):
    config_class = PegasusConfig
