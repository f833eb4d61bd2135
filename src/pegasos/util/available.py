"""Methods that an estimator has with some parameters only, and whose absence says what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import Any

Check = Callable[[Any], object]


def available_if(check: Check) -> Callable[[Callable[..., Any]], Any]:
    """As scikit-learn's decorator of this name, but what ``check`` raises is what a user sees, and sees last.

    ``check`` takes the estimator and raises an AttributeError with the remedy unless the method is available.
    """
    return lambda method: _Available(method, check)


class _Available:
    def __init__(self, method: Callable[..., Any], check: Check) -> None:
        self.method, self.check = method, check
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is not None:
            self.check(estimator)
            return MethodType(self.method, estimator)

        @wraps(self.method)
        def unbound(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            self.check(estimator)
            return self.method(estimator, *args, **kwargs)

        return unbound
