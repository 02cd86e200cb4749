"""This package trains the split network, which tells the separators of a table's rows and columns."""
