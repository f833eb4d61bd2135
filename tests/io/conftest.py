"""What all tests of files share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def threads_that_do_not_wait():
    """LIBSVM's threads wait for each other in loops, which takes minutes where others use the processor, too."""
    with threadpool_limits(1, user_api="openmp"):
        yield
