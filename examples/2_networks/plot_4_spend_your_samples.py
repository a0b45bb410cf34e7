r"""
How to spend your samples
=========================

With N samples in all, both layers may be trained on all of them, or each on some.
``sample_allocation`` has the test error of every such use at its own best penalty, by the theory
of a readout on samples that the step has seen.  Here all for both layers is best, although the
readout is then fitted to samples that its features already know.
"""

import replica

step = replica.GradientStep(student="tanh", target="sin", alpha0=1, eta=3.0)
uses = replica.sample_allocation(step, budget=4, parts=[0.25, 0.5, 0.75])
uses.plot()
print(uses)

# %%
# The penalty matters more than usual: the best one of reused samples is smaller than that of as
# many fresh ones, and so is their training error at the same penalty.

both = uses.best
reused = replica.GradientStep(student="tanh", target="sin", alpha0=both.alpha0, eta=3.0)
for reuse in (1.0, 0.0):
    model = reused.network(beta=1.0, reuse=reuse)
    print(replica.solve(model, alpha=both.alpha, lam=both.lam))
