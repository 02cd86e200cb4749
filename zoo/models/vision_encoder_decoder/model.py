"""An encoder of images, and a decoder that writes about them: TrOCR (Li et al. 2021, https://arxiv.org/abs/2109.10282),
whose ViT, DeiT or BEiT reads a line of text, and Donut (Kim et al. 2021, https://arxiv.org/abs/2111.15664), whose Swin
reads a page and whose decoder, mBART's, answers in tags what a prompt of tags asks.

Shapes: C images, M states of the encoder, E their width.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ...config import Config
from ...errors import MissingWeightError, WeightShapeError
from ...inputs.encoder_decoder import ImageToText
from ...nn import Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..beit import BeitModel
from ..beit.model import NAME_MAP as BEIT_LAYOUT
from ..donut_swin import DonutSwinModel
from ..mbart import MBartForCausalLM
from ..swin import SwinModel
from ..trocr import TrOCRForCausalLM
from ..trocr.model import IGNORED_WEIGHTS
from ..vit import DeiTModel, ViTModel
from ..vit.config import VisionConfig
from .config import VisionEncoderDecoderConfig

ENCODERS: dict[str, Callable[[Weights, Any], Any]] = {
    "vit": lambda w, cfg: ViTModel(w, cfg, pooler=False),
    "deit": lambda w, cfg: DeiTModel(w, cfg, pooler=False),
    "beit": lambda w, cfg: BeitModel(w, cfg, pooler=False),
    "swin": SwinModel,
    "donut-swin": DonutSwinModel,
}
DECODERS: dict[str, Callable[[Weights, Any], Any]] = {"trocr": TrOCRForCausalLM, "mbart": MBartForCausalLM}
# The output projection shares the word embeddings if the decoder's config says so.
TIED_HEADS = {
    kind: {f"decoder.{head}.weight": "decoder.model.decoder.embed_tokens.weight"}
    for kind, head in (("trocr", "output_projection"), ("mbart", "lm_head"))
}
SPECIAL_ROWS = {"vit": (1, "a ViT encoder"), "deit": (2, "a DeiT encoder")}  # rows of positions before those of patches

# A ViT's names since version 5; Swin has kept `encoder.layers`, and the decoder its own, too.
ENCODER_NAMES = {
    name.replace(r"(^|\.)layers", r"(^|(?<!encoder)\.)layers"): new for name, new in BEIT_LAYOUT.renames.items()
}
NAME_MAP = NameMap(
    prefix="vision_encoder_decoder",
    base=(),
    part_renames={"encoder": ENCODER_NAMES},
    ignored=(
        *IGNORED_WEIGHTS,
        r"^encoder\.pooler\.",
        r"^encoder\.embeddings\.mask_token$",
        r"\.relative_position_index$",
    ),
)


class VisionEncoderDecoderModel(ImageToText):
    config_class = VisionEncoderDecoderConfig
    name_map = NAME_MAP
    only_saved = (r"^encoder\.pooler\.", r"^encoder\.embeddings\.mask_token$", r"\.relative_position_index$")
    tied = TIED_HEADS["trocr"]

    def __init__(self, w: Weights, cfg: VisionEncoderDecoderConfig):
        self.config = cfg
        try:
            self.encoder = ENCODERS[cfg.encoder.model_type](w / "encoder", cfg.encoder)
        except (MissingWeightError, WeightShapeError) as e:
            raise type(e)(f"{e}{_describe_encoder(w, cfg)}") from None
        self.projection = None
        if cfg.projects:
            self.projection = Linear(w / "enc_to_dec_proj", cfg.encoder.hidden_size, cfg.decoder.d_model)
        self.decoder = DECODERS[cfg.decoder.model_type](w / "decoder", cfg.decoder)

    @classmethod
    def ties(cls, config: Config) -> dict[str, str]:
        decoder: Any = cast(VisionEncoderDecoderConfig, config).decoder
        return dict(TIED_HEADS[decoder.model_type]) if config.is_tied else {}

    def project_states(self, states: Array) -> Array:
        """The encoder's states (C, M, E) -> (C, M, decoder.d_model), where the decoder wants another width."""
        return states if self.projection is None else self.projection(states)


def _describe_encoder(w: Weights, cfg: VisionEncoderDecoderConfig) -> str:
    """The end of an error message: the kind of the file's encoder, where its positions show it."""
    name, kind = "encoder.embeddings.position_embeddings", cfg.encoder.model_type
    if not isinstance(cfg.encoder, VisionConfig):
        return ""
    grid = cfg.encoder.grid
    if name not in w:
        return "" if kind == "beit" else f"; there is no {name}: a BEiT encoder? (the config says {kind})"
    rows = w.reader.named.shape(name, (1, 0, 0))[1]
    for found, (special, what) in SPECIAL_ROWS.items():
        if found != kind and rows == grid[0] * grid[1] + special:
            return (
                f"; position_embeddings has {rows} = {grid[0]} x {grid[1]} + {special} rows: {what}, "
                f"and the config says {kind}"
            )
    return ""
