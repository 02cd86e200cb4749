"""Mistral (Jiang et al. 2023, https://arxiv.org/abs/2310.06825): the class whose files have other names than Llama's.

Shapes: as in Llama's models.
"""

from __future__ import annotations

from ...inputs.heads import QuestionAnswering
from ..llama3 import model as llama


class LlamaForQuestionAnswering(QuestionAnswering, llama.LlamaHead): ...
