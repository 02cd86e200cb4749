"""Seed-OSS: https://github.com/ByteDance-Seed/seed-oss"""

from .config import *
from .model import *
