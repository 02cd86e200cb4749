"""Mixtral: https://arxiv.org/abs/2401.04088"""

from .config import *
from .model import *
