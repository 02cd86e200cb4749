"""What `fast` compiles, by llvmlite: for each kind of packed rows a product with a few rows of x, and their widening.

`blocks` says how the numbers of a kind come into registers, `functions` what loops there are around that.
"""

from .blocks import READERS as READERS
from .digits import COLUMNS as COLUMNS
from .digits import LINE as LINE
from .digits import STEP as STEP
from .functions import digit_functions as digit_functions
from .functions import function as function
from .functions import has_halves as has_halves
from .functions import way_of as way_of
