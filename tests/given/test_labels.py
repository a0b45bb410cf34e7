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
    ([0, None, 1] * 20, r"numpy.array\(labels\)\[keep\] for keep = pandas.notna"),
    ([0, np.nan, 1] * 20, r"numpy.array\(labels\)\[keep\] for .*isfinite\(labels"),
    (["a", "", "b"] * 20, r"numpy.array\(labels\)\[keep\] for .* != ''"),
    ([-1, 0, 1, 2] * 15, r"numpy.array\(labels\)\[keep\] for .* >= 0"),
    (np.arange(60), r"20 values \(classes=np.unique\(labels\) says that"),
    ([f"{i}" for i in range(60)], "labels must be of at most 20 values"),
    (1j * np.arange(60), "labels must be"),
    (np.arange(60).astype("datetime64[D]"), "labels must be"),
    (np.full((60, 3), np.nan), r"\(numpy.isfinite\(labels\)\).all\(axis=1\), got .* row 0"),
    (np.arange(60) % 3 + 0.0, r"labels.astype\(int\) if .* classes=\(\) if they"),
    (np.arange(60) % 2 + 1.0, "got '2 whole numbers of type float, from 1 to 2'"),
    (np.eye(3)[np.arange(60) % 3], r"classes=range\(3\) if .* classes=\(\) if"),
    (np.r_[np.ones(30), np.full(30, np.nan)], "nan in row 30, the first of 30"),
    (["a", None] * 30, r"leave out .* pandas.notna\(labels\), got 'None in row 1"),
    (["a", np.nan] * 30, r"leave out .* pandas.notna\(labels\), got 'nan in row 1"),
    (["a", 1] * 30, "labels must be all text or all numbers"),
    (["a"] * 60, "labels must be of two classes or more, got 'a in all rows'"),
    (np.arange(60) % 4 - 1, r"-1, the code of a missing class: .* '-1 in 15 rows"),
    ([2] * 60, "labels must be of two classes or more"),
    (ONE_HOT > 0, r"classes=range\(3\) if one 1 .* classes=\(\) if they are"),
    (TWICE, r"one 1 in each row .* classes=\(\) if .*, got '2 ones in row 4'"),
    (np.arange(59), r"for each of the 60 rows of features \(take features\[:59\] if .*, got 'shap"),
    (np.arange(60)[None] % 3, r"\(take labels.T\), got 'shape \(1, 60\)'"),
    (ONE_HOT.T, r"\(take labels.T\), got 'shape \(3, 60\)'"),
    (ONE_HOT[..., None], r"such as labels.reshape\(len\(labels\), -1\)"),
    (None, r"one for each of the 60 rows of features, got None"),
    ("y.npy", r"one for each of the 60 .*numpy.load\('y.npy'\)\), got 'y.npy'"),
    (csr_matrix(np.eye(2)[[0] * 60]), r"one for each .* \(such as labels.toarray\(\)\)"),
    (np.ones(60) * 1j, r"labels.real\), got 'dtype complex128'"),
    (np.full(60, "2020", "datetime64[D]"), r"labels.astype\(int\)"),
    (["a", "", "b"] * 20, r"leave out .*\(classes=.* got 'no text in row 1, the fi"),
    (["1", "NA", "2"] * 20, r"leave out rows .*\(classes=.*, got 'NA in row 1, the"),
    ([1, 2, "two"] * 20, r"\[str\(one\) for one in labels\] is text, .*'two' in row 2"),
    (np.ma.array(np.arange(60) % 3, mask=[0, 1] * 30), "None in row 1, the first of 30"),
    ([["a", "b"]] * 60, r"one name a row: numpy.asarray\(labels\)\[:, 0\], say, got 'shape \(60,"),
    (np.full(60, 2.5), "of more than one value, got '2.5 in all 60 rows'"),
    (np.ones((60, 2)) * [1, 2.5], r"than one value, got '\[1. +2.5\]"),
    (np.arange(61), r"\(take labels\[:60\] if .*, got 'shape \(61,\)'"),
    ([], r"one for each of the 60 rows of features, got 'shape \(0,\)'"),
    ([[0], [1, 2]] * 30, "an array of numbers, all rows of one length, got"),
    (np.array([[0], [1, 2]] * 30, dtype=object), r"all text or all numbers: .* got '\[0\] in row"),
    ([Decimal("1.5"), Decimal("2.5")] * 30, r"dtype=float\) numbers, got \"Decimal\('1.5'\) in ro"),
    ([date(2020, 1, 1)] * 60, r"\[str\(one\) for one in labels\] is text, .* row 0"),
    (np.arange(60).astype("timedelta64[D]"), r"labels.astype\(int\)\), got 'dtype"),
    (np.zeros(60, [("y", int)]), r"an array of numbers, got \"'\(0,\)' at \[0\]"),
    (iter(range(60)), r"for each of the 60 rows .* \(such as list\(labels\)\)"),
    ({"y": 1}, r"\(such as list\(labels.values\(\)\)\)"),
    (Unmade(), r"array of numbers \(such as labels.to_dense\(\)\)"),
    (np.ma.masked_equal(np.eye(3)[np.arange(60) % 3], 1), r"keep = \(~numpy.ma.getmaskarray\(labe"),
    (["a", "NA"] * 30, r"keep = numpy.array\(labels\) != 'NA' \(classes="),
    ([("a", 1)] * 60, "one name a row"),
]


