"""NVRTC, CUDA's run-time compiler, from the packages of NVIDIA that pip installs."""

import os
import re
import site
import sys
import sysconfig
from pathlib import Path

VARIABLE = "ABIDE_NVRTC"
"""Names the folder for the library, which looks there before it looks in the system."""


def folders() -> list[Path]:
    """Returns the folders of installed packages that hold NVRTC, those of the newest CUDA first."""
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    if site.ENABLE_USER_SITE:
        places.add(site.getusersitepackages())
    found: dict[Path, int] = {}
    for place in filter(None, places):
        for pattern in ("nvidia/*/lib/libnvrtc.so.*", "nvidia/*/bin/nvrtc64_*.dll"):
            for library in Path(place).glob(pattern):
                version = re.search(r"(?:so\.|64_)(\d+)", library.name)
                found[library.parent] = max(found.get(library.parent, 0), int(version[1]) if version else 0)
    return sorted(found, key=lambda folder: (-found[folder], folder))


def offer() -> None:
    """Hands the folder over to the library, unless the user names one."""
    if VARIABLE in os.environ:
        return
    for folder in folders()[:1]:
        os.environ[VARIABLE] = str(folder)
