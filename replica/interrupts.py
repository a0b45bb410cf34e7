"""Ctrl-C while a command is still being imported ends it at once, with the status 130.

A module of compiled code that is interrupted while it is loading may raise an error of its own.
"""

import os
import signal
import sys

# of ``python -m`` this is -m while the module is looked for
_name = os.path.basename(sys.argv[0]).partition(".")[0] if sys.argv else ""
_module = sys.orig_argv[sys.orig_argv.index("-m") + 1] if _name == "-m" else ""
_is_command = _name in ("replica", "replica-validate") or _module in ("replica", "validation")
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until ``cli.run`` can answer it
