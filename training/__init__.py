"""The small models that ship with zoo, trained from nothing on pictures that we render ourselves.

`python -m training reader|structure|detect` trains one, and goes on where it was stopped; `python -m training.evaluate`
scores it on fonts that it never saw; `python -m training.export` writes it as a checkpoint that zoo and transformers
load.
"""
