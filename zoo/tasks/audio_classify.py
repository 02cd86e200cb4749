"""AudioClassify: the labels of a recording with their scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..audio import AudioInput, FeatureExtractor, reader
from ..audio.features import FILE
from ..audio.filter_banks import FilterBankExtractor
from ..audio.frames import FrameExtractor
from ..audio.waveform import WaveformExtractor
from ..errors import InputError, ZooError
from ..inputs.frames import FrameModel
from ..inputs.waveform import WaveformModel
from ..pretrained import Pretrained
from ..warning import warn
from .arguments import check_count, collect_results, result_or_error
from .base import Task
from .classify import best_labels, score_function
from .image_task import as_images, floats
from .progress import Progress
from .results import Labels

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint


class AudioClassify(Task):
    """Labels with scores, best first: a language, a command, what is heard.

    >>> classify = zoo.load("sanchit-gandhi/whisper-medium-fleurs-lang-id")
    >>> classify("speech.mp3", top_k=1)
    [Label(label='English', score=0.9...)]
    """

    name = "audio-classification"
    reads = "audio"
    results = Labels()

    def __init__(
        self,
        model: Pretrained,
        features: FeatureExtractor | FilterBankExtractor | FrameExtractor | WaveformExtractor,
        checkpoint: Checkpoint | None = None,
    ):
        super().__init__(model, checkpoint)
        self.features = features
        features.check(self.config)
        own = features.least_samples if isinstance(features, FilterBankExtractor) else 0
        self.least = (
            model.count_samples(1) if isinstance(model, WaveformModel | FrameModel) else own
        )  # samples of a recording

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        kind = WaveformExtractor if hasattr(checkpoint.config, "conv_stride") else FeatureExtractor
        if hasattr(checkpoint.config, "frequency_stride"):
            kind = FilterBankExtractor
        if hasattr(checkpoint.config, "frame_size"):
            kind = FrameExtractor
        return {"features": kind.from_folder(checkpoint.contents)}

    def extra_files(self) -> list[str]:
        return [FILE]

    def __call__(
        self,
        audio: AudioInput | Iterable[AudioInput],
        *,
        top_k: int | None = 5,
        function_to_apply: str | None = None,
        batch_size: int = 8,
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Label, best first, for one recording; a list of such lists for several.

        audio: as for transcribing; of a recording longer than a window (half a minute of Whisper and ten seconds of
        AST, as in transformers, and a minute of other models) its beginning is heard, with a warning.  top_k: how many
        labels; all if None.  function_to_apply: "softmax", "sigmoid" or "none".  batch_size: the recordings that are
        computed together.
        """
        if top_k is not None:
            top_k = check_count(top_k, "top_k")
        score, batch_size = score_function(self.config, function_to_apply), check_count(batch_size, "batch_size")
        given, single = as_images(audio, "audio")
        out, cut, windows = list[Any](given), 0, dict[int, np.ndarray]()
        with Progress(len(given), progress, "recordings") as advance:
            for i, recording in enumerate(given):
                beginning = result_or_error(self._beginning, recording, i, len(given), "audio")
                if isinstance(beginning, ZooError):
                    out[i] = beginning
                    advance(1)
                else:
                    windows[i] = self.features(beginning[0])
                    cut += not beginning[1]
                if windows and (len(windows) == batch_size or i == len(given) - 1):
                    for shape in {window.shape for window in windows.values()}:  # padding would change them
                        those = {k: window for k, window in windows.items() if window.shape == shape}
                        logits = floats(self.runner(self.model, np.stack(list(those.values()))))
                        for k, row in zip(those, logits, strict=True):
                            out[k] = best_labels(self.config, score(row), top_k)
                    advance(len(windows))
                    windows.clear()
        if cut:
            seconds = self.features.samples / self.features.sampling_rate
            warn(f"{cut} of {len(given)} recordings are longer than {seconds:g} s, and were cut there")
        return collect_results(out, single)

    def _beginning(self, recording: AudioInput) -> tuple[np.ndarray, bool]:
        """The samples of the first window, and True if that is all."""
        blocks, count, most = [], 0, self.features.samples
        for block in reader(recording, self.features.sampling_rate)():
            blocks.append(block)
            count += len(block)
            if count > most:
                break
        found = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
        if count < self.least:
            raise InputError(f"the audio has {count} samples, and the model hears nothing in less than {self.least}")
        return found[:most], count <= most
