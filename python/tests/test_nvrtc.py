"""NVRTC is found among the packages that pip installed, and offered unless the user names a folder."""

import os
from pathlib import Path

import pytest

from pyabide import _nvrtc


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for package, version in (("cuda_nvrtc", 12), ("cu13", 13)):
        folder = tmp_path / "nvidia" / package / "lib"
        folder.mkdir(parents=True)
        (folder / f"libnvrtc.so.{version}").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "nvidia"


def test_the_folder_is_found_and_offered(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _nvrtc.folders()
    assert found.index(installed / "cu13" / "lib") < found.index(installed / "cuda_nvrtc" / "lib")
    monkeypatch.delenv(_nvrtc.VARIABLE, raising=False)
    _nvrtc.offer()
    assert Path(os.environ[_nvrtc.VARIABLE]) in _nvrtc.folders()


def test_the_users_own_is_left_alone(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_nvrtc.VARIABLE, "/mine")
    _nvrtc.offer()
    assert os.environ[_nvrtc.VARIABLE] == "/mine"
