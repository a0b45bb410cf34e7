"""The command ``replica-validate``."""

from .main import main

__all__ = ["main"]
