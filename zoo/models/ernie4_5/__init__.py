"""ERNIE 4.5: https://ernie.baidu.com/blog/publication/ERNIE_Technical_Report.pdf"""

from .config import *
from .model import *
