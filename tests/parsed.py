"""Python files as syntax trees, for the tests that look at source."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable
from functools import cache
from pathlib import Path

__all__ = ["nodes", "parsed"]


def parsed(paths: Iterable[Path]) -> dict[Path, ast.Module]:
    """The trees of files. The collector waits meanwhile: to look through hundreds of thousands of nodes again and again
    takes longer than to make them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return {path: ast.parse(path.read_text("utf-8")) for path in paths}
    finally:
        if was_on:
            gc.enable()


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Every node of a tree, found once."""
    return (*ast.walk(tree),)
