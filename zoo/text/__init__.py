"""Tokenizers, built from whichever files a checkpoint has, and chat templates."""
