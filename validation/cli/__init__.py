"""The command ``replica-validate``."""

from .main import main