FEATURES = [
    (np.ones((60, 2), bool), r"features.astype\(float\)\), got 'dtype bool'"),
    (csr_matrix(np.ones((60, 2))), r"must be .* \(such as features.toarray\(\)\)"),
    (np.diag([1, np.nan])[[0, 1] * 30], r"'nan at \[1, 1\], the first of 30'"),
    (np.ones((60, 2, 2)), r"such as features.reshape\(len\(features\), -1\)"),
    (np.ones(60), r"features.reshape\(len\(features\), -1\)\), got 'shape \(60,\)'"),
    (np.ones((2, 60)), r"they are \(N, p\): take features.T\), got .*\(60,\)"),
    ([], r"2 axes and numbers in it, got 'shape \(0,\)'"),
    (None, "2 axes and numbers in it, got None"),
    ("F.csv", r"pandas.read_csv\('F.csv'\)"),
    ([[1], [1, 2]] * 30, "an array of numbers, all rows of one length, got"),
    ([[1, "a"]] * 60, r"numpy.delete\(features, 1, .*\"'a' at \[0, 1\]"),
    (np.ma.masked_equal(np.ones((60, 1)), 1), r"features.filled\(0\)\), got 'mask"),
    (np.full((60, 1), np.nan), r"for keep = numpy.isfinite\(features\).all\(axi"),
]


