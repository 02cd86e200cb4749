"""Qwen's first mixtures of experts: https://arxiv.org/abs/2407.10671"""

from .config import *
from .model import *
