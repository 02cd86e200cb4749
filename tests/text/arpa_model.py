"""A naive twin of kenlm: a model of n-grams in an ARPA file, by its methods that a search calls."""

from __future__ import annotations


class State:
    def __init__(self) -> None:
        self.words: tuple[str, ...] = ()


class ArpaModel:
    def __init__(self, text: str):
        self.scores: dict[tuple[str, ...], tuple[float, float]] = {}
        for line in text.splitlines():
            if line.count("\t"):
                score, words, *backoff = line.split("\t")
                self.scores[tuple(words.split())] = float(score), float(backoff[0]) if backoff else 0.0
        self.order = max(map(len, self.scores))

    def __contains__(self, word: str) -> bool:
        return (word,) in self.scores and word != "<unk>"

    def BeginSentenceWrite(self, state: State) -> None:  # noqa: N802
        state.words = ("<s>",)

    def NullContextWrite(self, state: State) -> None:  # noqa: N802
        state.words = ()

    def BaseScore(self, before: State, word: str, after: State) -> float:  # noqa: N802
        word = word if word in self else "<unk>"
        after.words = (*before.words, word)[-(self.order - 1) :]
        return self.score(before.words, word)

    def score(self, before: tuple[str, ...], word: str) -> float:
        if (found := self.scores.get((*before, word))) is not None:
            return found[0]
        return self.scores.get(before, (0.0, 0.0))[1] + self.score(before[1:], word)
