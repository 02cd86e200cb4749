"""Behaviour that all tasks share, on checkpoints that zoo makes: no torch is needed here."""

from __future__ import annotations

import itertools
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zoo
from zoo.errors import BatchError, InputError, MissingWeightError, UnsupportedError
from zoo.task_kinds import TASKS, find_tasks, tasks_that_read
from zoo.tasks import task_class
from zoo.tasks.base import CHARACTERS_AT_ONCE, TEXTS_AT_ONCE, batches, text_blocks

HEADS = {
    "embed": "Model",
    "fill-mask": "ForMaskedLM",
    "classify": "ForSequenceClassification",
    "tag": "ForTokenClassification",
    "answer": "ForQuestionAnswering",
    "rerank": "ForSequenceClassification",
    "generate": "LMHeadModel",
}


@pytest.fixture(scope="module")
def task(tiny):
    """`task(name)`: each task on a random BERT, made once."""
    made = {}

    def get(name):
        if name not in made:
            options = {"num_labels": 1} if name == "rerank" else {"num_labels": 4}
            made[name] = zoo.load(tiny(HEADS[name], is_decoder=name == "generate", **options))
            assert made[name].name == name
        return made[name]

    return get


def call(task, texts):
    """Every task as a function of texts, with numbers as its result: a row for each."""
    if task.name == "embed":
        return task(texts)
    if task.name == "fill-mask":
        return np.array([[f.score for f in filled] for filled in task([f"{t} [MASK]" for t in texts])])
    if task.name == "classify":
        return np.array([[x.score for x in sorted(labels)] for labels in task(texts)])
    if task.name == "tag":
        return np.array([[e.score for e in task_row] for task_row in (t[:1] for t in task(texts, ignore=()))])
    if task.name == "answer":
        return np.array([[s.score] for s in task("Which word?", texts)])
    if task.name == "generate":
        return np.array([[t.logprob for t in made.tokens] for made in task(texts, max_new_tokens=3, details=True)])
    return np.array([[r.score] for r in sorted(task("Which word?", texts))])


def words(rng, count):
    return " ".join(rng.choice(["the", "river", "Berlin", "antidisestablishment", "runs", ",", "über"], count))


def test_few_rows_are_cut_at_the_least_cost(rng):
    from zoo.tasks.base import BATCHES_WORTH

    def cost(found):
        return sum(len(index) * lengths[index].max() + budget / BATCHES_WORTH for index in found)

    budget = 320
    for _ in range(20):
        lengths = rng.integers(1, 60, 9)
        order = np.argsort(-lengths, kind="stable")
        cuts = [[i for i in range(1, 9) if bits >> i & 1] for bits in range(0, 512, 2)]
        every = [part for part in (np.split(order, at) for at in cuts) if all(fits(lengths[x], budget) for x in part)]
        found = list(batches(lengths, budget))
        assert all(fits(lengths[index], budget) for index in found)
        assert sorted(np.concatenate(found)) == list(range(9))
        assert cost(found) == min(map(cost, every))


def fits(lengths, budget: int) -> bool:
    return len(lengths) * lengths.max() <= budget


