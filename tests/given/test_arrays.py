"""Strata whose matrices are arrays of another library than numpy: the same equations."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

import replica
from replica.convex import LOSSES
from replica.given import FirstLayer
from replica.given.evaluate_readout import errors_at
from replica.given.solve_point import solve_point


@pytest.mark.parametrize("of", ["square", "absolute"])
def test_the_array_standard_is_enough(of, monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((30, 20)) / 4
    layer = FirstLayer(weights=weights, student="relu", target="sin", directions=np.eye(20)[0])
    given = layer.stratified(0)
    with monkeypatch.context() as patched:
        patched.setattr(
            "replica.given.first_layer.to_device",
            lambda x, device: xp.asarray(x, dtype=xp.float64),
        )
        moved = replace(layer).stratified(0)
    here, there = (solve_point(each, LOSSES[of], 40, 0.1) for each in (given, moved))
    assert isinstance(there.posterior.response, type(xp.asarray(0.0)))
    expected = errors_at(given, here, LOSSES[of])[0]
    assert errors_at(moved, there, LOSSES[of])[0] == pytest.approx(expected, rel=1e-7, nan_ok=True)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("device", ["cpu:0", "cuda"])
@pytest.mark.parametrize("of", ["square", "huber:0.5"])
def test_a_layer_on_a_device(device, of):
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch.cuda.is_available() is False")
    weights = np.random.default_rng(0).standard_normal((60, 50)) / 7
    layer = dict(weights=weights, student="relu", target="sin", directions=np.eye(50)[0])
    at = dict(samples=[40, 200], lam=0.1, loss=of)
    host, there = (
        replica.learning_curve(FirstLayer(**layer, **on), **at) for on in ({}, {"device": device})
    )
    for name in ("test_error", "train_error", "readout_variance"):
        np.testing.assert_allclose(there[name], host[name], rtol=1e-6)
    learned = [
        replica.learned_function(FirstLayer(**layer, device=where), samples=40, lam=0.1)
        for where in ("cpu", device)
    ]
    np.testing.assert_allclose(*(f.mean(np.linspace(-2, 2, 5)) for f in learned), rtol=1e-6)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_tensors_with_gradients_are_taken(device):
    """Those of a layer as it is in a network, on any device, in any precision."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch.cuda.is_available() is False")
    linear = torch.nn.Linear(12, 30, device=device)
    direction = torch.eye(12, device=device, requires_grad=True)[0]
    layer = FirstLayer(
        weights=linear.weight, bias=linear.bias, student="relu", target="sin", directions=direction
    )
    np.testing.assert_array_equal(layer.weights, linear.weight.detach().cpu().numpy())
    np.testing.assert_array_equal(layer.bias, linear.bias.detach().cpu().numpy())
    features = linear(torch.randn(40, 12, device=device))
    labels = torch.arange(40, device=device) % 3
    sample = replica.FeatureSample(features=features, labels=labels, strata=labels)
    assert sample.classes == (0, 1, 2)
    np.testing.assert_array_equal(sample.features, features.detach().cpu().numpy())
    coarse = replica.FeatureSample(features=features.bfloat16(), labels=features[:, 0].bfloat16())
    np.testing.assert_allclose(coarse.features, sample.features, rtol=2**-8)
    assert coarse.outputs == 1


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("name", ["features", "labels", "strata"])
def test_tensors_without_numbers_are_refused(name):
    import torch

    given = dict(features=torch.ones(4, 2), labels=torch.arange(4.0), strata=torch.zeros(4))
    given[name] = given[name].to("meta")
    with pytest.raises(replica.InvalidArgument, match=f"^{name} must be"):
        replica.FeatureSample(**given)


def test_tables_of_pandas_are_taken():
    import pandas

    rng = np.random.default_rng(0)
    names = np.array(["a", "b", "c"])[rng.integers(0, 3, 40)]
    table = pandas.DataFrame(rng.standard_normal((40, 2)), columns=["x", "y"])
    table["flag"], table["count"] = table.x > 0, pandas.array([1, 2] * 20, dtype="Int64")
    labels = pandas.Series(names).astype("category")
    sample = replica.FeatureSample(features=table, labels=labels, strata=labels)
    np.testing.assert_array_equal(sample.features, table.to_numpy(dtype=float))
    assert sample.classes == ("a", "b", "c")
    assert sample.labels.argmax(axis=1).tolist() == [("a", "b", "c").index(one) for one in names]
    with pytest.raises(replica.InvalidArgument, match="features must be an array of numbers"):
        replica.FeatureSample(features=table.assign(name=names), labels=labels)
