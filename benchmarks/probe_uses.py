"""What probes are asked for: a penalty, and the error at another number of samples.

Both from rows in hand, drawn from all rows of a data set, beside what scikit-learn makes of the
same rows; the truth is what refits give.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeCV

import replica
from validation import simulate
from validation.figures.samples import DRAWN_SPLITS, along, power_law

from .pages import file_of, kept, mean_and_error, paragraphs, table

ALPHAS = np.geomspace(1e-2, 1e5, 57)  # scikit-learn's penalties, p lam
HAND = {"wine": 100}  # rows in hand to choose a penalty, 300 unless given
PATIENCE = 600.0  # seconds of a point or a search
SUBSETS = 4  # of every number of samples, in each hand
IN_HAND = {  # rows in hand: three for each feature in either class, which Gaussian classes need
    "digits": (450, 900),
    "breast cancer": (300,),
    "diabetes": (100, 200),
    "MNIST, random layer": (750, 950),
    "MNIST, trained layer": (750, 950),
}
SEVERAL = {  # with several classes: principal components that are features, and rows in hand
    "digits": (20, 900),
    "wine": (5, 80),
    "MNIST, trained layer": (20, 950),
}
LAMS = 0.01, 0.1
REFITS = 100  # for the truth


def hand(of, count, draw):
    """Rows in hand, and all others, as their places."""
    order = np.random.default_rng([count, draw]).permutation(len(of.features))
    return order[:count], order[count:]


def numbers(labels):
    """Labels as a readout is trained on them."""
    return replica.FeatureSample(features=np.ones((len(labels), 1)), labels=labels).labels


def over_penalties(features, labels, unseen, wanted, alphas):
    """Test errors of ridge regression for each penalty, (A,), intercept included."""
    centre, mean = features.mean(axis=0), labels.mean(axis=0)
    left, sizes, right = np.linalg.svd(features - centre, full_matrices=False)
    shrink = sizes / (sizes**2 + np.asarray(alphas)[:, None])
    y = (labels - mean).reshape(len(labels), -1)
    weights = np.einsum("ak,kc->akc", shrink, left.T @ y)
    fitted = np.einsum("nk,akc->anc", (unseen - centre) @ right.T, weights) + mean
    wanted = wanted.reshape(len(wanted), -1)
    return ((fitted - wanted) ** 2).sum(axis=2).mean(axis=1)


def chosen(of, draw):
    """Test errors at each number of samples for three penalties, and then for all ALPHAS."""
    count = HAND.get(of.name, 300)
    own, others = hand(of, count, draw)
    y, sample = numbers(of.labels), of.sample(two=False, rows=own)
    given = RidgeCV(alphas=ALPHAS).fit(of.features[own], y[own]).alpha_
    found = []
    for n in penalty_sizes(count):
        best = (
            replica.optimal_lambda(sample, samples=n, time_limit=PATIENCE).lam
            * of.features.shape[1]
        )
        each = []
        for subset in range(SUBSETS if n < count else 1):
            rows = np.random.default_rng([n, draw, subset]).permutation(own)[:n]
            refitted = RidgeCV(alphas=ALPHAS).fit(of.features[rows], y[rows]).alpha_
            asked = [best, given, refitted, *ALPHAS]
            unseen = of.features[others], y[others]
            each.append(over_penalties(of.features[rows], y[rows], *unseen, asked))
        found.append(np.mean(each, axis=0).tolist())
    return found


def penalty_sizes(count):
    """Numbers of samples for which a penalty is chosen from so many rows."""
    return [round(count * part) for part in (0.1, 0.3, 1)]


def penalties(data, scale, store):
    """The section on the penalty."""
    rows, excess = [], []
    for of in data:
        count = HAND.get(of.name, 300)
        found = [
            kept(file_of(store, f"{of.name} penalty {draw}"), partial(chosen, of, draw))
            for draw in range(scale.hands)
        ]
        errors = np.array(found)  # hands x numbers of samples x three penalties and all
        for k, n in enumerate(penalty_sizes(count)):
            best = 3 + errors[:, k, 3:].mean(axis=0).argmin()
            least = errors[:, k, best]
            mean, stderr = mean_and_error(100 * (errors[:, k, :3] - least[:, None]) / least.mean())
            excess.append(mean)
            each = [f"{x:+.1f} ± {e:.1f}" for x, e in zip(mean, stderr, strict=True)]
            cells = [of.name, str(count), str(n), f"{ALPHAS[best - 3] / of.features.shape[1]:.2g}"]
            rows.append([*cells, f"{least.mean():.4f}", *each])
        print(of.name, "penalty", flush=True)
    mean = [f"{x:+.1f}" for x in np.mean(excess, axis=0)]
    heads = ["data", "in hand", "n", "best lam", "its test error"]
    heads += ["optimal_lambda", "RidgeCV in hand", "RidgeCV of n"]
    said = paragraphs(
        "## Which penalty",
        "Of a data set some rows are in hand, and n of them are to train; the test error is that "
        f"on all other rows, {scale.hands} draws of the rows in hand. *Best* is one penalty for "
        "all draws, which takes the other rows to know. In per cent, how much larger the test "
        "error is than that: with `optimal_lambda` of the rows in hand for n samples; with the "
        "penalty that RidgeCV takes for all rows in hand; and with RidgeCV on the n samples "
        "themselves.",
        table(heads, [*rows, ["all", "", "", "", "", *mean]]),
    )
    return said, ""


def sizes_of(of, count):
    """Numbers of samples at which errors are predicted from rows in hand: of these, and beyond."""
    inside = [round(count * part) for part in (0.1, 0.3, 1)]
    return inside, [round(n) for n in np.geomspace(count, 0.9 * len(of.features), 4)[1:]]


def components(of, width):
    """The data set with its first principal components as features."""
    axes = np.linalg.svd(of.features, full_matrices=False)[2]
    return of._replace(features=of.features @ axes[:width].T)


def settings(data):
    """Data sets, rows in hand, whether labels are two classes, and names in the store."""
    for of in data:
        for count in IN_HAND.get(of.name, ()):
            yield of, count, not of.real, f"{of.name} {count}"
    for of in data:
        if of.name in SEVERAL:
            width, count = SEVERAL[of.name]
            own = components(of, width)._replace(name=f"{of.name}, {width} components")
            yield own, count, False, f"{own.name} {count}"


def truth(of, sizes, two):
    """Errors of refits on random parts of all rows, and their standard errors, (2, L, n)."""
    sample, name = of.sample(two=two), "test_error" if of.real else "classification_error"
    each = []
    for n in sizes:
        found = simulate(sample, samples=[n], lam=LAMS, seeds=REFITS, rng=n, workers=1)
        each.append(mean_and_error(found.errors[name][:, 0]))
    return np.transpose(each, (1, 2, 0)).tolist()


def predicted(of, count, two, draw):
    """Errors from rows in hand, (L, ways, n)."""
    own, _ = hand(of, count, draw)
    sample = of.sample(two=two, rows=own)
    gaussian = replace(sample, strata=np.zeros(count) if of.real else sample.class_of_row)
    name = "test_error" if of.real else "classification_error"
    scoring = "neg_mean_squared_error" if of.real else None
    inside, beyond = sizes_of(of, count)
    found = []
    for lam in LAMS:
        at = {"lam": lam, "time_limit": PATIENCE}
        rows = replica.learning_curve(sample, samples=inside, **at)[name].values
        classes = replica.learning_curve(gaussian, samples=[count, *beyond], **at)[name].values
        alpha = lam * of.features.shape[1]
        estimator = Ridge(alpha=alpha) if of.real else RidgeClassifier(alpha=alpha)
        y = sample.labels if of.real else sample.class_of_row
        law = power_law(estimator, of.features[own], y, scoring)
        theory = np.append(rows, classes[1:])
        anchored = np.append(rows, classes[1:] * rows[-1] / classes[0])
        found.append([x.tolist() for x in (theory, anchored, along(law, [*inside, *beyond]))])
    return found


def extrapolation(data, scale, store):
    """The section on errors at other numbers of samples."""
    rows, squares = [], {}
    for of, count, two, name in settings(data):
        inside, beyond = sizes_of(of, count)
        sizes = [*inside, *beyond]
        known = kept(file_of(store, f"{name} truth"), partial(truth, of, sizes, two))
        mean, stderr = np.array(known)
        found = np.array(
            [
                kept(
                    file_of(store, f"{name} hand {draw}"), partial(predicted, of, count, two, draw)
                )
                for draw in range(scale.hands)
            ]
        )  # hands x L x ways x n
        off = (found / mean[:, None] - 1) ** 2
        labels = "real" if of.real else "2" if two else str(len(np.unique(of.labels)))
        kind = "several classes" if not two and not of.real else "two classes or real"
        for i, lam in enumerate(LAMS):
            # root mean squares by rows and power law in hand, and by all three ways beyond
            within = off[:, i][:, [0, 2], : len(inside)].mean(axis=(0, 2))
            own = np.append(within, off[:, i, :, len(inside) :].mean(axis=(0, 2)))
            squares.setdefault(kind, []).append(own)
            largest = 100 * (found[:, i, :, -1] / mean[i, -1] - 1)
            each = zip(*mean_and_error(largest), strict=True)
            cells = [of.name, labels, str(count), f"{lam:g}", *in_per_cent(own)]
            cells += [str(sizes[-1]), f"{mean[i, -1]:.4f} ± {stderr[i, -1]:.4f}"]
            rows.append(cells + [f"{x:+.0f} ± {e:.0f}" for x, e in each])
        print(name, "in hand", flush=True)
    for kind, each in squares.items():
        rows.append([f"all, {kind}", "", "", "", *in_per_cent(np.mean(each, axis=0)), *[""] * 5])
    heads = ["data", "classes", "in hand", "lam", "n in hand: theory", "power law"]
    heads += ["beyond: Gaussian classes", "anchored", "power law"]
    heads += ["largest n", "refits", "Gaussian, %", "anchored, %", "power law, %"]
    said = paragraphs(
        "## Errors at other numbers of samples",
        f"From {scale.hands} draws of rows in hand, ridge regression. Root mean square differences "
        f"from refits on all rows ({REFITS} draws), in per cent: at n from a tenth of the rows in "
        "hand to all of them, and beyond them at three n up to .9 N. The theory goes row by row in "
        "hand, and beyond them *anchored*: Gaussian classes times the ratio, at all rows in hand, "
        "of the error by rows to that by Gaussian classes. (Of real labels, diabetes, it is that "
        "of the one stratum that is given, without the ratio.) Gaussian classes need three rows of "
        "each class for each feature, so that of ten classes all features are too many: *several "
        "classes* have the first principal components of all rows as features. The power law is "
        "a + b n^-c, through scikit-learn's learning_curve on the same rows "
        f"({DRAWN_SPLITS} splits, 8 n from 15 to four fifths). Last, the mean differences at the "
        "largest n. Wine with two classes has too few rows.",
        table(heads, rows),
    )
    return said, ""


def in_per_cent(squares):
    """Their roots, as text."""
    return [f"{100 * np.sqrt(x):.1f}" for x in squares]
