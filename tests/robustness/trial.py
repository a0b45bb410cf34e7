"""The trial of bad inputs: ``python -m tests.robustness.trial [THEME ...]`` runs them all, says
what failed, and counts.  Minutes."""

import collections
import sys

from .commands import run_command
from .inputs import Input, all_inputs


def judge(given: Input) -> str:
    """What went wrong with one bad input; empty where it was answered as it should be."""
    ended = run_command(given.arguments, given.files)
    if ended.fault:
        return f"{ended.fault} ({ended.err[-300:]!r})"
    if given.refused and ended.status != 2:
        return f"status {ended.status} where it should be refused ({ended.err[-200:]!r})"
    return ""


def main(themes: list[str]) -> int:
    """Run the inputs of the themes, or of all; how many failed."""
    tried, failed = collections.Counter(), collections.Counter()
    for given in all_inputs():
        if themes and given.theme not in themes:
            continue
        tried[given.theme] += 1
        fault = judge(given)
        if fault:
            failed[given.theme] += 1
            line = " ".join(given.arguments)
            print(f"{given.theme}: {line[:160]!r} {str(given.files)[:160]}: {fault}", flush=True)
    for theme, count in tried.items():
        print(f"{theme:15s} {count:5d} tried, {failed[theme]} failed")
    print(f"{'together':15s} {tried.total():5d} tried, {failed.total()} failed")
    return failed.total()


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
