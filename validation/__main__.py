"""``python -m validation``."""

from .cli import main

main()
