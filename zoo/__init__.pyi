# Written by `python -m checks.signatures`.
import os
from pathlib import Path
from typing import Any, Literal, overload

from typing_extensions import Unpack

from .apps.markup import read_document as read_document
from .apps.tables import TableExtractor as TableExtractor
from .apps.tables import extract_tables as extract_tables
from .errors import ZooError as ZooError
from .keywords import FindOptions, LoadOptions, ModelOptions
from .pretrained import Pretrained
from .tasks.answer import Answer
from .tasks.audio_classify import AudioClassify
from .tasks.base import Task
from .tasks.classify import Classify
from .tasks.classify_entities import ClassifyEntities
from .tasks.ctc_transcribe import CtcTranscribe
from .tasks.depth import Depth
from .tasks.detect import Detect
from .tasks.embed import Embed
from .tasks.fill_mask import FillMask
from .tasks.generate import Generate
from .tasks.image_classify import ImageClassify
from .tasks.image_embed import ImageEmbed
from .tasks.image_text import ImageText
from .tasks.keypoints import DetectKeypoints
from .tasks.mask_generation import GenerateMasks
from .tasks.multi_vector_embed import MultiVectorEmbed
from .tasks.ocr import Ocr
from .tasks.page_tag import PageTag
from .tasks.read import Read
from .tasks.rerank import Rerank
from .tasks.segment import Segment
from .tasks.segment_objects import SegmentObjects
from .tasks.sparse_embed import SparseEmbed
from .tasks.tag import Tag
from .tasks.text2text import Summarize, Text2Text, Translate
from .tasks.transcribe import Transcribe
from .tasks.window_transcribe import WindowTranscribe
from .tasks.zero_shot import ZeroShot
from .tasks.zero_shot_audio import AudioEmbed, ZeroShotAudio
from .tasks.zero_shot_detect import ZeroShotDetect
from .tasks.zero_shot_image import DualEmbed, ZeroShotImage
from .tasks.zero_shot_segment import ZeroShotSegment

Name = str | os.PathLike[str]
__version__: str

