"""More images than there are: a small class-conditional generator, trained with torch.

A generator turns N(0, I) of ``LATENT`` numbers and the class into an image; a discriminator, given
the class, tells real images from generated ones; both are trained in turn on the logistic loss.
Needs torch: ``pip install replica-srf[gan]``.
"""

import importlib
from typing import Any

import numpy as np

from replica.errors import InvalidArgument

from .arguments import seed_sequence, whole
from .images import ImageSet

LATENT, HIDDEN, BATCH = 32, 256, 64
RATE, MOMENTA = 2e-4, (0.5, 0.999)  # of Adam, usual for such pairs


def generate(found: ImageSet, *, samples: int, epochs: int = 20, rng: Any = None) -> ImageSet:
    """Train a generator on the images of two classes, and draw from it.

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
        Generated images, for :func:`validation.images.image_task` with ``source="images"``.

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
        pixels = torch.tensor(np.concatenate([found.first, found.second]), dtype=torch.float32)
        counts = [len(found.first), len(found.second)]
        classes = torch.eye(2).repeat_interleave(torch.tensor(counts), dim=0)
        generator = _train(torch, pixels, classes, epochs)
        wanted = torch.eye(2).repeat_interleave(samples, dim=0)
        with torch.no_grad():
            drawn = generator(torch.cat([torch.randn(2 * samples, LATENT), wanted], dim=1))
    first, second = drawn.numpy().astype(float).reshape(2, samples, -1)
    return ImageSet(first, second, found.classes, found.shape)


def _train(torch: Any, pixels: Any, classes: Any, epochs: int) -> Any:
    """The generator, (b, LATENT + 2) -> (b, n), after adversarial training."""
    nn, n = torch.nn, pixels.shape[1]
    generator = nn.Sequential(
        nn.Linear(LATENT + 2, HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, n), nn.Sigmoid(),
    )  # fmt: skip
    discriminator = nn.Sequential(nn.Linear(n + 2, HIDDEN), nn.LeakyReLU(0.2), nn.Linear(HIDDEN, 1))
    optimisers = [
        torch.optim.Adam(model.parameters(), lr=RATE, betas=MOMENTA)
        for model in (generator, discriminator)
    ]
    loss = nn.functional.binary_cross_entropy_with_logits
    for _ in range(epochs):
        for chosen in torch.randperm(len(pixels)).split(BATCH):
            real, own = pixels[chosen], classes[chosen]
            fake = generator(torch.cat([torch.randn(len(own), LATENT), own], dim=1))
            yes, no = torch.ones(len(own), 1), torch.zeros(len(own), 1)
            told = discriminator(torch.cat([real, own], dim=1))
            caught = discriminator(torch.cat([fake.detach(), own], dim=1))
            _descend(optimisers[1], loss(told, yes) + loss(caught, no))
            _descend(optimisers[0], loss(discriminator(torch.cat([fake, own], dim=1)), yes))
    return generator


def _descend(optimiser: Any, loss: Any) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
