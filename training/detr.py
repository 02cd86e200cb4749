"""The training of a small DETR (https://arxiv.org/abs/2005.12872) from scratch on a CPU.

What lets it learn in hours, all of it of training alone: the queries are groups of anchors (rows by height,
columns by place, ...) and a truth is matched within its group, near its anchor at first; positions and queries begin as
the same sines, so that a query looks at its place from the first step; dense heads on the encoder's memory are told
where rows and columns end, and how far the table that a feature lies in reaches; the pictures grow, and the tables in
them.
"""

import math
import random
from collections.abc import Sequence
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import nn
from transformers import ResNetConfig, TableTransformerConfig, TableTransformerForObjectDetection

from training.loop import Logs, Recipe
from training.tables import COLUMN, LABELS, ROW

STRIDE = 16
SUB = 8  # the dense head tells borders to an eighth of a feature's cell


class Group(NamedTuple):
    """Queries for one label, on a grid of x by y anchors; one anchor along an axis says nothing of the place there.

    weight: of its targets in the loss; nothing: of its queries that are to find none, as a part of that.
    """

    label: int
    x: int
    y: int
    nothing: float
    weight: float = 1.0

    @property
    def size(self) -> int:
        return self.x * self.y


class Example(NamedTuple):
    """pixels: (S, S) uint8 grey; boxes: (n, 5) float32, label, then centre x, y, width and height as parts of S."""

    pixels: np.ndarray
    boxes: np.ndarray


def sines(place: torch.Tensor, D: int) -> torch.Tensor:
    """(n,) in 0 .. 1 -> (n, D): even frequencies, then odd ones, so that each pair of heads sees low and high ones."""
    k = D // 2
    angle = 2 * math.pi * place[:, None] * 0.35 * (9 / 0.35) ** (torch.arange(k) / (k - 1))
    return (
        torch.stack([angle.sin(), angle.cos()], -1)
        .reshape(len(place), k // 2, 2, 2)
        .transpose(1, 2)
        .reshape(len(place), D)
    )


class Size(NamedTuple):
    """The sizes of a ResNet of basic blocks, stem and stages, and of a DETR of `width`."""

    width: int
    stem: int
    channels: list[int]
    depths: list[int]
    layers: int
    decoder_layers: int
    feed_forward: int


def build(size: Size, queries: int, labels: Sequence[str], channels: int = 1) -> Any:
    """channels: of the picture; grey in training, three where it is exported."""
    resnet: dict[str, Any] = {"num_channels": channels, "embedding_size": size.stem, "hidden_sizes": size.channels}
    resnet |= {"depths": size.depths, "layer_type": "basic", "out_features": [f"stage{len(size.channels)}"]}
    detr: dict[str, Any] = {"num_channels": channels, "num_queries": queries, "d_model": size.width, "dropout": 0.0}
    detr |= {"encoder_layers": size.layers, "decoder_layers": size.decoder_layers, "position_embedding_type": "learned"}
    detr |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), size.width // 32)
    detr |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), size.feed_forward)
    detr |= {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    detr |= {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "auxiliary_loss": False}
    config = TableTransformerConfig(backbone_config=ResNetConfig(**resnet), **detr)
    return TableTransformerForObjectDetection(config)


def thaw(module: Any) -> None:
    """Batch norms that learn, under the names of the frozen ones that transformers puts in; and nothing else frozen.

    And attention that keeps no probabilities: a quarter of a step's time on a CPU.
    """
    for name, child in module.named_children():
        if type(child).__name__ == "TableTransformerFrozenBatchNorm2d":
            setattr(module, name, nn.BatchNorm2d(len(child.weight), momentum=0.05))
        else:
            thaw(child)
        if type(child).__name__ == "TableTransformerAttention":
            child.forward = MethodType(_attention, child)
    for parameter in module.parameters():
        parameter.requires_grad_(True)


def _attention(
    self: Any,
    hidden_states: torch.Tensor,
    object_queries: torch.Tensor,
    key_value_states: torch.Tensor | None = None,
    spatial_position_embeddings: torch.Tensor | None = None,
    attention_mask: torch.Tensor | None = None,
    output_attentions: bool = False,
) -> tuple[torch.Tensor, None]:
    """(B, T, D) -> (B, T, D), as transformers' TableTransformerAttention.forward where nothing is masked."""
    q = hidden_states + object_queries
    k, v = q, hidden_states
    if key_value_states is not None and spatial_position_embeddings is not None:
        k, v = key_value_states + spatial_position_embeddings, key_value_states
    each = self.q_proj(q), self.k_proj(k), self.v_proj(v)
    heads = (x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in each)
    return self.out_proj(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)), None


