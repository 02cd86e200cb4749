"""Random configs of every family, zoo beside transformers: numbers are equal, or the field is refused by name.

    python -m checks.random_configs                                       3,000 pairs of all families
    python -m checks.random_configs --family bert t5 --pairs 200          of these families
    python -m checks.random_configs --seconds 3600 --jobs 4 --log pairs   bounded, parallel; again: goes on where it was
    python -m checks.random_configs --seed 7 --family bert --number 31    one pair, with all that it found

A pair is a random checkpoint of parity's with one to three fields of its config changed, in the spelling of version 4
or of 5 of transformers, which writes the weights that such a config asks for.  Both read that folder and are called
with the same inputs, they generate, read pictures, or transformers reads what `zoo.save` wrote:

    equal      within parity's limits, or, beyond them, as near to transformers in float64 as transformers in float32 is
    refused    zoo says which field, option or argument it does not take
    differs    other numbers, tokens, pixels or tensors, without a word
    raises     an error that is none of zoo's, or one of zoo's that does not name what was changed

The last two are failures.  They are printed with those changes alone that it takes, and with the command that makes the
pair again.  What transformers itself cannot build or run is no pair.
"""
