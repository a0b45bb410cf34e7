"""The generator of images, where torch is installed; its absence said where it is not."""

import importlib.util

import numpy as np
import pytest

from replica import InvalidArgument
from validation.mixtures import ImageSet, generate


def bars(samples, rng):
    """Two classes of 8 x 8 images: bright on the left, bright on the right, with noise."""
    noise = 0.2 * rng.random((2, samples, 8, 8))
    noise[0, :, :, :4] += 0.7
    noise[1, :, :, 4:] += 0.7
    first, second = noise.reshape(2, samples, 64)
    return ImageSet(first, second, (3, 7), (8, 8))


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is not None, reason="torch is installed: nothing to refuse"
)
def test_without_torch_it_says_what_to_install():
    with pytest.raises(InvalidArgument, match=r"pip install replica-srf\[gan\]"):
        generate(bars(10, np.random.default_rng(0)), samples=5)


def test_mistakes():
    with pytest.raises(InvalidArgument, match="samples must be an integer of at least 2"):
        generate(bars(10, np.random.default_rng(0)), samples=1)
    with pytest.raises(InvalidArgument, match="epochs must be"):
        generate(bars(10, np.random.default_rng(0)), samples=5, epochs=0)


@pytest.mark.slow
def test_generated_images_are_those_of_their_class():
    torch = pytest.importorskip("torch")
    found = bars(500, np.random.default_rng(0))
    before = torch.random.get_rng_state()
    drawn = generate(found, samples=200, epochs=20, rng=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert drawn.classes == (3, 7)
    assert drawn.first.shape == (200, 64)
    assert min(drawn.first.min(), drawn.second.min()) >= 0
    assert max(drawn.first.max(), drawn.second.max()) <= 1
    for own, real, other in (
        (drawn.first, found.first, found.second),
        (drawn.second, found.second, found.first),
    ):
        mean = own.mean(axis=0)
        apart = np.linalg.norm(mean - other.mean(axis=0))
        # found: a tenth; and a spread within 1.0 to 1.5 of the real one
        assert np.linalg.norm(mean - real.mean(axis=0)) < apart / 4
        assert 0.5 < own.std(axis=0).mean() / real.std(axis=0).mean() < 2
    np.testing.assert_array_equal(drawn.first, generate(found, samples=200, epochs=20, rng=1).first)
