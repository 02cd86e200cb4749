"""Nemotron-4 and Minitron: https://arxiv.org/abs/2402.16819"""

from .config import *
from .model import *
