"""DETR's loss (Carion et al. 2020, https://arxiv.org/abs/2005.12872): each object is matched with the query that
predicts it best, and the remaining queries must predict that there is no object.

Shapes: B images, Q queries, C labels, n objects.  Boxes are centre x and y, width and height, as parts of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import InputError
from ...optional import import_optional


def widen(x: Tensor) -> Tensor:
    """The tensor in float32, or in its type if that is wider."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def set_loss(logits: Tensor, boxes: Tensor, labels: Sequence[Mapping[str, Any]], cfg: Any) -> Tensor:
    """The loss of logits (B, Q, C + 1) and boxes (B, Q, 4) against each image's class_labels (n,) and boxes (n, 4).

    cfg: the model's config, with the weights of the parts.
    """
    B, Q, none = *logits.shape[:2], logits.shape[2] - 1
    if len(labels) != B:
        raise InputError(f"there are labels for {len(labels)} images, expected {B}")
    wanted, places, targets = torch.full((B, Q), none, device=logits.device), [], []
    for b, one in enumerate(labels):
        classes = torch.as_tensor(one["class_labels"], device=logits.device).long().reshape(-1)
        true = torch.as_tensor(one["boxes"], device=logits.device, dtype=widen(boxes).dtype).reshape(-1, 4)
        if len(classes) != len(true) or (len(classes) and not 0 <= int(classes.min()) <= int(classes.max()) < none):
            raise InputError(f"labels[{b}]: expected class_labels in 0 ... {none - 1} and a box for each of them")
        if len(classes) > Q:
            raise InputError(f"labels[{b}] has {len(classes)} objects, more than the model's {Q} queries")
        query, truth = match(logits[b], boxes[b], classes, true, cfg)
        wanted[b, query] = classes[truth]
        places.append(torch.stack([torch.full_like(query, b), query]))
        targets.append(true[truth])
    weight = torch.ones(none + 1, device=logits.device, dtype=widen(logits).dtype)
    weight[none] = cfg.eos_coefficient
    loss = F.cross_entropy(widen(logits).transpose(1, 2), wanted, weight)
    found, true = widen(boxes)[tuple(torch.cat(places, 1))], torch.cat(targets)
    count = max(len(true), 1)
    loss = loss + cfg.bbox_loss_coefficient * (found - true).abs().sum() / count
    return loss + cfg.giou_loss_coefficient * (1 - giou(corners(found), corners(true))).sum() / count


@torch.no_grad()
def match(logits: Tensor, boxes: Tensor, classes: Tensor, true: Tensor, cfg: Any) -> tuple[Tensor, Tensor]:
    """The assignment of least cost for one image: logits (Q, C + 1), boxes (Q, 4), classes (n,), true (n, 4) -> queries
    (n,) in ascending order, and the object of each (n,).
    """
    linear_sum_assignment = import_optional("scipy.optimize", "the loss of detection", "train").linear_sum_assignment
    boxes = widen(boxes)
    cost = cfg.bbox_cost * torch.cdist(boxes, true, p=1) - cfg.class_cost * widen(logits).softmax(-1)[:, classes]
    cost = cost - cfg.giou_cost * giou(corners(boxes)[:, None], corners(true)[None])
    rows, columns = linear_sum_assignment(torch.nan_to_num(cost, 1e9, 1e9, -1e9).cpu().numpy())
    return torch.as_tensor(rows, device=logits.device), torch.as_tensor(columns, device=logits.device)


def corners(boxes: Tensor) -> Tensor:
    """Boxes (..., 4) by centre and size -> (..., 4) left, top, right, bottom."""
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], -1)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised IoU (Rezatofighi et al. 2019, https://arxiv.org/abs/1902.09630) of corners (..., 4) -> (...)."""

    def area(x: Tensor) -> Tensor:
        return (x[..., 2] - x[..., 0]).clamp(min=0) * (x[..., 3] - x[..., 1]).clamp(min=0)

    def span(least: Any, most: Any) -> Tensor:
        return torch.cat([least(a[..., :2], b[..., :2]), most(a[..., 2:], b[..., 2:])], -1)

    both = area(span(torch.maximum, torch.minimum))
    either, around = area(a) + area(b) - both, area(span(torch.minimum, torch.maximum))
    return both / either.clamp(min=1e-12) - (around - either) / around.clamp(min=1e-12)
