"""The extra `fast`: products of quantised rows with up to 4 rows of x, and dequantising, compiled by llvmlite.

`blocks` loads the numbers of each QuantType into registers, `functions` has the loops around that.
"""

from .blocks import READERS as READERS
from .digits import COLUMNS as COLUMNS
from .digits import LINE as LINE
from .digits import STEP as STEP
from .functions import digit_functions as digit_functions
from .functions import function as function
from .functions import has_halves as has_halves
from .functions import way_of as way_of
