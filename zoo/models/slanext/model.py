"""SLANeXt: SAM's encoder (Kirillov et al. 2023, https://arxiv.org/abs/2304.02643), and the head of SLANet, which writes
a table's structure, token by token of HTML.

Images have the config's size.  Channels come last.

Shapes: B batch, h w patches, C output_channels, N post_conv_out_channels.
"""

from __future__ import annotations

from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, Module
from ...weights import NameMap, Weights
from ..sam.vision import VisionEncoder
from ..slanet.model import StructureHead, TableStructureOutput
from .config import SLANeXtConfig

NAME_MAP = NameMap(prefix="backbone", base=())


class SLANeXtForTableRecognition(ImageModel):
    config_class = SLANeXtConfig
    name_map = NAME_MAP
    graphs = False  # a CUDA graph has a fixed number of steps

    def __init__(self, w: Weights, cfg: SLANeXtConfig):
        self.config, C, N = cfg, cfg.post_conv_in_channels, cfg.post_conv_out_channels
        self.vision = VisionEncoder(w / "backbone.vision_tower", cfg.vision_config)
        self.reduce = Conv2d(w / "backbone.post_conv", C, N, 3, stride=2, padding=1, bias=False)
        self.head = StructureHead(w / "head", cfg)

    @property
    def embeddings(self) -> Module:
        return self.vision.embeddings

    @property
    def layers(self) -> list[Module]:
        return [*self.vision.layers]

    def forward(self, p: ImageInputs) -> TableStructureOutput:
        x = self.vision.encode(p)  # (B, h w, C)
        x = self.reduce(x.reshape(x.shape[0], *p.grid, -1))
        found, _ = self.head(x.reshape(x.shape[0], -1, x.shape[3]))
        return TableStructureOutput(found)
