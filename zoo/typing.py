"""Array: what ops take and return.  Only a type checker imports torch for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    # Models are written once for both libraries; a union would make every operator an error to a type checker.
    Array: TypeAlias = Any
else:
    Array = Any
