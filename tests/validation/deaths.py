"""Tasks that kill the process they run in; workers import this module and little else."""

import os
import signal


class DieOnce:
    """A task that kills its own process the first time a worker runs it."""

    def __init__(self, marker):
        self.marker = marker

    def __call__(self, cell):
        if cell == 2:
            try:
                self.marker.touch(exist_ok=False)
            except FileExistsError:
                return cell
            os.kill(os.getpid(), signal.SIGKILL)
        return cell


def die(cell):
    os.kill(os.getpid(), signal.SIGKILL)
