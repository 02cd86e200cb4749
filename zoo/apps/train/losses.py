"""The loss of each head, as in transformers.

Shapes: B rows, T tokens, C labels, V vocab_size, Y and X height and width in pixels, N patches, Q queries, n objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import InputError, UnsupportedError, check_choice, quantity
from ...registry import FAMILIES
from .set_loss import set_loss, widen

IGNORE_INDEX = -100  # label of tokens without a loss, such as padding
PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")

Inputs = Mapping[str, Any]
Loss = Callable[[Any, Inputs, Any], Tensor]


def compute_loss(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    """The loss of a model's head on a batch: a scalar to call `backward()` on.

    inputs: the arguments of the model's call.  labels by head, integers unless noted:

    - masked and causal language models, tags: (B, T), -100 for no loss; labels of causal models are shifted here
    - classification of texts and images: (B,); for several labels at once floats (B, C) in 0 ... 1; for regression
      floats.  problem_type in the config decides; without it one label means regression, and floats several labels
    - multiple choice, next sentence: (B,)
    - entities (LUKE): (B,), or (B, E) of each; for several labels at once 0 and 1 in the shape of the logits
    - replaced tokens: (B, T), 1 for a replaced token; padding is ignored
    - answers: {"start_positions": (B,), "end_positions": (B,)}
    - pretraining: {"labels": (B, T), "next_sentence_label": (B,)}
    - images with hidden patches: none for ViT (the pixels are compared); visual tokens (hidden patches,) for BEiT
    - segmentation: (B, Y, X), 255 for no loss
    - detection: for each image {"class_labels": (n,), "boxes": (n, 4)}: centre x and y, width and height as parts of 1
    - texts and images (CLIP, ALIGN, SigLIP): none; the i-th text belongs to the i-th image
    - the characters of a recording (CTC): (B, L), -100 after a text's end
    - a text about an image or a text (TrOCR, T5, BART, ...): (B, T), from which decoder_input_ids are made

    UnsupportedError: the head has no loss.  InputError: the labels do not fit.
    """
    name = loss_of(model.architecture, model.config.model_type)
    if name is None:
        raise UnsupportedError(f"{model.architecture} has no loss: its outputs are features, not answers")
    return LOSSES[name](model, inputs, labels)


def loss_of(architecture: str, model_type: str) -> str | None:
    """The name in LOSSES of a class's loss."""
    family = FAMILIES[model_type]
    return family.loss_of(family.head(architecture) or "")


def cross_entropy(logits: Tensor, labels: Any, ignored: int = IGNORE_INDEX) -> Tensor:
    """The mean over labels that are not `ignored`.  logits (..., C), labels (...) in [0, C)."""
    target = _integers(labels, logits).reshape(-1)
    logits = widen(logits).reshape(-1, logits.shape[-1])
    if len(target) != len(logits):
        raise InputError(f"{quantity(len(target), 'label')} for {quantity(len(logits), 'output')} of the model")
    judged = target[target != ignored]
    if (
        judged.device.type == "cpu"
        and len(judged)
        and not 0 <= int(judged.min()) <= int(judged.max()) < logits.shape[1]
    ):
        raise InputError(
            f"labels are in {int(judged.min())} ... {int(judged.max())}, expected 0 ... {logits.shape[1] - 1}"
        )
    return F.cross_entropy(logits, target, ignore_index=ignored)


def shift_right(labels: Tensor, start: int, padding: int) -> Tensor:
    """The decoder's input for `labels` (B, T): the start token, then all labels but the last."""
    begun = torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], 1)
    return begun.masked_fill(begun == IGNORE_INDEX, padding)


def _integers(labels: Any, like: Tensor) -> Tensor:
    found = torch.as_tensor(labels, device=like.device)
    if found.is_floating_point():
        raise InputError(f"labels have type {found.dtype}, expected integers")
    return found.long()


