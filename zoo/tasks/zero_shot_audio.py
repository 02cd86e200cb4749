"""Tasks of a model with an encoder of sounds and one of texts: which labels, in words, a sound fits, and vectors.

Shapes: C sounds, E the vectors' width.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..audio import AudioInput, reader
from ..audio.clap import SoundExtractor
from ..audio.features import FILE
from ..audio.reading import SUFFIXES
from ..errors import ZooError
from ..inputs.audio_text import AudioTextEncoder
from ..pretrained import Pretrained
from ..text.tokenizer import Tokenizer
from ..warning import warn
from .arguments import check_count, collect_results, map_good, result_or_error, stack_results
from .base import Task, check_vocabulary, softmax
from .dual import ComparesVectors, TextSide
from .image_task import as_images, floats
from .progress import Progress
from .results import Labels, Vectors
from .vectors import as_vectors
from .zero_shot import rank_labels, sentences

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint


class SoundTask(TextSide, Task):
    """A model with its feature extractor and its tokenizer."""

    reads = "audio"

    def __init__(
        self,
        model: Pretrained,
        features: SoundExtractor,
        tokenizer: Tokenizer,
        checkpoint: Checkpoint | None = None,
    ):
        super().__init__(model, checkpoint)
        self.pair, self.tokenizer, self.features = cast(AudioTextEncoder, model), tokenizer, features
        features.check(self.config.audio_config)
        check_vocabulary(tokenizer, self.config.text_config.vocab_size)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        folder = checkpoint.contents
        return {"features": SoundExtractor.from_folder(folder), "tokenizer": Tokenizer.from_folder(folder)}

    def extra_files(self) -> list[str]:
        return [FILE]

    def embed_sounds(self, sounds: Sequence[Any], batch_size: int, progress: bool | None) -> list[Any]:
        """A vector (E,) of length 1 for each sound, or its error."""
        batch_size = check_count(batch_size, "batch_size")
        found, cut, waiting = list[Any](sounds), 0, dict[int, np.ndarray]()
        with Progress(len(sounds), progress, "recordings") as advance:
            for i, sound in enumerate(sounds):
                views = result_or_error(self._views_of, sound, i, len(sounds), "audio")
                if isinstance(views, ZooError):
                    found[i] = views
                    advance(1)
                else:
                    waiting[i] = views[0]
                    cut += not views[1]
                if waiting and (len(waiting) == batch_size or i == len(sounds) - 1):
                    given = self.pair.audio_model.sounds(np.stack(list(waiting.values())))
                    for k, vector in zip(waiting, floats(self.runner.run(self.pair.audio_embeds, given)), strict=True):
                        found[k] = vector
                    advance(len(waiting))
                    waiting.clear()
        if cut:
            warn(
                f"{cut} of {len(sounds)} recordings are longer than {self.features.max_length_s} s, and were cut there"
            )
        return found

    def _views_of(self, sound: AudioInput) -> tuple[np.ndarray, bool]:
        return self.features(reader(sound, self.features.sampling_rate))


class ZeroShotAudio(SoundTask):
    """Sounds and labels in words to scores, best first.

    >>> zero_shot = zoo.load("laion/clap-htsat-unfused")
    >>> zero_shot("dog.wav", ["a dog", "rain"])
    [Label(label='a dog', score=0.9...), Label(label='rain', score=0.0...)]
    """

    name = "zero-shot-audio-classification"
    results = Labels()

    def __call__(
        self,
        audio: AudioInput | Iterable[AudioInput],
        candidate_labels: str | Sequence[str],
        *,
        hypothesis_template: str = "This is a sound of {}.",
        batch_size: int = 8,
        progress: bool | None = None,
    ) -> list[Any]:
        """A list of Label, best first, for one recording; a list of such lists for several.

        audio: as for transcribing.  Of a recording that is longer than the checkpoint takes, ten seconds, its beginning
        is heard, with a warning; a model with fusion hears the whole and three parts of it.  candidate_labels: a list,
        or one text with commas between them.  hypothesis_template: the sentence about a label, which takes the place
        of {}.  The scores of all labels add up to 1.  batch_size: the recordings that are computed together.
        """
        labels, texts = sentences(candidate_labels, hypothesis_template)
        given, single = as_images(audio, "audio")
        rows = self.embed_sounds(given, batch_size, progress)
        good = [row for row in rows if not isinstance(row, ZooError)]
        if good:
            found = self.runner.run(self.pair.compare, self.pair.vectors(np.stack(good), self.embed_texts(texts)))
            ranks = iter([rank_labels(labels, row) for row in softmax(floats(found.logits_per_audio))])
            rows = map_good(lambda _: next(ranks), rows)
        return collect_results(rows, single)


class AudioEmbed(ComparesVectors, SoundTask):
    """Sounds and texts to vectors of length 1, whose products say how well they fit.

    >>> embed = zoo.load("laion/clap-htsat-unfused", task="embed")
    >>> embed(["dog.wav", "rain.mp3", "a dog barks"]).shape
    (3, 512)
    >>> embed.similarity(["dog.wav", "rain.mp3"], ["a dog barks", "rain"])
    array([[0.5..., 0.1...],
           [0.0..., 0.4...]], dtype=float32)
    >>> embed.semantic_search("a dog barks", ["dog.wav", "rain.mp3"], top_k=1)
    [[Hit(corpus_id=0, score=0.5...)]]
    """

    name = "embed"
    results = Vectors()
    kinds = "sounds and texts"

    def __call__(
        self, audio: AudioInput | Iterable[AudioInput], *, batch_size: int = 8, progress: bool | None = None
    ) -> np.ndarray:
        """A sound or a text -> (E,), several -> (N, E), float32.

        A string is the path of a sound if a file has that name, or if it ends as names of sounds do (.wav, .mp3, ...);
        any other string is a text.  An array (n,) is a sound.  batch_size: the sounds that are computed together.
        """
        given, single = as_images(audio, "audio")
        found: list[Any] = [None] * len(given)
        texts = [i for i, one in enumerate(given) if isinstance(one, str) and not _is_path(one)]
        sounds = [i for i in range(len(given)) if i not in set(texts)]
        for i, vector in zip(texts, self.embed_texts([given[i] for i in texts]), strict=True):
            found[i] = vector
        vectors = self.embed_sounds([given[i] for i in sounds], batch_size, progress)
        for i, vector in zip(sounds, vectors, strict=True):
            is_one_of_many = isinstance(vector, ZooError) and not single
            found[i] = vector.about("audio", i) if is_one_of_many else vector
        return stack_results(found, single)

    def _vectors_of(self, value: Any, name: str) -> np.ndarray:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2
        return as_vectors(value, name) if is_array else np.atleast_2d(self(value))


def _is_path(text: str) -> bool:
    return text.lower().endswith(SUFFIXES) or os.path.isfile(text)
