"""Numbers as people read them."""

from __future__ import annotations

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 4) -> str:
    """So many significant digits; powers of ten for the very large and small, ∞ for None."""
    if value is None:
        return "∞"
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 10**7:
        shown = f"{value:.{digits}g}"
        return f"{value:,.0f}" if "e" in shown or abs(value) >= 10_000 else shown
    mantissa, _, exponent = f"{value:.{max(digits - 2, 0)}e}".partition("e")
    return f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def whole(value: int) -> str:
    """With separators between thousands."""
    return f"{value:,}"


def percent(value: float) -> str:
    """A share as per cent."""
    return f"{100 * value:.2f} %"


def power_of_ten(exponent: int) -> str:
    """The label of a logarithmic axis."""
    return {0: "1", 1: "10", -1: "0.1", 2: "100"}.get(exponent) or f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def duration(seconds: float) -> str:
    """Milliseconds to hours."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