def _classification_loss(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    return cross_entropy(model(**inputs), labels)


def _words(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    """The loss of masked words, whose logits are the first output where a head judges something else, too."""
    logits = model(**inputs)
    return cross_entropy(logits[0] if isinstance(logits, tuple) else logits, labels)


def _entity_classes(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    """The loss of classes, one of each entity, or any number of them where labels are as many as logits."""
    logits = model(**inputs)
    target = torch.as_tensor(labels, device=logits.device)
    if target.ndim < logits.ndim:
        return cross_entropy(logits, labels)
    if target.shape != logits.shape:
        raise InputError(f"labels have shape {tuple(target.shape)}, expected {tuple(logits.shape)}")
    return F.binary_cross_entropy_with_logits(widen(logits), target.to(widen(logits).dtype))


def _next_token(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    logits = model(**inputs)
    return cross_entropy(logits[:, :-1], _integers(labels, logits)[:, 1:])


def _classes(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    logits, problem = model(**inputs), model.config.extra.get("problem_type")
    target = torch.as_tensor(labels, device=logits.device)
    if problem is None:
        several = PROBLEMS[2] if target.is_floating_point() else PROBLEMS[1]
        problem = PROBLEMS[0] if logits.shape[-1] == 1 else several
    if problem == "single_label_classification":
        return cross_entropy(logits, labels)
    check_choice(problem, "problem_type", PROBLEMS)
    if logits.shape[-1] == 1:
        target = target.reshape(len(logits), -1)
    if target.shape != logits.shape:
        raise InputError(f"labels have shape {tuple(target.shape)}, expected {tuple(logits.shape)}")
    judge = F.mse_loss if problem == "regression" else F.binary_cross_entropy_with_logits
    return judge(widen(logits), target.to(widen(logits).dtype))


def _answer(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    parts, output = [], model(**inputs)
    for name, logits in (("start_positions", output.start_logits), ("end_positions", output.end_logits)):
        T = logits.shape[1]
        parts.append(cross_entropy(logits, _integers(labels[name], logits).clamp(0, T), ignored=T))
    return (parts[0] + parts[1]) / 2


def _pretraining(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    words, following = model(**inputs)
    return cross_entropy(words, labels["labels"]) + cross_entropy(following, labels["next_sentence_label"])


def _replaced_token_loss(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    logits, mask = widen(model(**inputs)), inputs.get("attention_mask")
    target = torch.as_tensor(labels, device=logits.device)
    if target.shape != logits.shape:
        raise InputError(f"labels have shape {tuple(target.shape)}, expected {tuple(logits.shape)}")
    if mask is not None:
        judged = torch.as_tensor(mask, device=logits.device) == 1
        logits, target = logits[judged], target[judged]
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype))


def _hidden_pixels(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    made = model(**inputs)
    (B, Y, X, C) = made.shape
    h, w = model.grid(inputs["pixel_values"])
    hidden = torch.as_tensor(inputs["bool_masked_pos"], device=made.device).reshape(B, h, 1, w, 1).to(made.dtype)
    hidden = hidden.expand(B, h, Y // h, w, X // w).reshape(B, Y, X, 1)
    wanted = torch.as_tensor(inputs["pixel_values"], device=made.device, dtype=made.dtype)
    return ((made - wanted).abs() * hidden).sum() / (hidden.sum() + 1e-5) / C


def _hidden_tokens(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    logits = model(**inputs)
    return cross_entropy(logits[torch.as_tensor(inputs["bool_masked_pos"], device=logits.device).bool()], labels)


def _segmentation(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    cfg, maps = model.config, model.maps(model.pixels(**inputs))
    target = _integers(labels, maps[0])

    def loss_at(logits: Tensor) -> Tensor:
        large = F.interpolate(logits.permute(0, 3, 1, 2), target.shape[1:], mode="bilinear", align_corners=False)
        return cross_entropy(large.permute(0, 2, 3, 1), target, ignored=cfg.semantic_loss_ignore_index)

    loss = loss_at(model.decode_head(maps))
    if model.auxiliary_head is None:
        return loss
    return loss + cfg.auxiliary_loss_weight * loss_at(model.auxiliary_head(maps))


def _detection(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    cfg, found = model.config, model.base_model.forward(model.pixels(**inputs))
    steps = [found.last_hidden_state]
    if (between := getattr(found, "intermediate_hidden_states", None)) is not None:
        steps += between[:-1]
    losses = []
    for x in steps:
        logits, boxes = model.objects(x)
        losses.append(set_loss(logits, boxes, labels, cfg))
    return torch.stack(losses).sum()


def _pairs(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    """The loss of texts and images in pairs, of which each text fits its own image alone."""
    logits = widen(model(**inputs).logits_per_text)
    if logits.shape[0] != logits.shape[1]:
        raise InputError(f"there are {logits.shape[0]} texts for {logits.shape[1]} images, expected one for each")
    own = torch.arange(len(logits), device=logits.device)
    if model.scores == "softmax":
        of_texts, of_images = (
            F.cross_entropy(x, own, label_smoothing=model.label_smoothing) for x in (logits, logits.T)
        )
        return (of_texts + of_images) / 2
    signs = 2 * torch.eye(len(own), device=logits.device, dtype=logits.dtype) - 1
    return -F.logsigmoid(signs * logits).sum(-1).mean()


def _sound_pairs(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    """The loss of texts and sounds in pairs.  As in transformers both halves are the losses of the texts, with either
    scale.
    """
    found = model(**inputs)
    of_texts, of_sounds = widen(found.logits_per_text), widen(found.logits_per_audio).T
    if of_texts.shape[0] != of_texts.shape[1]:
        raise InputError(f"there are {of_texts.shape[0]} texts for {of_texts.shape[1]} sounds, expected one for each")
    own = torch.arange(len(of_texts), device=of_texts.device)
    return (F.cross_entropy(of_texts, own) + F.cross_entropy(of_sounds, own)) / 2


def _written_text(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    # transformers 5 has these in the outer config, earlier versions have them in the decoder's.
    decoder, both = model.decoder.config, model.config.extra
    start = both.get("decoder_start_token_id", decoder.decoder_start_token_id)
    padding = both.get("pad_token_id", decoder.pad_token_id)
    if start is None or padding is None:
        raise InputError("training needs decoder_start_token_id and pad_token_id, and the config does not have both")
    target = _integers(labels, model.like)
    logits = model(**inputs, decoder_input_ids=shift_right(target, start, padding)).logits
    return cross_entropy(logits, target)


def _characters(model: Any, inputs: Inputs, labels: Any) -> Tensor:
    """The loss of all ways to write the labels along a recording (CTC, Graves et al. 2006)."""
    cfg, logits = model.config, model(**inputs)
    if cfg.pad_token_id is None:
        raise InputError("training needs pad_token_id, the blank, and the config does not have it")
    target, mask = _integers(labels, logits), inputs.get("attention_mask")
    if target.ndim != 2 or len(target) != len(logits):
        raise InputError(
            f"labels have shape {tuple(target.shape)}, expected a row for each of {len(logits)} recordings"
        )
    is_character = (target != IGNORE_INDEX) & (target != cfg.pad_token_id)
    if target.device.type == "cpu" and is_character.any():
        low, high = int(target[is_character].min()), int(target[is_character].max())
        if not 0 <= low <= high < logits.shape[-1]:
            raise InputError(
                f"labels are in {low} ... {high}, expected 0 ... {logits.shape[-1] - 1}, or {IGNORE_INDEX}"
            )
    if mask is None:
        given = inputs["input_values" if "input_values" in inputs else "input_features"]
        lengths = model.count_states(torch.full((len(logits),), given.shape[1]))
    else:
        lengths = model.count_states(torch.as_tensor(mask).long().sum(-1))
    with torch.backends.cudnn.flags(enabled=False):
        return F.ctc_loss(
            F.log_softmax(logits, -1, dtype=torch.float32).transpose(0, 1),  # of float64 too, as transformers
            target[is_character],
            lengths.to(logits.device),
            is_character.sum(-1),
            blank=cfg.pad_token_id,
            reduction=cfg.ctc_loss_reduction,
            zero_infinity=cfg.ctc_zero_infinity,
        )


LOSSES: dict[str, Loss] = {
    "tokens": _words,
    "tags": _classification_loss,
    "choice": _classification_loss,
    "next token": _next_token,
    "classes": _classes,
    "classes of entities": _entity_classes,
    "span": _answer,
    "pretraining": _pretraining,
    "replaced tokens": _replaced_token_loss,
    "hidden pixels": _hidden_pixels,
    "visual tokens": _hidden_tokens,
    "segmentation": _segmentation,
    "objects": _detection,
    "pairs": _pairs,
    "pairs of texts and sounds": _sound_pairs,
    "written text": _written_text,
    "characters of a recording": _characters,
}
