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

from ..draw import seed_sequence, whole
from .images import ImageSet

LATENT, HIDDEN, BATCH = 32, 256, 64
RATE, MOMENTA = 5e-4, (0.5, 0.999)  # of Adam
DROPPED, BLUR, SMOOTH = 0.3, 0.3, 0.9  # what keeps the discriminator from winning at once


def generate(found: ImageSet, *, samples: int, epochs: int = 20, rng: Any = None) -> ImageSet:
    """Train a generator on the images of each of two classes, and draw from them.

    Parameters
    ----------
    found : ImageSet
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
            for images in (found.first, found.second)
        )
    return ImageSet(first, second, found.classes, found.shape)


def _drawn(torch: Any, pixels: Any, samples: int, epochs: int) -> Array:
    """``samples`` images from a generator trained on ``pixels`` (b, n)."""
    generator = _train(torch, pixels, epochs)
    with torch.no_grad():
        return np.asarray(generator(torch.randn(samples, LATENT)), dtype=float)


def _train(torch: Any, pixels: Any, epochs: int) -> Any:
    """The generator, (b, LATENT) -> (b, n), after adversarial training."""
    nn, n = torch.nn, pixels.shape[1]
    generator = nn.Sequential(
        nn.Linear(LATENT, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, n), nn.Sigmoid(),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Linear(n, HIDDEN), nn.LeakyReLU(0.2), nn.Dropout(DROPPED),
        nn.Linear(HIDDEN, HIDDEN), nn.LeakyReLU(0.2), nn.Dropout(DROPPED),
        nn.Linear(HIDDEN, 1),
    )  # fmt: skip
    optimisers = [
        torch.optim.Adam(model.parameters(), lr=RATE, betas=MOMENTA)
        for model in (generator, discriminator)
    ]
    loss = nn.functional.binary_cross_entropy_with_logits

    def seen(images: Any) -> Any:
        """What the discriminator says of images in [-1, 1] with noise: without it, it soon tells
        every pair apart and teaches nothing."""
        return discriminator(2 * images - 1 + BLUR * torch.randn_like(images))

    for _ in range(epochs):
        for chosen in torch.randperm(len(pixels)).split(BATCH):
            if len(chosen) == 1:  # a batch of one has no spread to normalise by
                continue
            real, fake = pixels[chosen], generator(torch.randn(len(chosen), LATENT))
            yes, no = torch.ones(len(chosen), 1), torch.zeros(len(chosen), 1)
            told = loss(seen(real), SMOOTH * yes) + loss(seen(fake.detach()), no)
            _descend(optimisers[1], told)
            _descend(optimisers[0], loss(seen(fake), yes))
    return generator.eval()


def _descend(optimiser: Any, loss: Any) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
