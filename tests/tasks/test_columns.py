"""Texts in columns of pandas, polars and Arrow, in arrays and iterators; tables, which are no texts, are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from image_checkpoints import PROCESSORS, SMALL

import zoo
from zoo.errors import BatchError, InputError
from zoo.models import vit
from zoo.saving import save_model

TEXTS = ["the cat", "a [MASK] sat", "on the mat"]


def columns(texts):
    """The texts in every form that has them in order."""
    yield from (list(texts), tuple(texts), iter(texts), (text for text in texts), dict.fromkeys(texts).keys())
    yield from (np.array(texts), np.array(texts, object), np.array(texts, np.dtypes.StringDType()))
    pandas = pytest.importorskip("pandas")
    index = ["columns", "to_list", "text", "dtype"][: len(texts)]  # labels, which a Series shows as attributes
    yield from (pandas.Series(texts), pandas.Series(texts, index=index), pandas.Series(texts, dtype="category"))
    yield from (pandas.Series(texts, dtype="string"), pandas.Index(texts), pandas.Series(texts).array)
    polars = pytest.importorskip("polars")
    yield from (polars.Series(texts), polars.Series(texts, dtype=polars.Categorical))
    arrow = pytest.importorskip("pyarrow")
    yield from (arrow.array(texts), arrow.array(texts, arrow.large_string()), arrow.array(texts).dictionary_encode())
    yield from (arrow.chunked_array([texts[:1], texts[1:]]), list(arrow.array(texts)))


def tables(texts):
    yield np.array([(text, 1) for text in texts], [("text", "U20"), ("n", "i4")])
    pandas = pytest.importorskip("pandas")
    yield from (pandas.DataFrame({"text": texts}), pandas.DataFrame({"text": texts})[["text"]])
    polars = pytest.importorskip("polars")
    yield from (polars.DataFrame({"text": texts}), polars.LazyFrame({"text": texts}))
    arrow = pytest.importorskip("pyarrow")
    yield from (arrow.table({"text": texts}), arrow.record_batch({"text": texts}))


@pytest.fixture(scope="module")
def tasks(tiny):
    found = {name: zoo.load(tiny(head), task=name) for name, head in [("embed", "Model"), ("fill-mask", "ForMaskedLM")]}
    for name, head in [("classify", "ForSequenceClassification"), ("tag", "ForTokenClassification")]:
        found[name] = zoo.load(tiny(head), task=name)
    found["answer"] = zoo.load(tiny("ForQuestionAnswering"))
    found["rerank"] = zoo.load(tiny("ForSequenceClassification", id2label={"0": "a"}), task="rerank")
    labels = {"0": "entailment", "1": "neutral"}
    found["zero-shot"] = zoo.load(tiny("ForSequenceClassification", id2label=labels), task="zero-shot-classification")
    return found


CALLS = {
    "embed": lambda task, texts: task(texts).tolist(),
    "fill-mask": lambda task, texts: task(texts),
    "classify": lambda task, texts: task(texts),
    "tag": lambda task, texts: task(texts),
    "answer": lambda task, texts: task("where?", texts),
    "rerank": lambda task, texts: task("a query", texts),
    "zero-shot": lambda task, texts: task("a text", texts),
}


def given_to(name, texts=TEXTS):
    return ["a [MASK]", "b [MASK]", "[MASK]"] if name == "fill-mask" else texts


@pytest.mark.parametrize("name", CALLS)
def test_every_column_is_read_as_its_list(tasks, name):
    texts = given_to(name)
    wanted = CALLS[name](tasks[name], list(texts))
    for column in columns(texts):
        assert CALLS[name](tasks[name], column) == wanted, type(column)


@pytest.mark.parametrize("name", CALLS)
def test_tables_sets_and_dicts_are_refused(tasks, name):
    for table in tables(TEXTS):
        with pytest.raises(InputError, match=r"is a table \(\w+\): pass one column of it, such as df\['text'\]"):
            CALLS[name](tasks[name], table)
    for value in ({"text": TEXTS}, set(TEXTS), frozenset(TEXTS), b"text", 1, np.array("text")):
        with pytest.raises(InputError, match="expected a text or a list of texts"):
            CALLS[name](tasks[name], value)


def test_streams_scores_and_the_tokenizer(tasks):
    embed = tasks["embed"]
    wanted = embed(TEXTS)
    for column in columns(TEXTS):
        np.testing.assert_allclose(np.stack(list(embed.stream(column))), wanted, rtol=1e-6, atol=1e-7)
    for column in columns(TEXTS):
        np.testing.assert_allclose(embed.similarity(column), embed.similarity(wanted), rtol=1e-5, atol=1e-6)
    ids = embed.tokenizer(TEXTS).input_ids.tolist()
    for column in columns(TEXTS):
        assert embed.tokenizer(column).input_ids.tolist() == ids
    for table in tables(TEXTS):
        for call in (embed.encode, embed.similarity, embed.stream, embed.tokenizer, embed.tokenizer.encode_batch):
            with pytest.raises(InputError, match="is a table"):
                call(table)


def test_missing_values_are_named_and_lose_no_others(tasks):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    for column in (
        *(pandas.Series(["a", None]), pandas.Series(["a", float("nan")], dtype=object), arrow.array(["a", None])),
        *(pandas.Series(["a", pandas.NA], dtype="string"), polars.Series(["a", None])),
    ):
        with pytest.raises(BatchError, match=r"texts\[1\] is (None|a missing value)") as caught:
            tasks["embed"](column)
        assert list(caught.value.errors) == [1]
        np.testing.assert_allclose(caught.value.results[0], tasks["embed"]("a"), rtol=1e-5, atol=1e-6)


def test_columns_of_paths_of_images(images, tmp_path):
    model = vit.ViTForImageClassification.from_config(vit.ViTConfig.from_dict(SMALL))
    folder = save_model(model, tmp_path / "vit")
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSORS["vit"]))
    classify = zoo.load(folder)
    wanted = classify(images)
    for column in columns(images):
        assert classify(column) == wanted, type(column)
    for table in tables(images):
        with pytest.raises(InputError, match="images is a table"):
            classify(table)
    with pytest.raises(InputError, match="images is of type set, expected an image or a list of images"):
        classify(set(images))
