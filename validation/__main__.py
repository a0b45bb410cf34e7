"""``python -m validation``."""

from .cli.main import main

main()
