"""BLIP checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..pictures import draw
from .common import Loaded, Spec

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor


@dataclass(frozen=True, kw_only=True)
class BlipSpec(Spec):
    not_compared: ClassVar[tuple[str, ...]] = ("image_embeds",)  # the same as last_hidden_state

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        """As many as there are texts."""
        return [draw(*size, seed=seed) for size in ((480, 640), (500, 333), (30, 44))]

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        found = Spec.arguments(given, config)
        return {name.removeprefix("decoder_"): array for name, array in found.items()}

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """Whose `generate` takes the tokens that end a text, as those of other models do."""
        model, info = Spec.load_reference(model_class, folder, config, dtype)

        def generate(pixel_values: Any, **options: Any) -> Any:
            states = model.vision_model(pixel_values=pixel_values)[0]
            start = pixel_values.new_full((len(states), 1), config["text_config"]["bos_token_id"]).long()
            mask = states.new_ones(states.shape[:2]).long()
            return model.text_decoder.generate(
                input_ids=start, encoder_hidden_states=states, encoder_attention_mask=mask, **options
            )

        model.generate = generate
        return model, info


_VISION = {"model_type": "blip_vision_model", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
_VISION |= {"num_attention_heads": 12, "image_size": 384, "patch_size": 16, "hidden_act": "gelu", "projection_dim": 512}
_VISION |= {"layer_norm_eps": 1e-5, "attention_dropout": 0.0, "initializer_range": 0.02}
_TEXT = {"model_type": "blip_text_model", "vocab_size": 30524, "hidden_size": 768, "encoder_hidden_size": 768}
_TEXT |= {"intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "projection_dim": 768}
_TEXT |= {"max_position_embeddings": 512, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "is_decoder": True}
_TEXT |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "use_cache": True, "initializer_range": 0.02}
_TEXT |= {"bos_token_id": 30522, "eos_token_id": 2, "pad_token_id": 0, "sep_token_id": 102}
_OUTER = {"image_text_hidden_size": 256, "initializer_factor": 1.0, "logit_scale_init_value": 2.6592}
_OUTER |= {"projection_dim": 512, "tie_word_embeddings": True}
_TINY_VISION = {**_VISION, "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY_VISION |= {"image_size": 48, "patch_size": 8}
_TINY_TEXT = {**_TEXT, "vocab_size": 900, "hidden_size": 32, "encoder_hidden_size": 48, "intermediate_size": 64}
_TINY_TEXT |= {"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64, "bos_token_id": 898}
_TINY_TEXT |= {"sep_token_id": 3}
_IMAGES = {"image_processor_type": "BlipImageProcessor", "do_normalize": True, "do_rescale": True, "do_resize": True}
_IMAGES |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
_IMAGES |= {"resample": 3, "rescale_factor": 0.00392156862745098, "size": {"height": 384, "width": 384}}
_IMAGES |= {"processor_class": "BlipProcessor"}

SPECS: dict[str, Spec] = {
    "blip-image-captioning-base": BlipSpec(
        like="Salesforce/blip-image-captioning-base",
        model_type="blip",
        architecture="BlipForConditionalGeneration",
        config={**_OUTER, "vision_config": _VISION, "text_config": _TEXT},
        tiny={"vision_config": _TINY_VISION, "text_config": _TINY_TEXT},
        tokenizer="wordpiece",
        processor=_IMAGES,
        full=True,
    ),
}