class Detr(Recipe):
    """The recipe that both detectors share; each stage says its first step, the picture's side, and what is drawn."""

    batch, pool = 16, 3000
    rate, decay, clip = 1e-3, 1e-4, 5.0
    overlap = 2.0  # that of boxes' generalised IoU
    labels: Sequence[str]
    groups: Sequence[Group]
    stages: Sequence[tuple[int, int, int, int]]
    default: Size

    def __init__(self, steps: int = 40000, stages: Sequence[tuple[int, int, int, int]] | None = None, **size: Any):
        self.steps, self.stages = steps, stages or self.stages
        self.anchors = torch.tensor(
            [((i + 0.5) / g.x, (j + 0.5) / g.y) for g in self.groups for i in range(g.x) for j in range(g.y)]
        )
        self.starts = np.cumsum([0] + [g.size for g in self.groups])
        self.weights = torch.tensor([g.weight for g in self.groups for _ in range(g.size)])
        self.nothings = torch.tensor([g.weight * g.nothing for g in self.groups for _ in range(g.size)])
        sizes = self.default._replace(**size)
        self.config = {**sizes._asdict(), "queries": len(self.anchors), "labels": list(self.labels)}
        self.model = build(sizes, len(self.anchors), self.labels)
        thaw(self.model)
        D = sizes.width
        self.model.to(memory_format=torch.channels_last)  # a tenth faster on a CPU
        self.dense = nn.Linear(D, 2 * SUB + 2 + len(self.labels))
        self.reach = nn.Linear(D, 4)
        self.modules = nn.ModuleDict({"model": self.model, "dense": self.dense})
        if self.labels is not LABELS:
            self.modules["reach"] = self.reach
        self.steps_of_decoder: list[torch.Tensor] = []
        for layer in self.model.model.decoder.layers:
            layer.register_forward_hook(lambda module, given, made: self.steps_of_decoder.append(made[0]))
        self._initialise(D)
        self._held_out: list[Example] = []

    @torch.no_grad()
    def _initialise(self, D: int) -> None:
        for module in self.model.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        features = self.side(0) // STRIDE
        for name, table in self.model.named_parameters():
            if name.endswith(("row_embeddings.weight", "column_embeddings.weight")):
                table.copy_(sines((torch.arange(len(table)) + 0.5) / features, D // 2))
        queries, first = [], 0
        for g in self.groups:
            anchors = self.anchors[first : first + g.size]
            known = torch.tensor([g.x > 1, g.y > 1]).float()
            parts = [sines(anchors[:, axis], D // 2) * known[axis] for axis in (0, 1)]
            queries.append(torch.cat(parts, 1) + 0.3 * torch.randn(1, D))
            first += g.size
        self.model.model.query_position_embeddings.weight.copy_(torch.cat(queries))
        looks = [(layer.encoder_attn, 1.3) for layer in self.model.model.decoder.layers]
        looks += [(layer.self_attn, 1.0) for layer in self.model.model.encoder.layers]
        for attention, diagonal in looks:
            for linear in (attention.q_proj, attention.k_proj):
                linear.weight.mul_(0.3).add_(diagonal * torch.eye(D))
        self.model.class_labels_classifier.bias[-1] = 1.0

    def stage(self, step: int) -> int:
        return max(i for i, s in enumerate(self.stages) if s[0] <= step)

    def side(self, stage: int) -> int:
        return self.stages[stage][1]

    @torch.no_grad()
    def enter(self, stage: int, average: dict[str, torch.Tensor]) -> None:
        """Positions belong to a size of picture: they are stretched to the new one's."""
        before, now = self.side(stage - 1) // STRIDE, self.side(stage) // STRIDE
        place = ((torch.arange(now) + 0.5) / now * before - 0.5).clamp(0, before - 1)
        low = place.floor().long().clamp(max=before - 2)
        part = (place - low)[:, None]
        for state in (self.modules.state_dict(), average):
            for name, table in state.items():
                if name.endswith(("row_embeddings.weight", "column_embeddings.weight")):
                    table[:now] = table[low] * (1 - part) + table[low + 1] * part

    def draw(self, rng: random.Random, stage: int, held_out: bool = False) -> Example:
        """A picture of this stage, with what is to be found in it."""
        raise NotImplementedError

    def example(self, rng: random.Random, stage: int) -> Example:
        return self.draw(rng, stage)

    def run(self, pixels: np.ndarray) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
        """(B, S, S) grey -> the encoder's memory (B, G * G, D), and each decoder layer's logits and boxes (B, Q, 4)."""
        self.steps_of_decoder.clear()
        x = torch.from_numpy(np.ascontiguousarray(pixels))[:, None].float().div_(127.5).sub_(1)
        out = self.model.model(pixel_values=x)
        hidden = [self.model.model.decoder.layernorm(h) for h in self.steps_of_decoder]
        return out.encoder_last_hidden_state, [
            (self.model.class_labels_classifier(h).float(), self.model.bbox_predictor(h).float().sigmoid())
            for h in hidden
        ]

    def match(
        self, scores: np.ndarray, boxes: np.ndarray, targets: list[np.ndarray], prior: float
    ) -> tuple[np.ndarray, ...]:
        """DETR's bipartite matching within each group -> numbers of pictures, queries, targets."""
        found: list[tuple[int, int, int]] = []
        anchors = self.anchors.numpy()
        for b, target in enumerate(targets):
            for g, group in enumerate(self.groups):
                at = np.flatnonzero(target[:, 0] == group.label)
                if not len(at):
                    continue
                q = slice(self.starts[g], self.starts[g + 1])
                near = np.abs(anchors[q, None] - target[None, at, 1:3]) * [group.x > 1, group.y > 1]
                cost = prior * near.sum(-1) - scores[b, q, group.label][:, None]
                cost += 5 * np.abs(boxes[b, q, None] - target[None, at, 1:]).sum(-1)
                rows, columns = linear_sum_assignment(cost)
                found += [(b, int(q.start + r), int(at[c])) for r, c in zip(rows, columns, strict=True)]
        return tuple(np.array(found, int).reshape(-1, 3).T)

    def loss(self, examples: list[Example], rng: random.Random, step: int) -> tuple[torch.Tensor, Logs]:
        pixels, targets = np.stack([e.pixels for e in examples]), [e.boxes for e in examples]
        for b in range(len(examples)):
            if rng.random() < 0.3:  # mirrored
                pixels[b] = pixels[b, :, ::-1]
                targets[b] = np.abs(targets[b] - np.array([0, 1, 0, 0, 0], np.float32))
            if rng.random() < 0.12:
                pixels[b] = 255 - pixels[b]
        memory, layers = self.run(pixels)
        scores, boxes = layers[-1][0].detach().softmax(-1).numpy(), layers[-1][1].detach().numpy()
        b, q, t = self.match(scores, boxes, targets, 20.0 if step < 800 else 5.0)
        labels = torch.full(scores.shape[:2], len(self.labels))
        matched = torch.tensor(np.array([targets[i][j] for i, j in zip(b, t, strict=True)], np.float32).reshape(-1, 5))
        labels[b, q], true = matched[:, 0].long(), matched[:, 1:]
        each = self.weights[q]
        weight = self.nothings.repeat(len(examples), 1)
        weight[b, q] = each
        weight /= weight.sum()
        total, logs = torch.zeros(()), {}
        for i, (logits, found) in enumerate(layers):
            kind = (weight * F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")).sum()
            place = (each * (found[b, q] - true).abs().sum(-1)).sum() / max(1, len(true))
            overlap = (each * (1 - generalised_iou(found[b, q], true))).sum() / max(1, len(true))
            total = total + (1.0 if i == len(layers) - 1 else 0.5) * (4 * kind + 5 * place + self.overlap * overlap)
            logs = {"kind": kind.item(), "place": place.item(), "overlap": overlap.item()}
        dense = self._dense_loss(memory, targets)
        return total + dense, {**logs, "dense": dense.item()}

    def _dense_loss(self, memory: torch.Tensor, targets: list[np.ndarray]) -> torch.Tensor:
        """The loss of each feature: the borders of rows and columns within it, its place, and the objects it is in."""
        B, G = len(targets), math.isqrt(memory.shape[1])
        cuts, inside = np.zeros((2, B, G * SUB), np.float32), np.zeros((B, len(self.labels), G, G), np.float32)
        centres = (np.arange(G) + 0.5) / G
        for b, target in enumerate(targets):
            for label, x, y, w, h in target:
                if self.labels is LABELS and label in (ROW, COLUMN):
                    axis, ends = (0, (y - h / 2, y + h / 2)) if label == ROW else (1, (x - w / 2, x + w / 2))
                    for end in ends:
                        i = min(G * SUB - 1, max(0, int(end * G * SUB)))
                        around = cuts[axis, b, max(0, i - 1) : i + 2]
                        np.maximum(around, 0.5, out=around)
                        cuts[axis, b, i] = 1
                else:
                    inside[b, int(label)] = np.maximum(
                        inside[b, int(label)], np.outer(np.abs(centres - y) < h / 2, np.abs(centres - x) < w / 2)
                    )
        out = self.dense(memory).reshape(B, G, G, -1)
        rows = torch.from_numpy(cuts[0]).reshape(B, G, 1, SUB).expand(B, G, G, SUB)
        columns = torch.from_numpy(cuts[1]).reshape(B, 1, G, SUB).expand(B, G, G, SUB)
        twice = torch.tensor(2.0)
        places = torch.tensor(np.stack(np.meshgrid(centres, centres), -1), dtype=torch.float32)  # (G, G, (x, y))
        loss = 10 * (out[..., 2 * SUB : 2 * SUB + 2] - places).square().mean()
        loss = loss + 2 * F.binary_cross_entropy_with_logits(
            out[..., 2 * SUB + 2 :], torch.from_numpy(inside).permute(0, 2, 3, 1)
        )
        if self.labels is not LABELS:
            loss = loss + self._reach_loss(memory.view(B, G, G, -1), places, targets)
        else:
            loss = loss + 2 * F.binary_cross_entropy_with_logits(out[..., :SUB], rows, pos_weight=twice)
            loss = loss + 2 * F.binary_cross_entropy_with_logits(out[..., SUB : 2 * SUB], columns, pos_weight=twice)
        return loss

    def _reach_loss(self, memory: torch.Tensor, places: torch.Tensor, targets: list[np.ndarray]) -> torch.Tensor:
        """The loss of each feature (B, G, G, D) in a table: its begin and end, by L1 and by overlap
        (https://arxiv.org/abs/1904.01355)."""
        B, G = memory.shape[:2]
        true = torch.full((B, G, G, 4), math.nan)
        for b, target in enumerate(targets):
            for box in torch.from_numpy(target[:, 1:]):
                near = (places - box[:2]).abs() < box[2:].clamp(min=1 / G) / 2
                true[b][near.all(-1)] = box
        inside = ~true[..., 0].isnan()
        found, true = self.reach(memory[inside]).float(), true[inside]
        centre = torch.broadcast_to(places, (B, G, G, 2))[inside]
        found = torch.cat([centre + found[:, :2], found[:, 2:].abs()], 1)
        n = max(1, len(true))
        return 5 * (found - true).abs().sum() / n + 2 * (1 - generalised_iou(found, true)).sum() / n

    def found(self, count: int, stage: int) -> list[tuple[np.ndarray, np.ndarray, Example]]:
        """Objects in held-out pictures of a stage: labels with scores (n, 2) above 0.5, boxes (n, 4), the truth."""
        if len(self._held_out) != count or self._held_out[0].pixels.shape[0] != self.side(stage):
            self._held_out = [self.draw(random.Random(f"held out/{i}"), stage, True) for i in range(count)]
        out = []
        for i in range(0, count, 20):
            part = self._held_out[i : i + 20]
            logits, boxes = self.run(np.stack([e.pixels for e in part]))[1][-1]
            best = logits.softmax(-1)[..., :-1].max(-1)
            for e, score, label, box in zip(
                part, best.values.numpy(), best.indices.numpy(), boxes.numpy(), strict=True
            ):
                sure = score > 0.5
                out.append((np.stack([label[sure], score[sure]], 1), box[sure], e))
        return out


def corners(boxes: Any) -> Any:
    """(..., 4) of centre, width, height -> of x0 y0 x1 y1; of torch or NumPy."""
    half = boxes[..., 2:] / 2
    cat = torch.cat if isinstance(boxes, torch.Tensor) else np.concatenate
    return cat([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def middles(boxes: Any) -> np.ndarray:
    """Boxes of x0 y0 x1 y1 -> (n, 4) float32 of centre, width, height."""
    b = np.array(boxes, np.float32).reshape(-1, 4)
    return np.concatenate([(b[:, :2] + b[:, 2:]) / 2, b[:, 2:] - b[:, :2]], 1)


def generalised_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(n, 4) twice, as centre, width, height -> (n,) (https://arxiv.org/abs/1902.09630)."""
    a, b = corners(a), corners(b)
    shared = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(1)
    union = (a[:, 2:] - a[:, :2]).prod(1) + (b[:, 2:] - b[:, :2]).prod(1) - shared
    hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(1)
    return shared / (union + 1e-7) - (hull - union) / (hull + 1e-7)


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 4), (m, 4) of centre, width, height -> (n, m)."""
    a, b = corners(a)[:, None], corners(b)[None]
    shared = (np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])).clip(0).prod(-1)
    return shared / ((a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - shared + 1e-9)
