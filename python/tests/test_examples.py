"""The examples as a reader meets them: their pictures, their models, and what the book quotes of them."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from conftest import MODELS, full

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "python" / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs" / "codes").glob("*.md"))

# The models of an example with several programs.
SEVERAL = {"phase_fields": ["cahn_hilliard", "kuramoto_sivashinsky", "phase_field_crystal"]}


@full
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_writes_its_picture_and_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / f"{name}.png"
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--backend", "cpu", "--picture", str(picture)])
    importlib.import_module(name).main()
    assert picture.read_bytes().startswith(b"\x89PNG")
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and re.search(r"; .*\d", line), line


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_model_a_picture_and_a_page(name: str) -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert f"python python/examples/{name}.py" in text
    assert f"(../images/codes/{name}.png)" in text
    for model in SEVERAL.get(name, [name]):
        assert (MODELS / f"{model}.toml").exists()
        assert f"abide run examples/models/{model}.toml" in text
    assert (ROOT / "docs/images/codes" / f"{name}.png").stat().st_size < 60_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_quotes_the_examples_as_they_are(page: Path) -> None:
    sources = [(ROOT / "python" / "examples" / f"{name}.py").read_text() for name in EXAMPLES]
    for block in re.finditer(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        assert any(block[1] in source for source in sources), block[1]
