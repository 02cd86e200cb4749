# For pyright, which takes a minute over the lazy imports of the real one; the parity report runs what we call of it.
from typing import Any

def __getattr__(name: str) -> Any: ...
