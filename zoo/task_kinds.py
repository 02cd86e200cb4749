"""The table of tasks, one row for each: commands, the server and the demo know a task by its row.

To add a task, write its class in `zoo/tasks/`, and a row here.  docs/adding-a-task.md does it with an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import UnsupportedError, nearest

Input = Literal["text", "image", "audio"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CallOption:
    """An argument of a task's call that commands and pages offer.

    name: of the argument.  type: of its value; bool is a switch.  help: a phrase on what it does.
    flag: its name on the command line, if that is not `name`; metavar: what stands for its value there.
    least, most: the range of a number.  required: True if a call needs it.
    each: True if there is one value for each input: in `zoo map` the option names a column.
    several: True if it may be given several times.
    aliases: other names of it, those of transformers' pipelines.
    default: True for an option that is on; its switch turns it off.
    texts: values of a served request that are texts, of an option of another type.
    is_list: True if the value for one input is a list, which a served request has as it is; a text is another form of
        it, such as the path of a JSON file.
    """

    name: str
    type: type = str
    help: str
    flag: str = ""
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    required: bool = False
    each: bool = False
    is_list: bool = False
    several: bool = False
    aliases: tuple[str, ...] = ()
    default: bool = False
    texts: tuple[str, ...] = ()


TOP_K = CallOption(name="top_k", type=int, metavar="N", help="number of labels, words, answers or documents", least=1)
SAMPLING_TOP_K = CallOption(
    name="top_k", type=int, metavar="N", help="sample from the N likeliest tokens; 0: from all", least=0
)
PAIRS = CallOption(
    name="pairs", flag="pair", metavar="TEXT", help="second text: one for each INPUT, or one for all", each=True
)
QUESTION = CallOption(name="question", metavar="Q", help="the question", each=True)
CONTEXT = CallOption(name="context", metavar="C", help="the text that holds the answer", each=True)
LABELS = CallOption(
    name="candidate_labels",
    flag="labels",
    metavar="A,B,C",
    help="the labels to choose from; for other tasks with labels, the number of labels to show",
    required=True,
    aliases=("candidate_labels",),
)
TEMPLATE = CallOption(
    name="hypothesis_template", metavar="TEXT", help="the sentence about a label, which takes the place of {}"
)
MULTI_LABEL = CallOption(name="multi_label", type=bool, help="each label is judged by itself")
FUNCTION = CallOption(
    name="function_to_apply", metavar="F", help="the function from logits to scores: softmax, sigmoid or none"
)
TARGETS = CallOption(name="targets", metavar="WORD", help="a word to choose among", several=True)
AGGREGATION = CallOption(
    name="aggregation",
    metavar="HOW",
    help="how tokens are joined to entities: simple, first, average, max or none",
    aliases=("aggregation_strategy",),
)
IGNORED_LABELS = CallOption(
    name="ignore", metavar="LABEL", help="a label that is left out (O)", several=True, aliases=("ignore_labels",)
)
ANSWERING = (
    CallOption(name="max_answer_len", type=int, metavar="N", help="tokens of the longest answer (15)", least=1),
    CallOption(name="max_seq_len", type=int, metavar="N", help="tokens of a window of the context (384)", least=1),
    CallOption(name="doc_stride", type=int, metavar="N", help="tokens by which windows overlap (128)", least=1),
    CallOption(
        name="handle_impossible",
        type=bool,
        help="allow an empty answer",
        aliases=("handle_impossible_answer",),
    ),
)
SOURCE = CallOption(name="source", metavar="CODE", help="the language of the texts, such as en", aliases=("src_lang",))
TARGET = CallOption(name="target", metavar="CODE", help="the language to write, such as de", aliases=("tgt_lang",))
PREFIX = CallOption(name="prefix", metavar="TEXT", help="what to write before each text (as the checkpoint says)")
LANGUAGE = CallOption(name="language", metavar="CODE", help="the language that is spoken, such as en (detected)")
TIMESTAMPS = CallOption(
    name="timestamps",
    flag="no_timestamps",
    type=bool,
    help="write texts without times",
    aliases=("return_timestamps",),
    default=True,
    texts=("word", "char"),
)
TRANSLATE = CallOption(name="translate", type=bool, help="write English, whatever is spoken")
SAID_BEFORE = CallOption(name="prompt", metavar="TEXT", help="names and words that may be said, spelt so")
VAD_FILTER = CallOption(name="vad_filter", type=bool, help="leave out what is no speech (needs the extra vad)")
LANGUAGE_MODEL = CallOption(
    name="language_model", metavar="FILE", help="n-grams for a model that writes by CTC (needs the extra ngrams)"
)
WORD_TIMESTAMPS = CallOption(name="word_timestamps", type=bool, help="the times of each word, too")
WORDS = CallOption(
    name="words",
    metavar="FILE",
    help="a JSON file with the words of an image and their boxes",
    required=True,
    each=True,
    is_list=True,
)
POINTS = CallOption(
    name="points",
    metavar="X,Y",
    help='points of an object in each INPUT, in pixels: "X,Y X,Y", with ; between objects',
    each=True,
    is_list=True,
    aliases=("input_points",),
)
POINT_LABELS = CallOption(
    name="point_labels",
    metavar="1",
    help='for each point 1, where the object is, or 0, where it is not: "1 0"',
    each=True,
    is_list=True,
    aliases=("input_labels",),
)
BOXES = CallOption(
    name="boxes",
    metavar="X,Y,X,Y",
    help='a box around each object: "LEFT,TOP,RIGHT,BOTTOM"',
    each=True,
    is_list=True,
    aliases=("input_boxes",),
)
SPANS = CallOption(
    name="spans",
    metavar="A,B",
    help='the characters of each entity in INPUT, from A to before B: "0,7 17,28"',
    required=True,
    each=True,
    is_list=True,
)
DATASET_INDEX = CallOption(
    name="dataset_index",
    type=int,
    metavar="N",
    help="the data set whose expert looks at persons, in ViTPose++ (0, COCO)",
    least=0,
)
MULTIMASK = CallOption(
    name="multimask",
    flag="no_multimask",
    type=bool,
    help="find one mask of each object",
    aliases=("multimask_output",),
    default=True,
)
_ALL_MASKS = "without points and boxes: "
GRID = (
    CallOption(
        name="points_per_batch",
        type=int,
        metavar="N",
        help=f"{_ALL_MASKS}points that are computed at once (64)",
        least=1,
    ),
    CallOption(
        name="points_per_crop",
        type=int,
        metavar="N",
        help=f"{_ALL_MASKS}points of a side of the grid that asks for masks (32)",
        least=1,
    ),
    CallOption(
        name="crops_n_layers",
        type=int,
        metavar="N",
        help=f"{_ALL_MASKS}layers of crops, 2^i x 2^i in layer i, that have grids of their own (0)",
        least=0,
    ),
    CallOption(
        name="crop_overlap_ratio",
        type=float,
        metavar="F",
        help=f"{_ALL_MASKS}the part of the short side by which the crops of layer 1 overlap (0.34)",
        least=0,
        most=1,
    ),
    CallOption(
        name="crop_n_points_downscale_factor",
        type=int,
        metavar="N",
        help=f"{_ALL_MASKS}by what the grid's side is divided from layer to layer (1)",
        least=1,
    ),
    CallOption(
        name="pred_iou_thresh",
        type=float,
        metavar="F",
        help=f"{_ALL_MASKS}the score that a mask has to exceed (0.88)",
        least=0,
    ),
    CallOption(
        name="stability_score_thresh",
        type=float,
        metavar="F",
        help=f"{_ALL_MASKS}the part of a mask that has to stay at a higher threshold (0.95)",
        least=0,
    ),
    CallOption(
        name="stability_score_offset",
        type=float,
        metavar="F",
        help=f"{_ALL_MASKS}by how much that threshold is higher (1)",
        least=0,
    ),
    CallOption(
        name="mask_threshold",
        type=float,
        metavar="F",
        help=f"{_ALL_MASKS}the logit that a mask's pixels exceed (0)",
    ),
    CallOption(
        name="crops_nms_thresh",
        type=float,
        metavar="F",
        help=f"{_ALL_MASKS}the overlap of two masks' boxes from which on one is left out (0.7)",
        least=0,
    ),
)
THRESHOLD = CallOption(name="threshold", type=float, metavar="F", help="the lowest score, 0 ... 1", least=0, most=1)
SEGMENTING = (
    CallOption(
        name="subtask",
        metavar="KIND",
        help="what is found: panoptic, instance or semantic (the first of these that the checkpoint can find)",
    ),
    THRESHOLD,
    CallOption(name="mask_threshold", type=float, metavar="F", help="the probability from which a pixel is in a mask"),
    CallOption(
        name="overlap_mask_area_threshold",
        type=float,
        metavar="F",
        help="the part of its mask that an object must have for itself, 0 ... 1",
        least=0,
        most=1,
    ),
)
LINES = CallOption(name="lines", type=bool, help="each image has several lines")
NUM_BEAMS = CallOption(name="num_beams", type=int, metavar="N", help="width of the beam search (1)", least=1)
MAX_NEW_TOKENS = CallOption(
    name="max_new_tokens", type=int, metavar="N", help="the most tokens to generate (512)", least=1
)
TEMPERATURE = CallOption(
    name="temperature", type=float, metavar="F", help="sample at this temperature; 0: do not sample", least=0
)
TOP_P = CallOption(
    name="top_p", type=float, metavar="F", help="sample from the fewest tokens with this total probability, 0 ... 1"
)
MIN_P = CallOption(
    name="min_p", type=float, metavar="F", help="sample from tokens with this share of the highest probability"
)
STOP = CallOption(name="stop_strings", flag="stop", metavar="TEXT", help="end before this text", several=True)
SEED = CallOption(name="seed", type=int, metavar="N", help="seed of the sampling")
PROMPT_LOOKUP = CallOption(
    name="prompt_lookup_num_tokens",
    flag="prompt-lookup",
    type=int,
    metavar="N",
    help="guess up to N tokens from an earlier place with the same last tokens, which is faster if texts repeat",
    least=1,
)
WRITING = (MAX_NEW_TOKENS, NUM_BEAMS)
GENERATION = (MAX_NEW_TOKENS, TEMPERATURE, SAMPLING_TOP_K, TOP_P, MIN_P, STOP, SEED, PROMPT_LOOKUP)
PROMPT = CallOption(name="prompt", metavar="TEXT", help="what is asked about each image", required=True)
PARSED_ANSWER = CallOption(
    name="parsed", type=bool, help="what an answer's tags and places say, as JSON, where the model has such answers"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskKind:
    """A row of the table.

    name: as in `zoo.load(task=...)`.
    cls: its class, as "module of zoo.tasks:name".
    reads: what its inputs are.
    help: a line of `zoo run --help`.
    pipelines: the names of transformers' pipelines for it, the first that of the Hub; `zoo.load` takes them too.
    heads: end of a class's name -> the name of its loss in zoo/apps/train/losses.py, or None.  Checkpoints of these
        classes were trained for the task.
    model: the protocol of what it reads of a model, in zoo/tasks/protocols.py or as "module of zoo.tasks:name"; "" for
        nothing that has a name.
    output: the protocol of what it reads of the model's output, where that is no array of logits.
    borrows: the task whose heads serve this one in families without a head of its own.
    classes: head, or model type -> the class of the task, where it is another one.
    arguments: the arguments of its call that take the inputs.
    options: further arguments that commands and pages offer.
    ranks: True if one call takes all inputs: the first is a query, the others are documents.
    streams: True if `task.stream(text)` gives the result in pieces.
    draws: True if its results are pictures, too (`zoo run --overlay`).
    labelled: True if config.json names what it finds.
    recipe: the class in zoo/apps/train/recipes.py that trains it, if any.
    part: rows of a part of `zoo map`, after which a job that is stopped can resume.
    """

    name: str
    cls: str
    reads: Input
    help: str
    pipelines: tuple[str, ...] = ()
    heads: Mapping[str, str | None] = field(default_factory=dict)
    model: str = ""
    output: str = ""
    borrows: str | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("texts",)
    options: tuple[CallOption, ...] = ()
    ranks: bool = False
    streams: bool = False
    draws: bool = False
    labelled: bool = False
    recipe: str | None = None
    part: int = 1024

    def option(self, name: str) -> CallOption | None:
        """The option of a name, if the task has it."""
        return next((one for one in self.options if name in (one.name, *one.aliases)), None)


_IMAGES: Any = {"reads": "image", "arguments": ("images",), "part": 128}
_AUDIO: Any = {"reads": "audio", "arguments": ("audio",), "part": 16}
_WRITES: Any = {"reads": "text", "model": "EncoderDecoder"}

TASKS: list[TaskKind] = [
    TaskKind(
        name="embed",
        cls="embed:Embed",
        reads="text",
        help="a vector for each INPUT",
        pipelines=("sentence-similarity", "feature-extraction"),
        heads={"Model": None},
        model="TextModel",
        output="States",
        recipe="EmbedPairs",
    ),
    TaskKind(
        name="sparse-embed",
        cls="sparse_embed:SparseEmbed",
        reads="text",
        help="words with weights for each INPUT, the heaviest first (SPLADE)",
        model="MaskedLM",
        borrows="fill-mask",
        options=(TOP_K,),
    ),
    TaskKind(
        name="multi-vector-embed",
        cls="multi_vector_embed:MultiVectorEmbed",
        reads="text",
        help="a vector for each token of each INPUT, as a document (ColBERT)",
        model="TextModel",
        output="States",
        borrows="embed",
    ),
    TaskKind(
        name="fill-mask",
        cls="fill_mask:FillMask",
        reads="text",
        help="words for the mask tokens ([MASK] or <mask>, depending on the tokenizer) in each INPUT",
        heads={"ForMaskedLM": "tokens"},
        model="MaskedLM",
        options=(TOP_K, TARGETS),
    ),
    TaskKind(
        name="classify",
        cls="classify:Classify",
        reads="text",
        help="labels for each INPUT",
        pipelines=("text-classification", "sentiment-analysis"),
        heads={"ForSequenceClassification": "classes"},
        model="TextModel",
        options=(TOP_K, PAIRS, FUNCTION),
        labelled=True,
        recipe="ClassifyTexts",
    ),
    TaskKind(
        name="tag",
        cls="tag:Tag",
        reads="text",
        help="named entities in each INPUT: people, places, ...",
        pipelines=("token-classification", "ner"),
        heads={"ForTokenClassification": "tags"},
        model="TextModel",
        options=(AGGREGATION, IGNORED_LABELS),
        labelled=True,
        recipe="TagWords",
    ),
    TaskKind(
        name="entity-classification",
        cls="classify_entities:ClassifyEntities",
        reads="text",
        help="the types of an entity in each INPUT, the relation of two, or the label of each of --spans A,B (LUKE)",
        heads=dict.fromkeys(
            ("ForEntityClassification", "ForEntityPairClassification", "ForEntitySpanClassification"),
            "classes of entities",
        ),
        model="TextModel",
        classes={"ForEntitySpanClassification": "classify_entities:LabelSpans"},
        options=(SPANS, TOP_K, FUNCTION),
        labelled=True,
    ),
    TaskKind(
        name="answer",
        cls="answer:Answer",
        reads="text",
        help="the answer to --question Q in --context C; without one of them, each INPUT takes its place",
        pipelines=("question-answering",),
        heads={"ForQuestionAnswering": "span"},
        model="TextModel",
        output="Spans",
        arguments=("question", "context"),
        options=(TOP_K, QUESTION, CONTEXT, *ANSWERING),
    ),
    TaskKind(
        name="rerank",
        cls="rerank:Rerank",
        reads="text",
        help="documents sorted by relevance; the first INPUT is the query",
        pipelines=("text-ranking",),
        model="TextModel",
        borrows="classify",
        classes=dict.fromkeys(("ForCausalLM", "LMHeadModel"), "causal_rerank:CausalRerank"),
        arguments=("query", "documents"),
        options=(TOP_K,),
        ranks=True,
        labelled=True,
    ),
    TaskKind(
        name="generate",
        cls="generate:Generate",
        reads="text",
        help="the continuation of each INPUT; see --max-new-tokens, --temperature and --seed",
        pipelines=("text-generation", "conversational"),
        heads={"ForCausalLM": "next token", "LMHeadModel": "next token"},
        model="CausalLM",
        options=GENERATION,
        streams=True,
        recipe="ContinueTexts",
        part=32,
    ),
    TaskKind(
        name="zero-shot-classification",
        cls="zero_shot:ZeroShot",
        reads="text",
        help="the scores of --labels A,B,C for each INPUT, by a model of natural language inference",
        model="TextModel",
        borrows="classify",
        options=(LABELS, TEMPLATE, MULTI_LABEL),
    ),
    TaskKind(
        name="text2text-generation",
        cls="text2text:Text2Text",
        help="the text that a model with encoder and decoder (T5, ...) writes about each INPUT",
        heads={"ForConditionalGeneration": "written text"},
        options=(*WRITING, PREFIX),
        **_WRITES,
    ),
    TaskKind(
        name="summarization",
        cls="text2text:Summarize",
        help="a summary of each INPUT",
        borrows="text2text-generation",
        options=(*WRITING, PREFIX),
        **_WRITES,
    ),
    TaskKind(
        name="translation",
        cls="text2text:Translate",
        help="a translation of each INPUT",
        borrows="text2text-generation",
        options=(*WRITING, PREFIX, SOURCE, TARGET),
        **_WRITES,
    ),
    TaskKind(
        name="automatic-speech-recognition",
        cls="transcribe:Transcribe",
        help="the words of each audio file, with times (Whisper, wav2vec 2.0, ...)",
        heads={"ForCTC": "characters of a recording"},
        classes={"ForCTC": "ctc_transcribe:CtcTranscribe", "moonshine": "window_transcribe:WindowTranscribe"},
        options=(LANGUAGE, TRANSLATE, TIMESTAMPS, WORD_TIMESTAMPS, SAID_BEFORE, NUM_BEAMS, LANGUAGE_MODEL, VAD_FILTER),
        **_AUDIO,
    ),
    TaskKind(
        name="audio-classification",
        cls="audio_classify:AudioClassify",
        help="labels for each audio file",
        heads={"ForAudioClassification": "classes"},
        model="AudioModel",
        options=(TOP_K, FUNCTION),
        labelled=True,
        **_AUDIO,
    ),
    TaskKind(
        name="zero-shot-audio-classification",
        cls="zero_shot_audio:ZeroShotAudio",
        help="the scores of --labels A,B,C for each audio file, by a model of texts and sounds (CLAP)",
        model="AudioTextEncoder",
        output="SoundLogits",
        options=(LABELS, TEMPLATE),
        **_AUDIO,
    ),
    TaskKind(
        name="embed",
        cls="zero_shot_audio:AudioEmbed",
        help="a vector for each audio file, or for each INPUT that is a text (CLAP)",
        borrows="zero-shot-audio-classification",
        **_AUDIO,
    ),
    TaskKind(
        name="embed",
        cls="image_embed:ImageEmbed",
        help="a vector for each INPUT",
        pipelines=("image-feature-extraction",),
        heads={"Model": None},
        model="ImageModel",
        output="States",
        borrows="zero-shot-image-classification",
        **_IMAGES,
    ),
    TaskKind(
        name="classify",
        cls="image_classify:ImageClassify",
        help="labels for each INPUT",
        pipelines=("image-classification",),
        heads={"ForImageClassification": "classes", "ForImageClassificationWithTeacher": None},
        model="ImageModel",
        options=(TOP_K, FUNCTION),
        labelled=True,
        recipe="ClassifyImages",
        **_IMAGES,
    ),
    TaskKind(
        name="segment",
        cls="segment:Segment",
        help="the share of each label among the pixels; --overlay writes them over the image",
        pipelines=("image-segmentation",),
        heads={
            "ForSemanticSegmentation": "segmentation",
            **dict.fromkeys(("ForSegmentation", "ForInstanceSegmentation", "ForUniversalSegmentation")),
        },
        classes={
            "ForSegmentation": "segment_objects:SegmentObjects",
            "ForInstanceSegmentation": "segment_instances:SegmentInstances",
            "ForUniversalSegmentation": "segment_universal:SegmentUniversal",
        },
        options=SEGMENTING,
        labelled=True,
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="detect",
        cls="detect:Detect",
        help="objects with scores and boxes, in pixels; --overlay draws them on the image",
        pipelines=("object-detection",),
        heads={"ForObjectDetection": "objects", "ForTableRecognition": None},
        output="Objects",
        classes={"ForTableRecognition": "table_structure:TableStructure"},
        options=(THRESHOLD,),
        labelled=True,
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="depth",
        cls="depth:Depth",
        help="the depth of each pixel; --overlay writes it as a picture in grey",
        pipelines=("depth-estimation",),
        heads={"ForDepthEstimation": None},
        output="depth:DepthOutput",
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="keypoint-detection",
        cls="keypoints:DetectKeypoints",
        help="keypoints of the persons in --boxes, in pixels; --overlay draws them on the image",
        heads={"ForPoseEstimation": None},
        model="PoseModel",
        output="keypoints:PoseOutput",
        options=(BOXES, THRESHOLD, DATASET_INDEX),
        labelled=True,
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="mask-generation",
        cls="mask_generation:GenerateMasks",
        help="masks of the objects that --points and --boxes show, or of all; --overlay draws them on the image, "
        "--masks writes them",
        model="MaskGenerator",
        options=(POINTS, POINT_LABELS, BOXES, MULTIMASK, *GRID),
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="tag-page",
        cls="page_tag:PageTag",
        help="a label for each word of --words on an image (LayoutLMv3)",
        options=(WORDS,),
        labelled=True,
        **_IMAGES,
    ),
    TaskKind(
        name="read",
        cls="read:Read",
        help="the text in an image of one line, or of several with --lines",
        pipelines=("image-to-text",),
        model="Reader",
        options=(LINES, *WRITING),
        recipe="ReadLines",
        **{**_IMAGES, "part": 64},
    ),
    TaskKind(
        name="ocr",
        cls="ocr:Ocr",
        help="the lines of text of each page, with their places (`zoo ocr` writes files)",
        heads={"ForTextRecognition": None},
        borrows="read",
        **{**_IMAGES, "part": 16},
    ),
    TaskKind(
        name="zero-shot-image-classification",
        cls="zero_shot_image:ZeroShotImage",
        help="the scores of --labels A,B,C for each INPUT, by a model of texts and images (CLIP, SigLIP)",
        model="DualEncoder",
        output="Logits",
        options=(LABELS, TEMPLATE),
        **_IMAGES,
    ),
    TaskKind(
        name="zero-shot-object-detection",
        cls="zero_shot_detect:ZeroShotDetect",
        classes=dict.fromkeys(("grounding-dino", "mm-grounding-dino"), "phrase_detect:PhraseDetect"),
        help="objects that --labels A,B,C name, with scores and boxes, in pixels; --overlay draws them on the image",
        model="GroundedDetector",
        output="GroundedOutput",
        options=(LABELS, THRESHOLD),
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="zero-shot-image-segmentation",
        cls="zero_shot_segment:ZeroShotSegment",
        help="where each INPUT shows what --labels A,B,C say (CLIPSeg); --overlay writes them over the image",
        heads={"ForImageSegmentation": None},
        model="TextMaskModel",
        options=(LABELS, TEMPLATE, THRESHOLD),
        draws=True,
        **_IMAGES,
    ),
    TaskKind(
        name="image-text-to-text",
        cls="image_text:ImageText",
        classes=dict.fromkeys(("blip", "florence2", "vision-encoder-decoder"), "image_question:ImageQuestionTask"),
        help="the answer to --prompt TEXT about each INPUT; the prompt may also be the last INPUT",
        model="ImageTextLM",
        options=(PROMPT, PARSED_ANSWER, *GENERATION),
        streams=True,
        **{**_IMAGES, "part": 16},
    ),
]
# Heads with a loss and without a task: end of a class's name -> the name of its loss.
OTHER_HEADS: dict[str, str] = {
    "ForMultipleChoice": "choice",
    "ForNextSentencePrediction": "choice",
    "ForPreTraining": "pretraining",
    "ForMaskedImageModeling": "hidden pixels",
}


def task_of_head(head: str) -> str | None:
    """The task that checkpoints of a head were trained for, by the end of its class's name."""
    return next((kind.name for kind in TASKS if head in kind.heads), None)


