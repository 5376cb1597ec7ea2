"""The programs in the documents run as they stand there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/python").glob("*.md"))
DOCUMENTS = ["README.md", "python/README.md", *(page.relative_to(ROOT).as_posix() for page in PAGES)]


def programs() -> list[tuple[str, str]]:
    found = []
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        for block in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
            line = text.count("\n", 0, block.start()) + 1
            found.append((f"{name}:{line}", block[1]))
    return found


@pytest.mark.parametrize(("place", "program"), programs(), ids=[place for place, _ in programs()])
def test_a_program_runs(place: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(program, place, "exec"), {"__name__": "document"})
    except ImportError as error:
        if error.name != "cupy":
            raise
        pytest.skip("cupy is not installed")
