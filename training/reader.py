"""zoo-read: a line of text to its characters. A TrOCR (https://arxiv.org/abs/2109.10282) of 1.2 M parameters.

The encoder is a ViT over slices of 32 x 4 pixels, the decoder writes characters. Since we rendered the line, we know
which slice shows which character: a head on the encoder names each slice's, and the decoder's cross-attention is led to
the slices of the character that it writes next. Without that, training stays on a plateau for long.
"""

import math
import random
import re
import unicodedata
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import TrOCRConfig, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

from training import lines, text
from training.lines import HEIGHT, WIDTH, Line
from training.loop import Logs, Recipe

PAD, BOS, EOS, UNK = range(4)
IDS = {c: i + 4 for i, c in enumerate(text.CHARACTERS)}
VOCABULARY = len(IDS) + 4
SLICE = 4  # pixels
SHORT = 16  # characters: most cells of tables in small print have no more
BY_CHARACTER = re.compile(r"(embed_tokens|output_projection|frames)\.(weight|bias)$")  # weights with a row for each
_LIKE = dict(zip("−—‰†‡≤≥≈¥¢«»¿¡·→∞αβγδλσχΔΩđĐ", "––%++<>~Yc“”?!.-oaßydAoxAOdD", strict=True))
_LIKE |= dict(zip(text.SCIENTIFIC, "enOknptowTEO’”||-Vx•o•A", strict=True))


