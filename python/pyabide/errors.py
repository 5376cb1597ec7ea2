"""Abide's errors. The text of each is a sentence that says what was wrong and what to change."""

__all__ = [
    "CompileError",
    "Defect",
    "DeviceError",
    "Error",
    "FileError",
    "Invalid",
    "Limit",
    "Unavailable",
    "Unknown",
    "Unsupported",
]


class Error(Exception):
    """Any failure of Abide."""


class Invalid(Error, ValueError):
    """A value that cannot be used."""


class Limit(Error, ValueError):
    """A resource or a rule has a limit, and the request is beyond it."""


class Unknown(Error, ValueError):
    """A name that is not known; the text lists those that are."""


class Unavailable(Error):
    """A backend's device, driver or library is not there."""


class Unsupported(Error):
    """A backend is there but cannot run this problem."""


class DeviceError(Error):
    """A call into a driver failed, in the driver's own words."""


class CompileError(Error):
    """A kernel did not compile, with the compiler's log."""


class FileError(Error):
    """A file could not be read or written."""


class Defect(Error):
    """A defect of Abide itself, to be reported."""
