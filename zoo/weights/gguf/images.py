"""The encoder of images beside a GGUF file of texts (llama.cpp's mmproj), and both as one checkpoint.

llama.cpp has a model of images and texts in two files.  An mmproj belongs to a file where its name says so: MODEL.gguf
and mmproj-MODEL.gguf, whose types at the end of their names may be others.  Of SmolVLM and Idefics3 alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ...errors import ConfigError, MissingWeightError, UnsupportedError, nearest
from ...quant import QuantRows
from ...typing import RawTensor
from .folder import GGUFFolder
from .header import Header
from .metadata import Metadata
from .names import Names
from .source import GGUFFile

PREFIX = "mmproj-"
_TYPE = re.compile(r"[-._](?:bf16|f16|f32|fp16|fp32|i?q[2-8](?:_\w+)?)$", re.IGNORECASE)
CONFIG, IMAGES = "config.json", "preprocessor_config.json"
PROJECTOR, TOKEN = "idefics3", "<image>"
_NAMES = Names(
    whole={
        "v.patch_embd": "model.vision_model.embeddings.patch_embedding",
        "v.position_embd": "model.vision_model.embeddings.position_embedding",
        "v.post_ln": "model.vision_model.post_layernorm",
        "mm.model.fc": "model.connector.modality_projection.proj",
    },
    layer={
        "ln1": "layer_norm1",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_out": "self_attn.out_proj",
        "ln2": "layer_norm2",
        "ffn_up": "mlp.fc1",
        "ffn_down": "mlp.fc2",
    },
    layers="model.vision_model.encoder.layers",
)
_TEXT = "model.", "model.text_model."
# What changes nothing in what the encoder computes, or follows from tensors.
_UNUSED_KEYS = ("has_vision_encoder", "has_audio_encoder", "has_llava_projector", "vision.projection_dim")


def mmproj_of(folder: Path, file: str) -> str | None:
    """The name of the mmproj that belongs to a GGUF file of a folder; None where there is none."""
    if file.startswith(PREFIX) or not (folder / file).is_file():
        return None
    found = [path.name for path in folder.glob(f"{PREFIX}*.gguf")]
    fitting = sorted(one for one in found if _model(one.removeprefix(PREFIX)) == _model(file))
    return f"{PREFIX}{file}" if f"{PREFIX}{file}" in fitting else next(iter(fitting), None)


def _model(file: str) -> str:
    return _TYPE.sub("", file.removesuffix(".gguf"))


class MmprojFile(GGUFFile):
    """The tensors of an mmproj under transformers' names.  UnsupportedError: it is of another model."""

    def __init__(self, path: Path):
        super().__init__(path, _NAMES)
        own = {name: _NAMES.to_transformers(name.removeprefix("v.")) or name for name in self._entries}
        self._origin = {own[name]: name for name in own}
        self._entries = {own[name]: entry for name, entry in self._entries.items()}
        m = self.metadata = Metadata(self.header.metadata, "clip")
        kind = m.text("projector_type", m.text("vision.projector_type", ""))
        if kind != PROJECTOR:
            raise UnsupportedError(f"{path}: clip.projector_type = {kind!r} is not implemented, only {PROJECTOR!r} is")
        if not m.flag("use_gelu", False) or m.flag("use_silu", False):
            raise UnsupportedError(f"{path}: clip.use_gelu = False is not implemented for {PROJECTOR}")

    def configs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The object of vision_config with scale_factor beside, and that of a preprocessor_config.json."""
        m = self.metadata
        size = m.integer("vision.image_size")
        vision = {
            "hidden_size": m.integer("vision.embedding_length"),
            "intermediate_size": m.integer("vision.feed_forward_length"),
            "num_hidden_layers": m.integer("vision.block_count"),
            "num_attention_heads": m.integer("vision.attention.head_count"),
            "layer_norm_eps": m.number("vision.attention.layer_norm_epsilon"),
            "image_size": size,
            "patch_size": m.integer("vision.patch_size"),
            "hidden_act": "gelu_pytorch_tanh",
        }
        of = {"vision_config": vision, "scale_factor": m.integer("vision.projector.scale_factor")}
        images = {
            "image_processor_type": "Idefics3ImageProcessor",
            "size": {"longest_edge": m.integer("vision.preproc_image_size")},
            "max_image_size": {"longest_edge": size},
            "image_mean": m.numbers("vision.image_mean").tolist(),
            "image_std": m.numbers("vision.image_std").tolist(),
        }
        unknown = [key for key in m.unread_keys() if key.removeprefix("clip.") not in _UNUSED_KEYS]
        if unknown:
            raise UnsupportedError(f"{self.path}: {unknown[0]} is not implemented for {PROJECTOR}")
        return of, images


class BothFiles:
    """A Source: the tensors of a file of texts, those of a Llama, and of its mmproj."""

    def __init__(self, texts: GGUFFile, images: MmprojFile):
        self.files = [*texts.files, *images.files]
        self._of: dict[str, tuple[GGUFFile, str]] = {name: (images, name) for name in images.names()}
        self._of |= {re.sub(rf"^{re.escape(_TEXT[0])}", _TEXT[1], name): (texts, name) for name in texts.names()}

    def names(self) -> Collection[str]:
        return self._of.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def shape(self, name: str) -> tuple[int, ...]:
        file, own = self._find(name)
        return file.shape(own)

    def dtype(self, name: str) -> str:
        file, own = self._find(name)
        return file.dtype(own)

    def read(self, name: str) -> RawTensor | QuantRows:
        file, own = self._find(name)
        return file.read(own)

    def _find(self, name: str) -> tuple[GGUFFile, str]:
        try:
            return self._of[name]
        except KeyError:
            where = " and ".join(file.name for file in self.files)
            raise MissingWeightError(f"{where} have no {name}{nearest(name, self._of)}") from None


class BothFolder(GGUFFolder):
    """The files of a checkpoint of images and texts, made of the metadata of both files."""

    def __init__(self, path: Path, header: Header, images: MmprojFile):
        super().__init__(path, header)
        text = json.loads(self._files[CONFIG])
        with self._naming():
            if text["model_type"] != "llama":
                raise UnsupportedError(
                    f"{images.path.name} of {PROJECTOR} beside a {text['model_type']} is not implemented, only beside "
                    "a llama"
                )
            if TOKEN not in self._tokenizer.tokens.texts:
                raise ConfigError(f"tokenizer.ggml.tokens have no {TOKEN}, which stands for an image")
            place = self._tokenizer.tokens.texts.index(TOKEN)
        of, processor = images.configs()
        shared = {name: text[name] for name in ("tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id")}
        whole = {"model_type": "idefics3", "architectures": ["Idefics3ForConditionalGeneration"], **shared, **of}
        self._files[CONFIG] = json.dumps({**whole, "text_config": text, "image_token_id": place}).encode()
        self._files[IMAGES] = json.dumps(processor).encode()
