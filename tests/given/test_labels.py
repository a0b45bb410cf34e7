"""Labels that may be classes or numbers: which they are taken for, and what is asked about."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from replica import (
    FeatureSample,
    InvalidArgument,
    solve,
)


class Unmade:
    """A sparse tensor, as of torch, which no array is made of by itself."""

    def __array__(self, *args, **kwargs):
        raise TypeError("to_dense() first")

    to_dense = __array__


ONE_HOT = np.eye(3)[np.arange(60) % 3]


TWICE = np.maximum(ONE_HOT, np.eye(60, 3, -4))  # its rows 4, 5 and 6 have two ones, or one


LABELS = [
    ([0, None, 1] * 20, r"leave out rows .*\(pandas.notna\(labels\) .* row 1, the first of 20"),
    ([0, np.nan, 1] * 20, r"leave out .*\(numpy.isfinite\(labels\) .*others\), got 'nan in row 1"),
    (
        ["a", "", "b"] * 20,
        r"leave out rows .*classes=np.unique\(labels\).* in row 1, the first of 2",
    ),
    (
        [-1, 0, 1, 2] * 15,
        r"leave out the rows of -1: features\[labels != -1\], .*, got '-1, .* class, in 15 rows",
    ),
    (
        [*map(str, range(58)), "?", "$151"],
        r"pandas.to_numeric\(labels, errors='coerce'\).*\), or given with classes=np.unique\(labels"
        r"\) if they are names, got \"'\?' in row 58, the first of 2 such rows\"",
    ),
    (np.arange(60), r"classes=np.unique\(labels\) if .* classes=\(\) if .* more than 20"),
    ([f"{i}" for i in range(60)], "labels must be given with .*60 names or whole numbers"),
    (1j * np.arange(60), "labels must be"),
    (np.arange(60).astype("datetime64[D]"), "labels must be"),
    (np.full((60, 3), np.nan), r"leave out rows without .* row 0, the first of 60"),
    (np.arange(60) % 3 + 0.0, r"classes=np.unique\(labels\) if .* classes=\(\) if they"),
    (np.arange(60) % 2 + 1.0, "got '2 whole numbers of type float'"),
    (np.eye(3)[np.arange(60) % 3], r"classes=range\(3\) if .* classes=\(\) if"),
    (np.r_[np.ones(30), np.full(30, np.nan)], "nan in row 30, the first of 30"),
    (["a", None] * 30, r"leave out rows .*\(pandas.notna\(labels\) .*, got 'None in row 1"),
    (["a", np.nan] * 30, r"leave out rows .*\(pandas.notna\(labels\) .*, got \"'nan' in row 1"),
    (["a", 1] * 30, "labels must be all text, one name a row, or all numbers"),
    (["a"] * 60, "labels must be of two classes or more, got 'a in all rows'"),
    (np.arange(60) % 4 - 1, "-1, often the code of a missing class, in 15 rows"),
    ([2] * 60, "labels must be of two classes or more"),
    (ONE_HOT > 0, r"classes=range\(3\) if they are .* got 'one 1 in each row'"),
    (np.arange(59), r"for each of the 60 rows of features, got 'shape \(59,\)"),
    (np.arange(60)[None] % 3, r"for each of the 60 rows of features, got 'shape \(1, 60\)'"),
    (ONE_HOT.T, r"for each of the 60 rows of features, got 'shape \(3, 60\)'"),
    (ONE_HOT[..., None], "an array with 2 axes"),
    (None, r"one for each of the 60 rows of features, got None"),
    ("y.npy", r"one for each of the 60 rows of features, got 'y.npy'"),
    (csr_matrix(np.eye(2)[[0] * 60]), "one for each of the 60 rows of features"),
    (np.ones(60) * 1j, "real numbers, not complex ones, dates or times, got 'dtype complex128'"),
    (np.full(60, "2020", "datetime64[D]"), "real numbers, not .*times, got 'dtype datetime64"),
    (["1", "NA", "2"] * 20, r"leave out rows .*\(classes=.*, got \"'NA' in row 1, the"),
    ([1, np.inf] * 30, r"leave out .*\(numpy.isfinite\(labels\)"),
    (np.array([1, np.inf] * 30, dtype=object), "labels must be"),
    (np.ma.array(["a", "b"] * 30, mask=[0, 1] * 30), "leave out"),
    ([1, 2, "two"] * 20, "all text, one name a row, or all numbers"),
    (np.ma.array(np.arange(60) % 3, mask=[0, 1] * 30), "None in row 1, the first of 30"),
    ([["a", "b"]] * 60, "all text, one name a row"),
    (np.full(60, 2.5), "of more than one value, got '2.5 in all 60 rows'"),
    (np.ones((60, 2)) * [1, 2.5], r"than one value, got '\[1. +2.5\]"),
    ([], r"one for each of the 60 rows of features, got 'shape \(0,\)'"),
    ([[0], [1, 2]] * 30, "an array of numbers, all rows of one length, got"),
    (np.array([[0], [1, 2]] * 30, dtype=object), "or all numbers"),
    ([Decimal("1.5"), Decimal("2.5")] * 30, "or all numbers"),
    ([date(2020, 1, 1)] * 60, "or all numbers"),
    (np.arange(60).astype("timedelta64[D]"), "real numbers, not .*times, got 'dtype timedelta"),
    (np.zeros(60, [("y", int)]), "an array of numbers, as"),
    (iter(range(60)), "for each of the 60 rows"),
    ({"y": 1}, "for each of the 60 rows"),
    (Unmade(), "array of numbers, all rows of one length"),
    (np.ma.masked_equal(np.eye(3)[np.arange(60) % 3], 1), "leave out rows without labels"),
    ([("a", 1)] * 60, "one name a row"),
]


FEATURES = [
    (np.ones((60, 2)) * 1j, "real numbers, not complex ones, .*got 'dtype complex128'"),
    (csr_matrix(np.ones((60, 2))), r"as features.toarray\(\) is, got 'a sparse matrix'"),
    (np.diag([1, np.nan])[[0, 1] * 30], r"'nan at \[1, 1\], the first of 30'"),
    (np.ones((60, 2, 2)), r"2 axes and numbers in it, got 'shape \(60, 2, 2\)'"),
    (np.ones(60), r"2 axes and numbers in it, got 'shape \(60,\)'"),
    (np.ones((2, 60)), r"the 2 rows of features: features look .*features.T, got 'shape \(60,\)'"),
    ([], r"2 axes and numbers in it, got 'shape \(0,\)'"),
    (None, "2 axes and numbers in it, got None"),
    ("F.csv", "an array of numbers, as.*got 'F.csv'"),
    ([[1], [1, 2]] * 30, "an array of numbers, all rows of one length, got"),
    ([[1, "a"]] * 60, r"an array of numbers, as.*\"'a' at \[0, 1\]"),
    (np.ma.masked_equal(np.ones((60, 1)), 1), "without masked values .*got 'masked values'"),
    (np.full((60, 1), np.nan), r"keep the rows of numpy.isfinite\(features\).all\(axis=1\)"),
]


BOTH = [
    (dict(classes=["a", "b"]), "classes must be those of the labels"),
    (dict(classes=["0", "1", "2"]), "classes must be those of the labels"),
    (dict(classes=[0, 1, 2, 3]), "classes must be those of the labels, each once: 0, 1, 2,"),
    (dict(classes=3), "classes must be text or numbers"),
    (dict(classes=[None, "a", 2]), "classes must be text or numbers"),
    (dict(classes=[[1], [1, 2]]), "classes must be text or numbers"),
    (dict(labels=np.eye(3)[[0] * 60], classes=["a", "a", "b"]), "each once"),
    (dict(labels=np.ones((60, 3)), classes=["a", "b", "c"]), "classes must be left out unless"),
    (dict(labels=np.eye(3)[np.arange(60) % 3], classes=["a", "b"]), "rows of each of C classes"),
    (dict(labels=TWICE, classes=range(3)), "classes must be left out unless"),
    (dict(labels=np.eye(4)[np.arange(60) % 3], classes=range(4)), "rows of each of C classes"),
    (dict(labels=ONE_HOT.T, classes=range(3)), r"the 60 rows of features, got 'shape \(3, 60\)'"),
    (dict(labels=np.full(60, 2), classes=()), "of more than one value, got '2.0 in all 60"),
    (
        dict(labels=np.arange(60) * 2 // 3, classes=range(40)),
        r"two rows .* got '40 classes of 60 ro",
    ),
    (dict(features=np.arange(60) % 3, labels=np.ones((60, 2))), r"of labels \(60, 2\): swap featu"),
]


CASES = [
    *((dict(labels=labels), message) for labels, message in LABELS),
    *((dict(features=features), message) for features, message in FEATURES),
    *BOTH,
]


@pytest.mark.parametrize(("change", "message"), CASES)
def test_what_may_be_classes_or_numbers_is_asked_about(change, message):
    given = dict(features=np.ones((60, 2)), labels=np.arange(60) % 3)
    with pytest.raises(InvalidArgument, match=message):
        FeatureSample(**given | change)


def test_what_pandas_has_not_is_named():
    pandas = pytest.importorskip("pandas")
    features, names = np.ones((60, 2)), [f"c{k % 3}" for k in range(59)]
    for values, dtype in (
        ([*range(59)], "Int64"), ([True, False] * 29 + [True], "boolean"), (names, "string"),
        (names, "category"), (names, object), ([k % 3 for k in range(59)], "category"),
    ):  # fmt: skip
        told = "leave out rows without labels.* in row 59, the first of 1 "
        with pytest.raises(InvalidArgument, match=told):
            FeatureSample(features=features, labels=pandas.Series([*values, None], dtype=dtype))
    table = pandas.DataFrame(features, columns=["a", "b"])
    for entry in ("x", pandas.Timestamp("2020"), pandas.NA):
        told = r"an array of numbers, as.* at \[0, 2\]"
        with pytest.raises(InvalidArgument, match=told):
            FeatureSample(features=table.assign(c=[entry] * 60), labels=np.arange(60) % 2)
    turned = pandas.Series(np.arange(60) % 2)[::-1]
    with pytest.raises(InvalidArgument, match=r"features: labels.loc\[features.index\]"):
        FeatureSample(features=table, labels=turned)
    assert FeatureSample(features=table, labels=turned.loc[table.index]).binary
    of_others = turned.set_axis([f"row {k}" for k in range(60)])
    assert FeatureSample(features=table, labels=of_others).binary  # whose own index is a range
    with_gap = pandas.Index([np.nan, *range(1, 60)])  # of which one entry is not equal to itself
    same_index = np.arange(60) % 2
    assert FeatureSample(
        features=table.set_axis(with_gap), labels=pandas.Series(same_index, index=with_gap.copy())
    ).binary
    told = r"numpy.array\(labels\) if .*index of other rows"
    with pytest.raises(InvalidArgument, match=told):
        FeatureSample(features=table.set_axis([*range(5, 65)]), labels=of_others)
    unused = pandas.Categorical([*names, "c0"], categories=["c0", "c1", "c2", "unused"])
    assert FeatureSample(features=features, labels=unused).classes == ("c0", "c1", "c2")
    dummies = pandas.get_dummies(pandas.Series([*names, "c0"]))
    told = FeatureSample(features=features, labels=dummies, classes=list(dummies))
    assert told.classes == ("c0", "c1", "c2")
    with pytest.raises(InvalidArgument, match=r"given with classes=list\(labels\) if they are"):
        FeatureSample(features=features, labels=dummies)


def test_features_that_are_true_or_false_are_1_and_0():
    features = np.arange(180).reshape(60, 3) % 7 > 2
    sample = FeatureSample(features=features, labels=np.arange(60) % 2)
    np.testing.assert_array_equal(sample.features, features.astype(float))


def test_vectors_of_0_and_1_are_numbers():
    """Several labels of each row, not one class."""
    several = np.random.default_rng(0).integers(0, 2, (60, 5))
    assert FeatureSample(features=np.ones((60, 2)), labels=several).outputs == 5
    for classes in ((), None):
        sample = FeatureSample(features=np.ones((60, 2)), labels=TWICE, classes=classes)
        assert sample.outputs == 3


def test_what_is_asked_about_is_told():
    features, of = np.ones((60, 2)), np.arange(60) % 3
    signs = FeatureSample(features=features, labels=of - 1, classes=np.unique(of - 1))
    assert signs.classes == (-1, 0, 1)
    for labels, outputs in ((of + 0.0, 1), (of, 1), (np.eye(3)[of], 3)):
        numbers = FeatureSample(features=features, labels=labels, classes=())
        assert numbers.outputs == replace(numbers, intercept=True).outputs == outputs
        assert numbers.described.get("classes") is None
    for labels in (np.eye(3)[of], of + 0.0):  # floats may be classes, too, if they are told
        told = FeatureSample(features=features, labels=labels, classes=range(3))
        assert told.classes == (0, 1, 2)


@pytest.mark.parametrize(
    ("labels", "said"),
    [(["cat", "dog"], "cat -1, dog +1"), ([True, False], "False -1, True +1"), ([1, -1], "")],
)
def test_which_of_two_classes_is_positive(labels, said):
    sample = FeatureSample(features=np.random.default_rng(0).random((20, 2)), labels=labels * 10)
    assert sample.of_two == said
    assert said in repr(solve(sample, samples=5, lam=1))
