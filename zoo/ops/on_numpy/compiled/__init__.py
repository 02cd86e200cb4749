"""What `fast` compiles, by llvmlite: for each kind of packed rows a product with a few rows of x, and their widening.

`blocks` says how the numbers of a kind come into registers, `functions` what loops there are around that.
"""

from .blocks import READERS as READERS
from .functions import function as function
from .functions import has_halves as has_halves