@pytest.mark.parametrize("name", HEADS)
def test_same_alone_and_in_a_batch_in_any_order(task, name, rng):
    texts = [words(rng, int(n)) for n in rng.integers(1, 90, 70)]
    together = call(task(name), texts)
    for i in (0, 31, 69):
        alone = call(task(name), [texts[i]])
        np.testing.assert_allclose(together[i], alone[0], rtol=2e-6, atol=1e-6 * np.abs(alone).max())
    order = rng.permutation(70)
    shuffled = call(task(name), [texts[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], rtol=2e-6, atol=1e-6 * np.abs(together).max())


@pytest.mark.parametrize("name", HEADS)
def test_threads_share_a_task(task, name, rng):
    one = task(name)
    inputs = [[words(rng, int(n)) for n in rng.integers(1, 40, 5)] for _ in range(8)]
    wanted = [call(one, texts) for texts in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for found, expected in zip(pool.map(lambda texts: call(one, texts), inputs), wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["embed", "fill-mask", "classify", "tag"])
def test_texts_that_are_none(task, name):
    good = "a [MASK]"
    for bad, match in [
        (None, "texts is None"),
        (b"a", "texts is of type bytes .decode it first."),
        (7, "texts is of type int"),
        *([] if name == "classify" else [({"text": "a"}, "texts is of type dict")]),  # for pipelines a pair
        *([] if name == "embed" else [([], "texts is empty"), (iter(()), "texts is empty")]),
        ([good, None], r"texts\[1\] is None"),
        ([good, 1.5], r"texts\[1\] is of type float"),
        (np.array([1.0]), r"texts\[0\] is of type float64"),
        ([good, "\ud800"], r"texts\[1\] has a lone surrogate, U\+D800, at character 0"),
    ]:
        with pytest.raises(InputError, match=match):
            task(name)(bad)


@pytest.mark.parametrize("name", HEADS)
def test_torch_gives_the_same(task, name, rng):
    pytest.importorskip("torch")
    texts = [words(rng, int(n)) for n in rng.integers(1, 40, 5)]
    other = zoo.load(task(name).checkpoint.folder, device="torch:cpu")
    wanted = call(task(name), texts)
    np.testing.assert_allclose(call(other, texts), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def test_any_iterable_will_do(task):
    embed, texts = task("embed"), ["one", "two three", ""]
    wanted = embed(texts)
    for given in (tuple(texts), iter(texts), (t for t in texts), np.array(texts), dict.fromkeys(texts).keys()):
        np.testing.assert_array_equal(embed(given), wanted)
    np.testing.assert_allclose(embed(texts[1]), wanted[1], rtol=1e-5, atol=1e-7)
    assert embed("").shape == (32,)


def test_odd_texts_are_texts(task):
    odd = ["", " ", "\0", "\ufeffa", "שלום", "👨‍👩‍👧", "\u200d" * 50_000, "x" * 500_000, "x. " * 100_000]
    with pytest.warns(UserWarning, match="cut there"):
        found = task("embed")(odd)
    assert np.isfinite(found).all()


def test_a_text_that_cannot_be_cut_loses_no_others(task):
    with pytest.raises(BatchError) as caught:
        task("embed")(["a", "x" * 600_000, "b", "!?" * 300_000])
    assert list(caught.value.errors) == [1, 3]
    assert [result is None for result in caught.value.results] == [False, True, False, True]


def test_rerank_and_classify_arguments(task):
    for bad, match in [
        (("q", []), "documents is empty"),
        ((["q"], ["a"]), "query is of type list"),
        (("q", ["a", None]), r"documents\[1\] is None"),
    ]:
        with pytest.raises(InputError, match=match):
            task("rerank")(*bad)
    classify = task("classify")
    for bad, match in [
        (([("a", "b"), "c"],), r"texts\[1\] is not a pair"),
        (([("a", None)],), r"texts\[0\]\[1\] is None"),
        ((["a", "b"], ["c"]), "1 second text for 2 texts"),
    ]:
        with pytest.raises(InputError, match=match):
            classify(*bad)
    with pytest.raises(InputError, match=r"function_to_apply is 'softmx'.*'softmax'"):
        classify("a", function_to_apply="softmx")
    with pytest.raises(InputError, match=r"aggregation is 'frist'.*'first'"):
        task("tag")("a", aggregation="frist")


def test_fill_mask_refuses_what_it_cannot_fill(task):
    fill = task("fill-mask")
    with pytest.raises(InputError, match=r"texts\[1\] holds no mask: write '\[MASK\]'"):
        fill(["a [MASK]", "a <mask>"])
    with pytest.raises(InputError, match=r"texts\[1\] has 603 tokens, but the checkpoint takes at most 512"):
        fill(["a [MASK]", "[MASK]" + " a" * 600])


def test_tag_reads_long_texts_through_windows(task, rng):
    tag = task("tag")
    text = words(rng, 900)
    offsets = tag.tokenizer(text, truncation=False).offsets[0][1:-1].tolist()
    assert len(offsets) > 1400
    tokens = tag(text, aggregation="none", ignore=())
    assert [[e.start, e.end] for e in tokens] == offsets

    # A token is judged by the window that sees more around it: near its ends the text has one window only.
    stride = (512 - 2) // 4
    windows = tag.tokenizer(text, overflow=True, stride=stride)
    scores = [np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in tag.model(*windows[:2])]
    sure = 510 - stride + stride - stride // 2
    first = [e.score for e in tokens[:sure]]
    np.testing.assert_allclose(first, scores[0][1 : sure + 1].max(-1), rtol=1e-5)
    np.testing.assert_allclose(tokens[sure].score, scores[1][1 + stride - stride // 2].max(), rtol=1e-5)
    for aggregation in ("simple", "first"):
        spans = [(e.start, e.end) for e in tag(text, aggregation=aggregation, ignore=())]
        assert spans == sorted(spans)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_batches_hold_every_row_once_within_the_budget(rng):
    lengths = rng.integers(1, 600, 500)
    found = list(batches(lengths, 1000))
    assert sorted(np.concatenate(found)) == list(range(500))
    padded = [len(index) * lengths[index].max() for index in found]
    assert max(padded) <= 1000
    assert sum(padded) < 1.02 * lengths.sum()
    assert [len(index) for index in batches(np.array([5000, 3]), 1000)] == [1, 1]


@pytest.mark.parametrize("name", HEADS)
def test_saved_is_loaded_as_the_same_task(task, name, tmp_path):
    again = zoo.load(zoo.save(task(name), tmp_path / name))
    assert type(again) is type(task(name)) is task_class(tasks_that_read("text")[name])
    np.testing.assert_allclose(
        call(again, ["a river", "runs"]), call(task(name), ["a river", "runs"]), rtol=1e-5, atol=1e-6
    )


def test_the_task_follows_from_the_architecture_or_the_caller(tiny):
    assert zoo.load(tiny("ForPreTraining")).name == "fill-mask"
    folder = tiny("ForMaskedLM")
    assert zoo.load(folder).name == "fill-mask"
    assert zoo.load(folder, task="embed")("a").shape == (32,)
    with pytest.raises(MissingWeightError, match="classifier"):
        zoo.load(tiny("ForPreTraining"), task="classify")
    with pytest.raises(
        UnsupportedError,
        match=r"BertForNextSentencePrediction, for which there is no task.*fill-mask \(BertForMaskedLM\).*load_model",
    ):
        zoo.load(tiny("ForNextSentencePrediction"))
    with pytest.raises(UnsupportedError, match=r"'fill-masks' is not one of .*; did you mean 'fill-mask'"):
        zoo.load(folder, task="fill-masks")


def test_a_progress_bar_only_where_it_is_wanted(task, capsys):
    task("embed")(["a"] * 50)
    assert capsys.readouterr().err == ""
    task("embed")(["a"] * 50, progress=True)
    assert "50/50" in capsys.readouterr().err


def test_importing_zoo_imports_no_task():
    code = "import sys, zoo; print([m for m in sys.modules if m.startswith(('zoo.tasks', 'tqdm', 'tokenizers'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_task_whose_source_is_gone_is_not_saved_in_part(tiny, tmp_path):
    shutil.copytree(tiny("ForMaskedLM"), tmp_path / "source")
    fill = zoo.load(tmp_path / "source")
    shutil.rmtree(tmp_path / "source")
    with pytest.raises(zoo.ZooError, match=r"source.* was removed"):
        zoo.save(fill, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_task_goes_through_a_pickle(tiny):
    embed = zoo.load(tiny("ForMaskedLM"), task="embed")
    again = pickle.loads(pickle.dumps(embed))
    np.testing.assert_allclose(again(["a river", "runs"]), embed(["a river", "runs"]), rtol=1e-5, atol=1e-6)


def test_a_scalar_array_is_no_list(tiny):
    with pytest.raises(InputError, match="texts is of type ndarray"):
        zoo.load(tiny("ForMaskedLM"), task="embed")(np.array("a"))


def test_texts_are_tokenized_in_bounded_blocks():
    half = "x" * (CHARACTERS_AT_ONCE // 2)
    sizes = [len(block) for block in text_blocks([half, half, "a", half * 3, "b", ("c", half), *["d"] * 5000])]
    assert sizes == [2, 1, 1, 2 + TEXTS_AT_ONCE - 2, 5000 - (TEXTS_AT_ONCE - 2)]


@pytest.mark.parametrize(
    ("name", "zoo_name"),
    [
        ("ner", "tag"),
        ("token-classification", "tag"),
        ("sentiment-analysis", "classify"),
        ("text-classification", "classify"),
        ("question-answering", "answer"),
        ("text-generation", "generate"),
        ("feature-extraction", "embed"),
    ],
)
def test_names_of_pipelines_are_understood(task, name, zoo_name):
    folder = task(zoo_name).checkpoint.folder
    assert zoo.load(folder, task=name).name == zoo_name


def test_a_pipeline_of_images_is_not_for_texts(task):
    folder = task("classify").checkpoint.folder
    with pytest.raises(UnsupportedError, match=r"'image-classification' is for .*, which reads texts: its tasks are"):
        zoo.load(folder, task="image-classification")
    with pytest.raises(
        UnsupportedError, match=r"'text-classificaton' is not one of .*did you mean 'text-classification'"
    ):
        zoo.load(folder, task="text-classificaton")


def test_each_task_takes_its_name_alone():
    names = [(kind.name, kind.reads) for kind in TASKS] + [
        (name, kind.reads) for kind in TASKS for name in kind.pipelines
    ]
    assert len(names) == len(set(names))
    assert {kind.name for kind in find_tasks("translation_en_to_de")} == {"translation"}
