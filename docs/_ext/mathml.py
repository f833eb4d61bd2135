"""Formulas as MathML, converted by docutils. Browsers draw it by themselves: no script, no fonts, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def convert(tex: str, node: nodes.Node, *, block: bool) -> str:
    tex = re.sub(r"\\[Bb]igg?[lr]?(?![a-zA-Z])", "", tex)  # MathML stretches delimiters without being told
    try:
        return str(latex2mathml.tex2mathml(tex, as_block=block))
    except MathError as error:
        logger.warning("formula not understood: %s: %s", error, tex, location=node)
        return f"<code>{tex}</code>"


def inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext(), node, block=False))
    raise nodes.SkipNode


def display(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{convert(node.astext(), node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
