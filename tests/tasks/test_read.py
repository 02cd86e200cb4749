"""Read: against transformers on checkpoints in the hub's layouts, and what it does with images that hold no line."""

from __future__ import annotations

import io
import json
import lzma
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo import ops
from zoo.apps.cli import main
from zoo.apps.tables.extract import TableExtractor
from zoo.apps.tables.reading import read_cells, text_lines
from zoo.errors import ConfigError, InputError, TokenizerError, UnsupportedError, ZooError
from zoo.generate.sampling import log_softmax
from zoo.images.boxes import Detection
from zoo.images.lines import split_lines
from zoo.tasks.read import NEW_TOKENS, Reading
from zoo.text.tokenizer import Tokenizer

DATA = Path(__file__).parents[1] / "data"
SCANS = sorted((DATA / "text_lines").glob("*.png"))
ENDS = [2, *range(5, 700, 60)]  # more than one, so that the texts of random models come to an end

pytestmark = pytest.mark.filterwarnings("ignore:.* were cut there")


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """`folders(spec)`: a random checkpoint, written once."""
    made = {}

    def make(spec="trocr-base-handwritten"):
        if spec not in made:
            made[spec] = build(spec, tmp_path_factory.mktemp(spec))
        return made[spec]

    return make


@pytest.fixture(scope="session")
def reader(folders):
    return zoo.load(folders())


@pytest.fixture
def copy(folders, tmp_path):
    """A checkpoint to be spoiled."""
    return Path(shutil.copytree(folders(), tmp_path / "copy"))


