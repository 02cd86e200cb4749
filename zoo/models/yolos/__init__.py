"""YOLOS: https://arxiv.org/abs/2106.00666"""

from .config import *
from .model import *
