"""``python -m replica``."""

from .cli.main import main

main()
