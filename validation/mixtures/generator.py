"""More images than there are: a small generator for each class, trained with torch.

A generator turns N(0, I) of ``LATENT`` numbers into an image; a discriminator tells real images
from generated ones; both are trained in turn on the logistic loss.  Each class has a pair of its
own: a shared one, given the class, draws some images of the other.
Needs torch: ``pip install replica-srf[gan]``.
"""

import importlib
from typing import Any

import numpy as np

from replica.errors import InvalidArgument
from solvers.results import Array

from ..draws import seed_sequence, whole
from .image_files import ImageSet

LATENT = 32  # enough for one class of digits


def generate(pixels: ImageSet, *, samples: int, epochs: int = 20, rng: Any = None) -> ImageSet:
    """Train a generator on the images of each of two classes, and draw from them.

    Parameters
    ----------
    pixels : ImageSet
    samples : int
        Images of each class to draw.
    epochs : int
        Passes through the images.
    rng : None, int, SeedSequence or Generator

    Returns
    -------
    ImageSet
        Generated images, for :func:`.image_task` with ``source="images"``.

    Raises
    ------
    InvalidArgument
        If a number is out of range, or torch is not installed.
    """
    samples = whole("samples", samples, 2, "images of each class")
    epochs = whole("epochs", epochs, 1, "passes through the images")
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        allowed = "fitted Gaussians where torch is not installed (pip install replica-srf[gan])"
        raise InvalidArgument("generator", "torch", allowed) from None
    seed = int(seed_sequence(rng).generate_state(1)[0])
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
        torch.manual_seed(seed)
        first, second = (
            _drawn(torch, torch.tensor(images, dtype=torch.float32), samples, epochs)
            for images in (pixels.first, pixels.second)
        )
    return ImageSet(first, second, pixels.classes, pixels.shape)


def _drawn(torch: Any, pixels: Any, samples: int, epochs: int) -> Array:
    """Draw ``samples`` images (samples, n) from a generator trained on ``pixels`` (b, n)."""
    generator = _train(torch, pixels, epochs)
    with torch.no_grad():
        return np.asarray(generator(torch.randn(samples, LATENT)), dtype=float)


def _train(torch: Any, pixels: Any, epochs: int) -> Any:
    """The generator, (b, LATENT) -> (b, n), after adversarial training."""
    nn, n, hidden = torch.nn, pixels.shape[1], 256
    generator = nn.Sequential(
        nn.Linear(LATENT, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
        nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
        nn.Linear(hidden, n), nn.Sigmoid(),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Linear(n, hidden), nn.LeakyReLU(0.2), nn.Dropout(0.3),
        nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Dropout(0.3),
        nn.Linear(hidden, 1),
    )  # fmt: skip
    optimisers = [
        torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.5, 0.999))
        for model in (generator, discriminator)
    ]
    loss = nn.functional.binary_cross_entropy_with_logits

    def scores(images: Any) -> Any:
        """Logits (b, 1) of the discriminator, of images in [-1, 1] with noise: without it, it soon
        tells every pair apart and teaches nothing."""
        return discriminator(2 * images - 1 + 0.3 * torch.randn_like(images))

    for _ in range(epochs):
        for chosen in torch.randperm(len(pixels)).split(64):
            if len(chosen) == 1:  # a batch of one has no spread to normalise by
                continue
            real, fake = pixels[chosen], generator(torch.randn(len(chosen), LATENT))
            yes, no = torch.ones(len(chosen), 1), torch.zeros(len(chosen), 1)
            # real images count as 0.9, for the same reason as the noise
            error = loss(scores(real), 0.9 * yes) + loss(scores(fake.detach()), no)
            _descend(optimisers[1], error)
            _descend(optimisers[0], loss(scores(fake), yes))
    return generator.eval()


def _descend(optimiser: Any, loss: Any) -> None:
    """One step of ``optimiser`` down the gradient of ``loss``."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
