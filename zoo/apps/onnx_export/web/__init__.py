"""A page that runs an exported model in the browser with onnxruntime-web; zoo.js prepares inputs and reads outputs."""

from .page import write_page

__all__ = ["write_page"]
