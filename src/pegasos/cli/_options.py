"""Messages of the library in the words of the command line: options in place of Python's parameters.

This is the one place where they are translated, at the border: every message passes it before it is printed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

#: Parameters whose options are called like them.
_SAME_NAMES = """
cache_size checkpoint checkpoint_every class_weight coef0 comments degree delimiter dtype encoding epsilon format gamma
grammar header intercept kernel lam loss max_iter max_support max_time memory n_features sample_weight solver target
text_target tol variant zero_based
"""
#: All parameters, and the options that stand for them.
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME_NAMES.split()} | {
    "C": "-c",
    "n_jobs": "--threads",
    "overwrite": "--force",
    "random_state": "--seed",
    "refit": "--no-refit",
}
#: Options that are spoken of otherwise than as NAME VALUE.
_PHRASES = {
    ("header", "False"): "--header no",
    ("header", "True"): "--header yes",
    ("overwrite", "True"): "--force",
    ("refit", "False"): "--no-refit",
    ("target", "None"): "--no-target",
    ("text_target", "True"): "--text-target",
    ("zero_based", "True"): "--zero-based",
}
#: Parameters whose names are no words of other use, so that they are translated wherever they stand.
_UNMISTAKABLE = ("C", "lam", "tol", *(name for name in _OPTIONS if "_" in name))
#: Short phrases around names that are words, too.
_IDIOMS = {
    "raise memory": "raise --memory",
    "lower gamma or degree": "lower --gamma or --degree",
    "lower gamma": "lower --gamma",
    "pegasos.io.convert": "pegasos convert",
    "write_liblinear or pegasos.save": "--format liblinear or pegasos",
    "pegasos.save": "--format pegasos",
    "other data than (X, y)": "other rows than these",
}

_QUOTED = r"""(?<!\w)(?:'[^']*'|"[^"]*")(?!\w)|\([^\s()]+\)"""


def as_options(message: str, options: Collection[str], given: Collection[str] = ()) -> str:
    """The message with the options of a command in place of parameters.

    What is quoted, or one of the words ``given`` on the command line, a file's name say, stays as it is; so do
    parameters that the command has no option for.
    """
    names = {name: option for name, option in _OPTIONS.items() if option in options}
    kept = [re.escape(word) for word in sorted(given, key=len, reverse=True) if len(word) > 1 and word[0] != "-"]
    spoken = "|".join(map(re.escape, _IDIOMS))
    bare = "|".join(name for name in _UNMISTAKABLE if name in names) or "(?!)"
    pattern = re.compile(
        rf"(?<![\w.-])(?:solver=)?(?P<solver>[A-Z]\w+)\((?P<field>\w+)=\.\.\.\)"
        rf"|(?<![\w.-])(?P<name>{'|'.join(names) or '(?!)'})=(?P<value>'[^']*'|\"[^\"]*\"|[^\s,;:)]+)"
        rf"|(?P<kept>{'|'.join([*kept, _QUOTED])})"
        rf"|(?<![\w.-])(?P<idiom>{spoken})(?!\w)"
        rf"|(?<![\w.-])(?P<bare>{bare})(?![\w=(])"
    )

    def spell(found: re.Match[str]) -> str:
        if found["solver"] is not None:
            return f"--solver {re.sub(r'(?<=[a-z])(?=[A-Z])', '_', found['solver']).lower()}:{found['field']}=..."
        if found["name"] is not None:
            return _assignment(found["name"], found["value"], names[found["name"]])
        if found["bare"] is not None:
            return names[found["bare"]]
        return found[0] if found["kept"] is not None else _IDIOMS[found["idiom"]]

    return pattern.sub(spell, message)


def _assignment(name: str, value: str, option: str) -> str:
    if (name, value) in _PHRASES:
        return _PHRASES[name, value]
    plain = value.removeprefix("np.").strip("'\"")
    if name == "memory" and plain.isdigit():  # in bytes there, in megabytes here
        plain = str(int(plain) >> 20)
    return f"{option} {shlex.quote(plain)}"
