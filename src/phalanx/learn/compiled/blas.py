"""One thread per matrix product: phalanx runs products side by side itself."""

import scipy.linalg.cython_blas  # noqa: F401  the library of compiled matrix products
from threadpoolctl import threadpool_limits


def use_one_thread_per_product() -> None:
    """For the whole process. Products that start threads of their own would fight for the cores."""
    threadpool_limits(1, user_api="blas")
