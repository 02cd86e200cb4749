"""GPT-Neo: https://doi.org/10.5281/zenodo.5297715"""

from .config import *
from .model import *
