"""Checks beside the tests: kernels without a GPU, random configs, fuzzing, kills, releases."""