BOTH = [
    (dict(classes=["a", "b"]), "classes must be those of the labels"),
    (dict(classes=["0", "1", "2"]), "classes must be those of the labels"),
    (dict(classes=[0, 1, 2, 3]), "classes must be those of the labels.*not in both: 3"),
    (dict(classes=3), "classes must be names or whole numbers"),
    (dict(classes=[None, "a", 2]), "classes must be names or whole numbers"),
    (dict(classes=[[1], [1, 2]]), "classes must be names or whole numbers"),
    (dict(labels=np.eye(3)[[0] * 60], classes=["a", "a", "b"]), "each once"),
    (dict(labels=np.ones((60, 3)), classes=["a", "b", "c"]), "classes must be left out unless"),
    (dict(labels=np.eye(3)[np.arange(60) % 3], classes=["a", "b"]), "classes must be 3 names"),
    (dict(labels=TWICE, classes=range(3)), "one 1 in each row .*, got '2 ones in row 4'"),
    (dict(labels=np.eye(4)[np.arange(60) % 3], classes=range(4)), r"labels\[:, labels.any\(axis"),
    (dict(labels=ONE_HOT.T, classes=range(3)), r"\(take labels.T\), got 'shape \(3, 60\)'"),
    (dict(labels=np.full(60, 2), classes=()), "of more than one value, got '2.0 in all 60"),
    (dict(labels=np.arange(60) % 3 + 0.0, classes=range(3)), r"labels.astype\(int\) are class"),
    (
        dict(labels=np.arange(60) % 3 + 0.0, classes=np.arange(3.0)),
        r"classes must be .*type float: leave out classes= and give labels.astype\(int\)",
    ),
    (dict(classes=["a", "b"]), "left out they are found: 0, 1, 2"),
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
        told = r"leave out rows .* pandas.notna\(labels\), got .* in row 59, the first of 1 "
        with pytest.raises(InvalidArgument, match=told):
            FeatureSample(features=features, labels=pandas.Series([*values, None], dtype=dtype))
    table = pandas.DataFrame(features, columns=["a", "b"])
    for entry in ("x", pandas.Timestamp("2020"), pandas.NA):
        told = r"\(features.select_dtypes\('number'\)\), got .* at \[0, 2\], column 'c'"
        with pytest.raises(InvalidArgument, match=told):
            FeatureSample(features=table.assign(c=[entry] * 60), labels=np.arange(60) % 2)
    turned = pandas.Series(np.arange(60) % 2)[::-1]
    for labels, told in (
        (turned, r"features: labels.loc\[features.index\]"),
        ("b", r"\(features\['b'\], of features.drop\(columns='b'\)\)"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            FeatureSample(features=table, labels=labels)
    assert FeatureSample(features=table, labels=turned.loc[table.index]).binary
    of_others = turned.set_axis([f"row {k}" for k in range(60)])
    assert FeatureSample(features=table, labels=of_others).binary  # whose own index is a range
    with_gap = pandas.Index([np.nan, *range(1, 60)])  # of which one entry is not equal to itself
    same_index = np.arange(60) % 2
    assert FeatureSample(
        features=table.set_axis(with_gap), labels=pandas.Series(same_index, index=with_gap.copy())
    ).binary
    told = r"features: numpy.array\(labels\) .*index of other rows"
    with pytest.raises(InvalidArgument, match=told):
        FeatureSample(features=table.set_axis([*range(5, 65)]), labels=of_others)
    unused = pandas.Categorical([*names, "c0"], categories=["c0", "c1", "c2", "unused"])
    assert FeatureSample(features=features, labels=unused).classes == ("c0", "c1", "c2")
    dummies = pandas.get_dummies(pandas.Series([*names, "c0"]))
    told = FeatureSample(features=features, labels=dummies, classes=list(dummies))
    assert told.classes == ("c0", "c1", "c2")


def test_vectors_of_0_and_1_are_numbers():
    """Several labels of each row, not one class."""
    several = np.random.default_rng(0).integers(0, 2, (60, 5))
    assert FeatureSample(features=np.ones((60, 2)), labels=several).outputs == 5
    assert FeatureSample(features=np.ones((60, 2)), labels=TWICE, classes=()).outputs == 3


def test_what_is_asked_about_is_told():
    features, of = np.ones((60, 2)), np.arange(60) % 3
    signs = FeatureSample(features=features, labels=of - 1, classes=np.unique(of - 1))
    assert signs.classes == (-1, 0, 1)
    for labels, outputs in ((of + 0.0, 1), (of, 1), (np.eye(3)[of], 3)):
        numbers = FeatureSample(features=features, labels=labels, classes=())
        assert numbers.outputs == replace(numbers, intercept=True).outputs == outputs
        assert numbers.described.get("classes") is None
    told = FeatureSample(features=features, labels=np.eye(3)[of], classes=range(3))
    assert told.classes == (0, 1, 2)


@pytest.mark.parametrize(
    ("labels", "said"),
    [(["cat", "dog"], "cat -1, dog +1"), ([True, False], "False -1, True +1"), ([1, -1], "")],
)
def test_which_of_two_classes_is_positive(labels, said):
    sample = FeatureSample(features=np.random.default_rng(0).random((20, 2)), labels=labels * 10)
    assert sample.of_two == said
    assert said in repr(solve(sample, samples=5, lam=1))
