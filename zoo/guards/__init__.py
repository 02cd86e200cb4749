"""Checks of untrusted files, before or while a library opens them."""
