"""Helium: https://kyutai.org/2025/04/30/helium.html"""

from .config import *
from .model import *
