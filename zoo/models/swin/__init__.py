"""Swin: https://arxiv.org/abs/2103.14030"""

from .backbone import *
from .config import *
from .masked_images import *
from .model import *
