"""What the programs are about: files that an agent reads."""

from __future__ import annotations

SYSTEM = "You read files of a project and say what they do. Be brief."


def tasks(turns: int) -> list[str]:
    """What the user says, one for each turn. Every third turn wants two files, which a model reads at once."""
    return [
        f"Turn {n}: read src/part_{n}.py" + (f" and src/more_{n}.py" if n % 3 == 0 else "") + ". What does it do?"
        for n in range(1, turns + 1)
    ]


def contents(path: str, size: int) -> str:
    """A file of about so many characters, another one for each path."""
    seed = sum(map(ord, path))
    lines = [f"# {path}"]
    length = len(lines[0])
    while length < size:
        n = len(lines)
        lines.append(f"total_{n} = price[{(seed * n) % 997}] * {(seed + n * 7) % 89} + tax({n})  # row {n} of {path}")
        length += len(lines[-1]) + 1
    return "\n".join(lines)
