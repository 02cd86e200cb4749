"""Gemma 3, the models of images and texts: https://arxiv.org/abs/2503.19786"""

from .config import *
from .model import *
