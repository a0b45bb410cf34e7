"""Ctrl-C while a command is still being imported ends it at once, with the status 130.

A module of compiled code that is interrupted while it is loading may raise an error of its own.
"""

import os
import signal
import sys

_program = sys.orig_argv[2:3] if sys.orig_argv[1:2] == ["-m"] else sys.orig_argv[1:2]
_is_command = {os.path.basename(name).partition(".")[0] for name in _program} & {
    "replica",
    "replica-validate",
    "validation",
}
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until ``cli.run`` can answer it
