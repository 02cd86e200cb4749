"""Models as ONNX graphs: traced from their own files, run by ONNX Runtime."""

from .signature import Signature
from .trace import Traced, trace

__all__ = ["Signature", "Traced", "trace"]
