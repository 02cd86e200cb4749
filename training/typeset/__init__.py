"""This package renders training pages with real layout engines: Chromium, LaTeX and LibreOffice.

The boxes of cells and words come from the engine's own layout.

`python -m training.typeset.render FOLDER` renders pages into a folder; `python -m training.typeset.train` goes on with
a model on a mix of these and of what training/ draws; `python -m training.typeset.score` scores on held-out pages.
"""
