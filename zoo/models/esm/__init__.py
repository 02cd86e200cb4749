"""ESM: https://doi.org/10.1126/science.ade2574"""

from .config import *
from .model import *
