"""TrOCR: https://arxiv.org/abs/2109.10282"""

from .config import TrOCRConfig, VisionEncoderDecoderConfig
from .model import TrOCRForCausalLM, VisionEncoderDecoderModel

__all__ = ["TrOCRConfig", "TrOCRForCausalLM", "VisionEncoderDecoderConfig", "VisionEncoderDecoderModel"]
