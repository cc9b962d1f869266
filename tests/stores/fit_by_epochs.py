"""A fit by short epochs with a checkpoint at a URL; with "wait" it stops while the third epoch is being written."""

from __future__ import annotations

import logging
import sys
import time

import daskspectral as dsp
from daskspectral.data.unpublished import Unpublished
from daskspectral.engine import plan
from daskspectral.passes import folds

LENGTHS = [(plan, "EPOCH"), (plan, "TASK_FLOPS"), (plan, "LEAST_FLOPS"), (folds, "LEAST_JOINED")]
plain_publish, published = Unpublished.publish, 0


def estimator() -> dsp.SpectralDecomposition:
    """What is fitted."""
    return dsp.SpectralDecomposition(
        kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=3, random_state=0, folds=None
    )


def shorten() -> None:
    """Make epochs short."""
    plan.EPOCH, plan.TASK_FLOPS, plan.LEAST_FLOPS, folds.LEAST_JOINED = 1, 1e5, 1e5, 1 << 20


def publish(self: Unpublished) -> None:
    """Publish an epoch besides the empty one, and wait at the next."""
    global published
    published += 1
    if published == 3:
        print("waiting", flush=True)
        time.sleep(600)
    plain_publish(self)


if __name__ == "__main__":
    points, run, out, endpoint, *wait = sys.argv[1:]
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    shorten()
    if wait:
        Unpublished.publish = publish  # type: ignore[method-assign]
    options = {"endpoint_url": endpoint}
    fitted = estimator().fit(points, checkpoint=run, checkpoint_every=0.0, storage_options=options)
    dsp.save(fitted.moments_, out, storage_options=options)