def edit(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture
def lines():
    """Images of several sizes and kinds, and what a person sees of each."""
    seen = [draw(40, 300), draw(25, 120, seed=1), draw(61, 90, seed=2), *(Image.open(p).convert("RGB") for p in SCANS)]
    return [seen[0], np.asarray(seen[1]), seen[2].convert("RGBA"), *map(str, SCANS)], seen


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
@pytest.mark.parametrize(
    ("spec", "search"),
    [
        ("trocr-small-printed", {}),
        ("trocr-base-handwritten", {}),
        ("trocr-base-handwritten", {"num_beams": 4}),
        ("trocr-large-printed", {"num_beams": 3, "length_penalty": 2.0, "early_stopping": True}),
        ("trocr-beit", {"num_beams": 4, "no_repeat_ngram_size": 3}),
    ],
)
def test_texts_are_those_of_transformers(spec, search, device, folders, lines):
    pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    from parity.reference import Reference

    theirs = Reference(folders(spec), "VisionEncoderDecoderModel")
    reader = zoo.load(folders(spec), device=device)
    given, seen = lines
    pixels, ends = theirs.pixels(seen)["pixel_values"], [2]
    for _ in range(2):
        found = reader(given, max_new_tokens=15, eos_token_id=ends, **search)
        rows = theirs.generate({"pixel_values": pixels}, max_new_tokens=15, eos_token_id=ends, **search)
        assert [one.text for one in found] == theirs.texts(rows)
        ends += [rows[0][len(rows[0]) // 3], rows[-1][len(rows[-1]) // 2]]  # so that texts end at different times
    assert len({len(row) for row in rows}) > 1 or search
    assert len({one.text for one in found}) > 2


@pytest.mark.parametrize(
    ("cls", "files", "size"),
    [
        ("XLMRobertaTokenizer", {"sentencepiece.bpe.model": "unilm3-cased.model.xz"}, 64044),
        ("RobertaTokenizer", {"vocab.json": "roberta.vocab.json.xz", "merges.txt": "roberta.merges.txt.xz"}, 50265),
    ],
)
def test_any_tokens_of_the_real_vocabularies_decode_alike(cls, files, size, tmp_path, rng):
    """trocr-small's tokenizer and that of all others; a decoder may write more ids than there are tokens."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    for name, packed in files.items():
        (tmp_path / name).write_bytes(lzma.decompress((DATA / "tokenizers" / packed).read_bytes()))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": cls}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = Tokenizer.from_folder(tmp_path)
    rows = [rng.integers(0, size, n).tolist() for n in rng.integers(1, 25, 300)]
    rows += theirs(["it 's 12,345.67 , n't ! \u00e9\u00e8 \u2014 (a)", "</s> x <pad>", " two  spaces "])["input_ids"]
    assert [ours.decode(row) for row in rows] == theirs.batch_decode(rows, skip_special_tokens=True)


def test_confidence_is_the_mean_of_the_log_probabilities(reader, lines):
    _, seen = lines
    found = reader(seen[:3], max_new_tokens=9, eos_token_id=ENDS)
    for image, reading in zip(seen, found, strict=False):
        pixels = reader.processor(image).pixel_values
        ids = [2]
        probabilities = []
        while len(ids) < 10 and (len(ids) == 1 or ids[-1] not in ENDS):
            p = np.exp(log_softmax(reader.model(pixels, [ids]).logits[0, -1:]))[0]
            ids.append(int(p.argmax()))
            probabilities.append(p.max())
        assert reading.text == reader.tokenizer.decode(ids[1:])
        assert reading.confidence == pytest.approx(np.prod(probabilities) ** (1 / len(probabilities)), rel=1e-5)


def test_one_is_one_and_several_are_a_list(reader, lines):
    given, seen = lines
    options = {"max_new_tokens": 20, "eos_token_id": ENDS}
    several = reader(given, **options)
    assert isinstance(several, list)
    for image, image, reading in zip(given, seen, several, strict=True):
        alone = reader(image, **options)
        assert isinstance(alone, Reading)
        assert alone.text == reading.text
        assert alone.confidence == pytest.approx(reading.confidence, rel=1e-5)
        assert reader(np.asarray(image), **options).text == alone.text
    text, confidence = several[0]  # what readers of tables are asked for
    assert (text, confidence) == (several[0].text, several[0].confidence)


def test_the_size_of_batches_changes_nothing(reader, lines, monkeypatch):
    given, _ = lines
    options = {"max_new_tokens": 20, "eos_token_id": ENDS}
    wanted = reader(given, **options)
    for size in (1, 2, 4):
        monkeypatch.setattr("zoo.tasks.read.MAX_LINES", size)
        assert reader.batch_lines == size
        assert [one.text for one in reader(given, **options)] == [one.text for one in wanted]


def test_exif_and_transparency(reader):
    image = draw(30, 200)
    turned, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    image.transpose(Image.Transpose.ROTATE_90).save(turned, "PNG", exif=exif)
    options = {"max_new_tokens": 9, "eos_token_id": ENDS}
    assert reader(turned.getvalue(), **options) == reader(image, **options)
    ink = np.zeros((30, 200, 4), np.uint8)
    ink[10:20, 20:180:7, 3] = 255
    on_white = np.repeat(255 - ink[:, :, 3:], 3, 2)
    assert reader(ink, **options) == reader(on_white, **options)


def test_an_image_of_one_colour_holds_no_text(reader):
    """Its confidence is the model's: that of an end at once, or after the begin token."""
    blank, line = np.full((40, 200, 3), 250, np.uint8), draw(40, 300)
    options = {"max_new_tokens": 9, "eos_token_id": ENDS}
    found = reader([blank, line, blank[:20]], **options)
    assert [one.text for one in found] == ["", reader(line, **options).text, ""]
    pixels = reader.processor(blank).pixel_values
    first, second = (np.exp(log_softmax(reader.model(pixels, [ids]).logits[0, -1:]))[0] for ids in ([2], [2, 0]))
    wanted = first[ENDS].sum() + first[0] * second[ENDS].sum()
    assert 0 < wanted < 0.5
    assert reader(blank, eos_token_id=[2, 10**6]).confidence < found[0].confidence
    assert [one.confidence for one in found[::2]] == pytest.approx([wanted, wanted], rel=1e-5)


def test_lines(reader):
    """A block is read line by line: its text has a line each, its confidence is the mean over all tokens."""
    block = np.full((120, 300, 3), 255, np.uint8)
    for top, seed in ((10, 1), (50, 2), (90, 3)):
        block[top : top + 20, 20:280] = np.minimum(np.asarray(draw(20, 260, seed=seed)), 100)
    boxes = split_lines(block)
    assert len(boxes) == 3
    options = {"max_new_tokens": 9, "eos_token_id": ENDS}
    parts = reader([block[y0:y1, x0:x1] for x0, y0, x1, y1 in boxes], **options)
    whole, other = reader([block, block[::-1].copy()], lines=True, **options)
    counts = [len(row) for row in _ids(reader, [block[y0:y1, x0:x1] for x0, y0, x1, y1 in boxes], options)]
    assert whole.text == "\n".join(part.text for part in parts)
    logs = sum(n * np.log(part.confidence) for n, part in zip(counts, parts, strict=True)) / sum(counts)
    assert whole.confidence == pytest.approx(np.exp(logs), rel=1e-5)
    assert other.text != whole.text
    blank = reader(np.full((50, 50), 255, np.uint8), lines=True)
    assert blank == reader(np.full((50, 50), 255, np.uint8))
    assert blank.text == ""


def _ids(reader, images, options):
    from zoo.generate import generate

    config = reader.generation.replace(**options)
    states = reader.model.encode(reader.processor(images).pixel_values)
    found = generate(reader.model, [[2]] * len(images), config, encoder_hidden_states=states)
    return [one[0].ids for one in found]


def test_how_long_a_text_may_be(reader, copy):
    image = draw(40, 300)
    with pytest.warns(UserWarning, match="1 of 1 lines had more than 5 tokens"):
        reader(image, max_new_tokens=5, eos_token_id=[699])
    # Not transformers' 20: as many as a line may have, or as there are positions for.
    most = min(NEW_TOKENS, reader.config.decoder.max_position_embeddings - 1)
    with pytest.warns(UserWarning, match=f"1 of 1 lines had more than {most} tokens"):
        reader(image, eos_token_id=[699])
    with pytest.warns(UserWarning, match="more than 6 tokens"):
        reader(image, eos_token_id=[699], max_length=7)
    edit(copy / "generation_config.json", max_length=9)
    own = zoo.load(copy)
    with pytest.warns(UserWarning, match="more than 8 tokens"):
        own(image, eos_token_id=[699])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own(image, eos_token_id=list(range(700)))


@pytest.mark.parametrize("without", ["generation_config.json", None])
def test_where_the_ends_of_a_text_are_said(without, copy, reader):
    """A fine-tuned checkpoint may say nothing of its tokens, in no file: they are TrOCR's."""
    if without:
        (copy / without).unlink()
    else:
        (copy / "generation_config.json").write_text("{}")
    raw = json.loads((copy / "config.json").read_text())
    for name in ("bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id"):
        raw["decoder"].pop(name)
    (copy / "config.json").write_text(json.dumps(raw))
    own = zoo.load(copy)
    assert (own.generation.decoder_start_token_id, own.generation.eos_token_id) == (2, (2,))
    line = draw(40, 300)
    assert own(line, max_new_tokens=9) == reader(line, max_new_tokens=9)


def test_an_end_must_be_known(copy):
    (copy / "generation_config.json").unlink()
    raw = json.loads((copy / "config.json").read_text())
    raw["decoder"]["eos_token_id"] = None
    (copy / "config.json").write_text(json.dumps(raw))
    with pytest.raises(ConfigError, match="with which token a text starts"):
        zoo.load(copy)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"max_new_tokens": 10**6}, "has room for 63"),
        ({"num_beams": 0}, "num_beams is 0"),
        ({"num_beams": 600}, "num_beams is 600, too many for a vocabulary of 700"),
        ({"num_beams": 4, "do_sample": True}, "is not implemented"),
        ({"num_beams": 4, "num_return_sequences": 2}, "a reading is one text"),
        ({"temperature": 0}, "temperature is 0"),
        ({"stop_strings": "."}, "a reading ends where the line does"),
        ({"num_beans": 4}, "num_beans is not an option of generation; did you mean 'num_beams'"),
    ],
)
def test_bad_options(options, told, reader):
    with pytest.raises(ZooError, match=told):
        reader(draw(40, 300), **options)


