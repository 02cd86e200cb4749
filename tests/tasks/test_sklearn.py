"""docs/tasks.md: vectors in a pipeline of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

import zoo

TEXTS = ["a good day", "a great day", "very nice", "a bad day", "an awful day", "very poor"] * 3
LABELS = [1, 1, 1, 0, 0, 0] * 3


def test_vectors_are_features(reference):
    reason = "needs scikit-learn, whose pipelines take the vectors"
    pipeline = pytest.importorskip("sklearn.pipeline", reason=reason)
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.preprocessing import FunctionTransformer

    embed = zoo.load(reference("bert", "Model"), task="embed")
    classify = pipeline.make_pipeline(FunctionTransformer(embed), LogisticRegression())
    classify.fit(TEXTS, LABELS)
    plain = LogisticRegression().fit(embed(TEXTS), LABELS)
    np.testing.assert_allclose(classify.predict_proba(TEXTS[:4]), plain.predict_proba(embed(TEXTS[:4])), rtol=1e-4)
    found = cross_val_score(classify, np.array(TEXTS, object), LABELS, cv=3)  # by copies of the task
    np.testing.assert_allclose(found, cross_val_score(LogisticRegression(), embed(TEXTS), LABELS, cv=3))