def build(width: int, layers: int, decoder_layers: int, feed_forward: int, channels: int = 1) -> Any:
    encoder: dict[str, Any] = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": width // 32}
    encoder |= {"intermediate_size": feed_forward, "num_channels": channels}
    encoder |= {"image_size": (HEIGHT, WIDTH), "patch_size": (HEIGHT, SLICE)}
    encoder |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    decoder: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": width, "cross_attention_hidden_size": width}
    decoder |= {"decoder_layers": decoder_layers, "decoder_attention_heads": width // 32, "decoder_ffn_dim": 2 * width}
    decoder |= {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    decoder |= {"max_position_embeddings": 64, "is_decoder": True, "add_cross_attention": True}
    decoder |= dict.fromkeys(("use_cache", "tie_word_embeddings", "scale_embedding"), False)
    decoder |= dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    of = VisionEncoderDecoderConfig.from_encoder_decoder_configs
    config = of(ViTConfig(**encoder), TrOCRConfig(**decoder))
    config.pad_token_id, config.decoder_start_token_id, config.eos_token_id = PAD, BOS, EOS
    config._attn_implementation = "eager"  # the only one that hands out its weights
    return VisionEncoderDecoderModel(config=config)


@torch.no_grad()
def initialise(model: Any) -> None:
    """Positions begin as sines along the line, weights by Glorot's rule."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    positions = model.encoder.embeddings.position_embeddings
    slices, D = WIDTH // SLICE, positions.shape[-1]
    place = (torch.arange(slices) + 0.5) / slices
    frequency = 0.5 * (slices / 2.5) ** (torch.arange(D // 2) / (D // 2 - 1))
    angle = 2 * math.pi * place[:, None] * frequency
    positions[:, 1:] = torch.cat([angle.sin(), angle.cos()], 1) * 0.3


def grown(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of a reader that knew fewer characters: an added one begins as the one that it looks like, weaker."""
    old = len(weights["frames.bias"])
    base = [_LIKE.get(c, unicodedata.normalize("NFD", c)[0]) for c in text.CHARACTERS[old - 4 :]]
    like = torch.tensor([IDS[c] for c in base], dtype=torch.long)
    return {
        name: torch.cat([rows, 0.8 * rows[like]]) if BY_CHARACTER.search(name) else rows
        for name, rows in weights.items()
    }


def encode(model: Any, pixels: torch.Tensor) -> torch.Tensor:
    """(B, 1, 32, W) of any W <= 320 -> (B, 1 + W / 4, D): a narrow picture takes the first positions."""
    e = model.encoder
    x = e.embeddings.patch_embeddings.projection(pixels).flatten(2).transpose(1, 2)
    x = torch.cat([e.embeddings.cls_token.expand(len(x), -1, -1), x], 1)
    x = x + e.embeddings.position_embeddings[:, : x.shape[1]]
    for layer in e.layers:
        x = layer(x, None)
    return e.layernorm(x)


def prepare(pictures: list[np.ndarray], width: int = WIDTH) -> torch.Tensor:
    """Grey lines -> (B, 1, 32, width) in -1 .. 1."""
    return torch.from_numpy(np.stack([lines.pad(p, width) for p in pictures]))[:, None].float().div_(127.5).sub_(1)


@torch.no_grad()
def read(model: Any, pictures: list[np.ndarray], most: int = 42) -> list[str]:
    """The likeliest character each time, as `generate` without options."""
    memory = encode(model, prepare(pictures))
    ids = torch.full((len(memory), 1), BOS)
    for _ in range(most):
        logits = model.decoder(input_ids=ids, encoder_hidden_states=memory, use_cache=False).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
        if bool((ids == EOS).any(1).all()):
            break
    characters = {i: c for c, i in IDS.items()}
    rows = [row[1 : row.index(EOS)] if EOS in row else row[1:] for row in ids.tolist()]
    return ["".join(characters.get(i, "") for i in row) for row in rows]


def slices_of(line: Line) -> np.ndarray:
    """(characters, W / 4) bool: the slices that show each character, at least one."""
    centres = (np.arange(WIDTH // SLICE) + 0.5) * SLICE
    begin, end = line.ends[:-1, None], line.ends[1:, None]
    shown = (centres >= begin) & (centres < end)
    nearest = np.clip((begin + end)[:, 0] / 2 // SLICE, 0, len(centres) - 1).astype(int)
    shown[np.arange(len(nearest)), nearest] |= ~shown.any(1)
    return shown


class Reader(Recipe):
    name, batch, fresh, pool, together = "reader", 32, 16, 30000, 8
    rate, decay, clip = 1.5e-3, 0.01, 1.0

    def __init__(self, steps: int = 30000, grow: int = 400, printed: float = 0.0, **size: int):
        """Make a recipe; printed is the part of drawn lines that are small print (`lines.printed`)."""
        self.steps, self.grow, self.printed = steps, grow, printed
        self.config = {"width": 128, "layers": 4, "decoder_layers": 2, "feed_forward": 384, **size}
        self.model = build(**self.config)
        initialise(self.model)
        self.frames = nn.Linear(self.config["width"], VOCABULARY)
        self.modules = nn.ModuleDict({"model": self.model, "frames": self.frames})
        self._held_out: list[Line] = []

    def stage(self, step: int) -> int:
        """Lines of up to 4 characters at first, 4 more every `grow` steps, 40 in the end; one for a group."""
        return min(10, 1 + step // self.together * self.together // self.grow)

    def side(self, stage: int) -> int:
        return WIDTH

    def example(self, rng: random.Random, stage: int) -> Line:
        if rng.random() >= self.printed:
            return lines.line(rng, 4 * stage)
        return lines.printed(rng, min(4 * stage, SHORT) if rng.random() < 0.6 else 4 * stage)

    def size(self, example: Line) -> float:
        return example.pixels.shape[1]

    def loss(self, examples: list[Line], rng: random.Random, step: int) -> tuple[torch.Tensor, Logs]:
        """Cross entropy of the next character and of each slice's, and of the attention to the next one's slices."""
        widest = max(e.pixels.shape[1] for e in examples)
        paper = rng.choice([0, 0, 1, 2, 4, 10])  # reading pads every line to the full width
        W = min(WIDTH, -(-widest // 32) * 32 + 32 * paper)
        T, S = max(len(e.text) for e in examples) + 1, W // SLICE
        given, wanted = np.full((len(examples), T), PAD), np.full((len(examples), T), -100)
        labels, shown = np.zeros((len(examples), S), np.int64), np.zeros((len(examples), T, S), np.float32)
        for b, e in enumerate(examples):
            ids, n = [IDS[c] for c in e.text], len(e.text)
            given[b, : n + 1], wanted[b, : n + 1] = [BOS, *ids], [*ids, EOS]
            where = slices_of(e)[:, :S]
            shown[b, :n] = where
            labels[b] = (where * np.array(ids)[:, None]).max(0)
        memory = encode(self.model, prepare([e.pixels for e in examples], W))
        out = self.model.decoder(
            input_ids=torch.from_numpy(given), encoder_hidden_states=memory, use_cache=False, output_attentions=True
        )
        text_loss = F.cross_entropy(out.logits.flatten(0, 1), torch.from_numpy(wanted).flatten())
        frame_loss = F.cross_entropy(self.frames(memory[:, 1:]).flatten(0, 1), torch.from_numpy(labels).flatten())
        target = torch.from_numpy(shown)
        has = target.sum(-1) > 0
        led = [((a[..., 1:].mean(1) * target).sum(-1)[has] + 1e-4).log().mean() for a in out.cross_attentions]
        guide_loss = -torch.stack(led).mean()
        loss = text_loss + 2 * frame_loss + guide_loss
        return loss, {"text": text_loss.item(), "frames": frame_loss.item(), "guide": guide_loss.item()}

    def evaluate(self, count: int, stage: int) -> Logs:
        """Scores on `count` lines of up to 40 characters in held-out fonts: errors per character, exact lines."""
        if len(self._held_out) != count:
            self._held_out = [lines.line(random.Random(f"held out/{i}"), held_out=True) for i in range(count)]
        found: list[str] = []
        for i in range(0, count, 50):
            found += read(self.model, [e.pixels for e in self._held_out[i : i + 50]])
        return text.score(found, [e.text for e in self._held_out])