def loss_of_head(head: str) -> str | None:
    """The name of a head's loss in zoo/apps/train/losses.py."""
    return next((kind.heads[head] for kind in TASKS if head in kind.heads), OTHER_HEADS.get(head))


def find_tasks(name: Any) -> tuple[TaskKind, ...]:
    """The tasks that a name stands for: zoo's own, which one for texts and one for images may share, or a pipeline's.

    UnsupportedError for a name that no task has.
    """
    if isinstance(name, str) and languages_of(name) is not None:
        name = "translation"
    found = tuple(kind for kind in TASKS if kind.name == name) or tuple(k for k in TASKS if name in k.pipelines)
    if not found:
        names = dict.fromkeys(kind.name for kind in TASKS)
        known = [*names, *(name for kind in TASKS for name in kind.pipelines)]
        raise UnsupportedError(f"task {name!r} is not one of {', '.join(names)}{nearest(str(name), known)}")
    return found


def languages_of(task: str) -> tuple[str, str] | None:
    """The languages in the name of a pipeline, translation_en_to_de; None for another name."""
    match = re.fullmatch("translation_(.+)_to_(.+)", task)
    return None if match is None else (match[1], match[2])


def tasks_that_read(kind: Input) -> dict[str, TaskKind]:
    """The tasks for one kind of input, by name."""
    return {one.name: one for one in TASKS if one.reads == kind}


def options_of(tasks: Iterable[TaskKind] = TASKS) -> dict[CallOption, tuple[str, ...]]:
    """Each option of these tasks, with the names of those that have it."""
    found: dict[CallOption, dict[str, None]] = {}
    for task in tasks:
        for option in task.options:
            found.setdefault(option, {})[task.name] = None
    return {option: tuple(names) for option, names in found.items()}
