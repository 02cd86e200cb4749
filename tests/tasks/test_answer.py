"""Answer against a naive twin: every span of every window, in transformers, one at a time."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import BatchError, InputError

QUESTION = "Where does he live?"
SHORT = "My name is Wolfgang and I live in Berlin, don't you know? 😀 Zürich is far."
LONG = " ".join(
    f"In {year} Mr. Smith-{year % 7} lived in the town of Unterammergau number {year * 3}."
    for year in range(1900, 1960)
)


def naive(folder, question, context, max_answer_len=15, whole_words=True, window=384, stride=128):
    """{(start, end): best score}, and the score of no answer."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    windows = tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=window,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    found, null = {}, 1.0
    for k, ids in enumerate(windows["input_ids"]):
        inputs = {n: torch.tensor([windows[n][k]]) for n in ("attention_mask", "token_type_ids") if n in windows}
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids]), **inputs)
        sides = windows.sequence_ids(k)
        may = np.array([side == 1 for side in sides])
        may[0] = True
        p = []
        for logits in (out.start_logits, out.end_logits):
            z = np.exp(np.where(may, logits[0].double().numpy(), -np.inf))
            p.append(z / z.sum())
        null = min(null, p[0][0] * p[1][0])
        places = windows["offset_mapping"][k]
        if whole_words:
            words = windows.word_ids(k)
            places = [windows.word_to_chars(k, w, 1) if s == 1 else None for w, s in zip(words, sides, strict=True)]
        for i in range(1, len(ids)):
            for j in range(i, min(i + max_answer_len, len(ids))):
                if sides[i] == sides[j] == 1:
                    a, b = places[i][0], places[j][1]
                    found[a, b] = max(found.get((a, b), 0), p[0][i] * p[1][j])
    return found, null


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request, reference):
    return reference(request.param, "ForQuestionAnswering")


@pytest.mark.parametrize("context", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("whole_words", [True, False])
def test_spans_equal_the_naive_twins(folder, context, whole_words):
    answer = zoo.load(folder)
    found, null = naive(folder, QUESTION, context, whole_words=whole_words)
    wanted = sorted(found.items(), key=lambda item: -item[1])[:8]
    ours = answer(QUESTION, context, top_k=8, whole_words=whole_words)
    np.testing.assert_allclose([s.score for s in ours], [score for _, score in wanted], rtol=1e-3)
    assert [(s.start, s.end) for s in ours] == [place for place, _ in wanted]
    assert all(s.text == context[s.start : s.end] for s in ours)
    assert answer(QUESTION, context, whole_words=whole_words) == ours[0]

    everything = answer(QUESTION, context, top_k=10**6, handle_impossible=True, max_answer_len=2)
    (nothing,) = [s for s in everything if s.end == 0]
    np.testing.assert_allclose(nothing.score, null, rtol=1e-3)
    short, _ = naive(folder, QUESTION, context, max_answer_len=2)
    assert {(s.start, s.end) for s in everything} == {*short, (0, 0)}
    assert [s.score for s in everything] == sorted((s.score for s in everything), reverse=True)


@pytest.mark.parametrize(("window", "stride"), [(96, 32), (200, 7)])
def test_windows_are_those_that_are_asked_for(folder, window, stride):
    answer = zoo.load(folder)
    found, _ = naive(folder, QUESTION, LONG, window=window, stride=stride)
    wanted = sorted(found.items(), key=lambda item: -item[1])[:5]
    ours = answer(question=QUESTION, context=LONG, top_k=5, max_seq_len=window, doc_stride=stride)
    assert [(s.start, s.end) for s in ours] == [place for place, _ in wanted]
    np.testing.assert_allclose([s.score for s in ours], [score for _, score in wanted], rtol=1e-3)
    nothing = answer(QUESTION, SHORT, top_k=10**6, handle_impossible_answer=True)
    assert nothing == answer(QUESTION, SHORT, top_k=10**6, handle_impossible=True)
    for name in ("doc_stride", "max_seq_len"):
        with pytest.raises(InputError, match=f"{name} is 0"):
            answer(QUESTION, LONG, **{name: 0})


def test_one_question_or_one_context_for_many(folder):
    answer = zoo.load(folder)
    contexts, questions = [SHORT, LONG, "Berlin."], ["Who?", "Where is it?", "When was that?"]
    for ours, q, c in [
        (answer(QUESTION, contexts), [QUESTION] * 3, contexts),
        (answer(questions, SHORT), questions, [SHORT] * 3),
        (answer(questions, contexts), questions, contexts),
    ]:
        alone = [answer(question=a, context=b) for a, b in zip(q, c, strict=True)]
        assert [s[2:] for s in ours] == [s[2:] for s in alone]
        assert [s.score for s in ours] == pytest.approx([s.score for s in alone], rel=1e-5)


def test_bad_input(folder):
    answer = zoo.load(folder)
    for arguments, match in [
        ((QUESTION, ""), "context holds no word"),
        ((QUESTION, [SHORT, "", SHORT]), r"context\[1\] holds no word"),
        (([QUESTION], ["a", "  "]), "context: 2 contexts for 1 questions"),
        (("why " * 400, SHORT), "texts\\[0\\]|no room"),
        ((None, SHORT), "question is None"),
        ((QUESTION, ["a", 7]), r"context\[1\] is of type int"),
    ]:
        with pytest.raises(InputError, match=match):
            answer(*arguments)
    with pytest.raises(InputError, match="top_k is 0"):
        answer(QUESTION, SHORT, top_k=0)


def test_a_context_without_words_is_found_before_anything_is_computed(tiny, monkeypatch):
    answer = zoo.load(tiny("ForQuestionAnswering"))
    with monkeypatch.context() as patch:
        patch.setattr(answer, "model", None)
        with pytest.raises(InputError, match="context holds no word"):
            answer(QUESTION, "\u200b")
    with pytest.raises(BatchError, match=r"context\[1\] holds no word") as e:
        answer(QUESTION, [SHORT, " \n", ""])
    assert e.value.results == [answer(QUESTION, SHORT), None, None]
    found = answer(QUESTION, [SHORT, ""], handle_impossible=True)
    assert found[1] == ("", 1.0, 0, 0)
    assert answer(QUESTION, "?!").text in ("?", "!", "?!")
