"""model2vec: https://github.com/MinishLab/model2vec"""

from .config import *
from .model import *