@overload
def load(
    name_or_folder: Name, *, task: Literal["embed"], **options: Unpack[LoadOptions]
) -> Embed | AudioEmbed | ImageEmbed | DualEmbed: ...
@overload
def load(name_or_folder: Name, *, task: Literal["sentence-similarity"], **options: Unpack[LoadOptions]) -> Embed: ...
@overload
def load(name_or_folder: Name, *, task: Literal["feature-extraction"], **options: Unpack[LoadOptions]) -> Embed: ...
@overload
def load(name_or_folder: Name, *, task: Literal["sparse-embed"], **options: Unpack[LoadOptions]) -> SparseEmbed: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["multi-vector-embed"], **options: Unpack[LoadOptions]
) -> MultiVectorEmbed: ...
@overload
def load(name_or_folder: Name, *, task: Literal["fill-mask"], **options: Unpack[LoadOptions]) -> FillMask: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["classify"], **options: Unpack[LoadOptions]
) -> Classify | ImageClassify: ...
@overload
def load(name_or_folder: Name, *, task: Literal["text-classification"], **options: Unpack[LoadOptions]) -> Classify: ...
@overload
def load(name_or_folder: Name, *, task: Literal["sentiment-analysis"], **options: Unpack[LoadOptions]) -> Classify: ...
@overload
def load(name_or_folder: Name, *, task: Literal["tag"], **options: Unpack[LoadOptions]) -> Tag: ...
@overload
def load(name_or_folder: Name, *, task: Literal["token-classification"], **options: Unpack[LoadOptions]) -> Tag: ...
@overload
def load(name_or_folder: Name, *, task: Literal["ner"], **options: Unpack[LoadOptions]) -> Tag: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["entity-classification"], **options: Unpack[LoadOptions]
) -> ClassifyEntities: ...
@overload
def load(name_or_folder: Name, *, task: Literal["answer"], **options: Unpack[LoadOptions]) -> Answer: ...
@overload
def load(name_or_folder: Name, *, task: Literal["question-answering"], **options: Unpack[LoadOptions]) -> Answer: ...
@overload
def load(name_or_folder: Name, *, task: Literal["rerank"], **options: Unpack[LoadOptions]) -> Rerank: ...
@overload
def load(name_or_folder: Name, *, task: Literal["text-ranking"], **options: Unpack[LoadOptions]) -> Rerank: ...
@overload
def load(name_or_folder: Name, *, task: Literal["generate"], **options: Unpack[LoadOptions]) -> Generate: ...
@overload
def load(name_or_folder: Name, *, task: Literal["text-generation"], **options: Unpack[LoadOptions]) -> Generate: ...
@overload
def load(name_or_folder: Name, *, task: Literal["conversational"], **options: Unpack[LoadOptions]) -> Generate: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["zero-shot-classification"], **options: Unpack[LoadOptions]
) -> ZeroShot: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["text2text-generation"], **options: Unpack[LoadOptions]
) -> Text2Text: ...
@overload
def load(name_or_folder: Name, *, task: Literal["summarization"], **options: Unpack[LoadOptions]) -> Summarize: ...
@overload
def load(name_or_folder: Name, *, task: Literal["translation"], **options: Unpack[LoadOptions]) -> Translate: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["translation_en_to_de"], **options: Unpack[LoadOptions]
) -> Translate: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["translation_en_to_fr"], **options: Unpack[LoadOptions]
) -> Translate: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["translation_en_to_ro"], **options: Unpack[LoadOptions]
) -> Translate: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["automatic-speech-recognition"], **options: Unpack[LoadOptions]
) -> Transcribe | CtcTranscribe | WindowTranscribe: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["audio-classification"], **options: Unpack[LoadOptions]
) -> AudioClassify: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["zero-shot-audio-classification"], **options: Unpack[LoadOptions]
) -> ZeroShotAudio: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["image-feature-extraction"], **options: Unpack[LoadOptions]
) -> ImageEmbed | DualEmbed: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["image-classification"], **options: Unpack[LoadOptions]
) -> ImageClassify: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["segment"], **options: Unpack[LoadOptions]
) -> Segment | SegmentObjects: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["image-segmentation"], **options: Unpack[LoadOptions]
) -> Segment | SegmentObjects: ...
@overload
def load(name_or_folder: Name, *, task: Literal["detect"], **options: Unpack[LoadOptions]) -> Detect: ...
@overload
def load(name_or_folder: Name, *, task: Literal["object-detection"], **options: Unpack[LoadOptions]) -> Detect: ...
@overload
def load(name_or_folder: Name, *, task: Literal["depth"], **options: Unpack[LoadOptions]) -> Depth: ...
@overload
def load(name_or_folder: Name, *, task: Literal["depth-estimation"], **options: Unpack[LoadOptions]) -> Depth: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["keypoint-detection"], **options: Unpack[LoadOptions]
) -> DetectKeypoints: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["mask-generation"], **options: Unpack[LoadOptions]
) -> GenerateMasks: ...
@overload
def load(name_or_folder: Name, *, task: Literal["tag-page"], **options: Unpack[LoadOptions]) -> PageTag: ...
@overload
def load(name_or_folder: Name, *, task: Literal["read"], **options: Unpack[LoadOptions]) -> Read: ...
@overload
def load(name_or_folder: Name, *, task: Literal["image-to-text"], **options: Unpack[LoadOptions]) -> Read: ...
@overload
def load(name_or_folder: Name, *, task: Literal["ocr"], **options: Unpack[LoadOptions]) -> Ocr: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["zero-shot-image-classification"], **options: Unpack[LoadOptions]
) -> ZeroShotImage: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["zero-shot-object-detection"], **options: Unpack[LoadOptions]
) -> ZeroShotDetect: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["zero-shot-image-segmentation"], **options: Unpack[LoadOptions]
) -> ZeroShotSegment: ...
@overload
def load(name_or_folder: Name, *, task: Literal["image-text-to-text"], **options: Unpack[LoadOptions]) -> ImageText: ...
@overload
def load(name_or_folder: str | os.PathLike[str], *, task: str | None = None, **options: Unpack[LoadOptions]) -> Any: ...
def load_model(
    name_or_folder: str | os.PathLike[str], *, head: str | None = None, **options: Unpack[ModelOptions]
) -> Pretrained: ...
def export(
    name_or_task: Name | Task | Pretrained,
    folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    precision: str = "float32",
    standard: bool = False,
    web: bool | str | os.PathLike[str] = False,
    **options: Unpack[FindOptions],
) -> Path: ...
def save(model_or_task: Pretrained | Task, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path: ...
def set_num_threads(n: int | None) -> None: ...
def get_num_threads() -> int: ...
