"""SoundClassify: the labels of a sound with their scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..pretrained import Pretrained
from ..sounds import FeatureExtractor, SoundInput, reader
from ..sounds.features import FILE
from ..warning import warn
from .base import Progress, Task, check_count
from .classify import best_labels, score_function
from .image_task import as_images, naming
from .results import Labels

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint


class SoundClassify(Task):
    """Labels with scores, best first: a language, a command, what is heard.

    >>> classify = zoo.load("sanchit-gandhi/whisper-medium-fleurs-lang-id")
    >>> classify("speech.mp3", top_k=1)
    [Label(label='English', score=0.9...)]
    """

    name = "audio-classification"
    reads = "audio"
    results = Labels()
    inputs = ("sounds",)

    def __init__(self, model: Pretrained, features: FeatureExtractor, checkpoint: Checkpoint | None = None):
        super().__init__(model, checkpoint)
        self.features = features
        features.check(self.config)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        return {"features": FeatureExtractor.from_folder(checkpoint.contents)}

    def extra_files(self) -> list[str]:
        return [FILE]

    def __call__(
        self,
        sounds: SoundInput | Iterable[SoundInput],
        *,
        top_k: int | None = 5,
        function_to_apply: str | None = None,
        batch_size: int = 8,
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Label, best first, for one sound; a list of such lists for several.

        sounds: as for transcribing; of a sound longer than a window, half a minute, its beginning is heard, as
        transformers does, with a warning.  top_k: how many labels; all if None.  function_to_apply: "softmax",
        "sigmoid" or "none".  batch_size: the sounds that are computed together.
        """
        if top_k is not None:
            top_k = check_count(top_k, "top_k")
        score, batch_size = score_function(self.config, function_to_apply), check_count(batch_size, "batch_size")
        given, single = as_images(sounds, "sounds")
        out, cut = [], 0
        with Progress(len(given), progress, "sounds") as advance:
            for at in range(0, len(given), batch_size):
                windows = []
                for i, sound in enumerate(given[at : at + batch_size], at):
                    with naming(i, len(given), "sounds"):
                        window, whole = self._beginning(sound)
                    windows.append(self.features(window))
                    cut += not whole
                logits = ops.to_numpy(self.runner(self.model, np.stack(windows))).astype(np.float32, copy=False)
                out += [best_labels(self.config, score(row), top_k) for row in logits]
                advance(len(windows))
        if cut:
            seconds = self.features.samples / self.features.sampling_rate
            warn(f"{cut} of {len(given)} sounds are longer than {seconds:g} s, and were cut there")
        return out[0] if single else out

    def _beginning(self, sound: SoundInput) -> tuple[np.ndarray, bool]:
        """The samples of the first window, and True if that is all."""
        blocks, count, most = [], 0, self.features.samples
        for block in reader(sound, self.features.sampling_rate)():
            blocks.append(block)
            count += len(block)
            if count > most:
                break
        found = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
        return found[:most], count <= most
