"""GOT-OCR 2.0: https://arxiv.org/abs/2409.01704"""

from .config import *
from .model import *