@pytest.mark.parametrize("nothing", [None, [], {"a": 1}, 3, "no such file.png", [b""]])
def test_bad_images(nothing, reader):
    with pytest.raises(ZooError):
        reader(nothing)


def test_missing_files(copy):
    (copy / "merges.txt").unlink()
    with pytest.raises(TokenizerError, match=r"vocab\.json without merges\.txt"):
        zoo.load(copy)
    (copy / "vocab.json").unlink()
    with pytest.raises(TokenizerError, match="no tokenizer: expected"):
        zoo.load(copy)


def test_a_missing_or_foreign_processor(copy):
    path = copy / "preprocessor_config.json"
    said = path.read_text()
    edit(path, size=224)
    with pytest.raises(ConfigError, match="makes images of 224 x 224, but the encoder reads 48 x 48"):
        zoo.load(copy)
    path.write_text(said.replace("ViTFeatureExtractor", "PoolFormerFeatureExtractor"))
    with pytest.raises(UnsupportedError, match="PoolFormerFeatureExtractor"):
        zoo.load(copy)
    path.unlink()
    with pytest.raises(ZooError, match=r"preprocessor_config\.json"):
        zoo.load(copy)


def test_readers_read_and_others_do_not(folders, tmp_path):
    with pytest.raises(UnsupportedError, match="its tasks are read"):
        zoo.load(folders(), task="embed")
    vit = build("vit-base-patch16-224", tmp_path)
    with pytest.raises(UnsupportedError, match="its tasks are embed, classify"):
        zoo.load(vit, task="read")


