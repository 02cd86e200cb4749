"""PP-DocLayoutV2: https://github.com/PaddlePaddle/PaddleX"""

from .config import *
from .model import *
