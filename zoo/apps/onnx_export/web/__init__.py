"""A page that runs an exported model in the browser: onnxruntime-web, and zoo.js, which prepares and reads as zoo."""

from .page import write_page

__all__ = ["write_page"]
