"""Theory of both layers trained on the same samples.  docs/theory.md 21"""

from .evaluate_reused import IN_DOUBT, evaluate_reused
