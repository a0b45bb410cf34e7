"""Both layers trained on the same samples.  docs/theory.md 21"""