def test_saving(reader, tmp_path):
    zoo.save(reader, tmp_path / "saved")
    again = zoo.load(tmp_path / "saved")
    image = draw(40, 300)
    options = {"max_new_tokens": 9, "eos_token_id": ENDS}
    assert again(image, **options) == reader(image, **options)
    assert again.generation == reader.generation


def test_the_command(folders, tmp_path, capsys):
    path = tmp_path / "line.png"
    draw(40, 300).save(path)
    assert main(["run", str(folders()), str(path), "--num-beams", "2", "--max-new-tokens", "4", "--lines"]) == 0
    found = json.loads(capsys.readouterr().out)
    reader = zoo.load(folders())
    wanted = reader(path, num_beams=2, max_new_tokens=4, lines=True)
    assert found == {"text": wanted.text, "confidence": pytest.approx(wanted.confidence)}
    with pytest.raises(SystemExit):
        main(["run", str(folders()), str(path), "--top-k", "2"])
    assert "--top-k is for" in capsys.readouterr().err


def test_the_cells_of_a_table_are_read(folders, reader):
    """Only those with ink are; the confidence of a text is the reader's."""
    page = np.full((100, 200, 3), 255, np.uint8)
    page[20:34, 20:80] = page[66:80, 120:180] = np.minimum(np.asarray(draw(14, 60)), 90)
    rows, columns = [(0.0, 50.0), (50.0, 100.0)], [(0.0, 100.0), (100.0, 200.0)]
    objects = [
        Detection("table", 0.9, (0.0, 0.0, 200.0, 100.0)),
        *(Detection("table row", 0.9, (0.0, y0, 200.0, y1)) for y0, y1 in rows),
        *(Detection("table column", 0.9, (x0, 0.0, x1, 100.0)) for x0, x1 in columns),
    ]
    extractor = TableExtractor(lambda image, threshold: objects, None, reader=folders(), padding=0)
    (table,) = extractor(page)
    assert table.shape == (2, 2)
    texts = {(cell.row, cell.column): cell.text for cell in table.cells}
    assert (texts[0, 1], texts[1, 0]) == ("", "")
    words = read_cells(page, table, reader)
    assert texts[0, 0] == words[0].text.strip() != ""
    assert texts[1, 1] == words[1].text.strip() != ""
    alone = [reader(line).confidence for _, line in _cells(page, table)]
    assert [word.confidence for word in words] == pytest.approx(alone, rel=1e-5)


def _cells(page, table):
    return [line for cell in table.cells for line in text_lines(page, cell.box)]


def test_nothing_is_kept_between_calls(reader):
    """The encoder's keys belong to a call: two images in turn give what each gives alone."""
    a, b = draw(40, 300), draw(25, 120, seed=1)
    options = {"max_new_tokens": 9, "eos_token_id": ENDS}
    first = reader(a, **options)
    reader(b, **options)
    assert reader(a, **options) == first
    assert ops.backend(reader.model.decoder.base_model.embeddings.word) is ops.on_numpy
    with pytest.raises(InputError, match="the first call with a cache"):
        reader.model.next_logits([[2]], None, reader.model.new_cache(1, 4))
