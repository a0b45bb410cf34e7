"""Python in a process of its own."""

import os
import subprocess
import sys

from tests.places import ROOT


def python(*arguments, variables=(), **options):
    """The ended process of a Python with these arguments, that finds this checkout and has some
    environment variables changed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | dict(variables)
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, **options
    )
