"""Simulations: programs that run on a device."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from . import _pyabide, words
from .arguments import number_of, path_of, steps_of, text_of
from .datasets import dataset
from .errors import Invalid, Unknown
from .exchange import handed_over, is_on_gpu
from .fields import FieldValues, array, read_only
from .pictures import Movie, Picture, movie
from .progress import of_frames, of_run
from .views import View

if TYPE_CHECKING:
    import xarray

    from .programs import Program

__all__ = ["Frame", "Parameters", "Records", "Simulation"]

Report = _pyabide.Report
Plan = _pyabide.Plan


class Simulation:
    """A program, its fields on a device, and the steps done so far.

    ``sim["u"]`` is a copy of a field, read-only because a change of it would change no field, and
    ``sim["u"] = array`` replaces the field; ``np.array(sim["u"])`` is a copy to write to. A simulation may be used from
    several threads; calls wait for one another, and none holds Python's lock while it computes.
    """

    def __init__(self, core: _pyabide.Simulation, program: Program | None) -> None:
        if not isinstance(core, _pyabide.Simulation):
            raise Invalid(f"a simulation: {core!r} is none; start a program, as by heat.start(…) or ab.start(\"heat\")")
        self._core = core
        self._program = program
        self._views: list[View] = []
        self._extents = {name: tuple(extents) for name, extents in core.fields}

    def run(self, steps: int, *, seconds: float | None = None, progress: bool | None = None) -> Report:
        """Advances some steps and reports: steps, seconds, GCells/s, plan, scalars, notes.

        A run of ``until`` may end earlier, and so does one that lasts ``seconds``. Ctrl-C raises
        ``KeyboardInterrupt`` after the steps that are under way; the simulation then stands at ``sim.step``
        and goes on from there.

        With ``progress`` a bar on stderr shows the steps done; unless it is said, where stderr is a terminal and
        the run lasts longer than a second.

        Values that are NaN or infinite after the run, and were not before, are a note of the report and a
        ``RuntimeWarning``: mostly a time step beyond the scheme's limit.
        """
        return self._run(steps, seconds, progress, stacklevel=3)

    def _run(self, steps: int, seconds: float | None, progress: bool | None, stacklevel: int) -> Report:
        self._check_views()
        asked = steps_of("steps", steps)
        limit = None if seconds is None else number_of("seconds", seconds)
        bar = of_run(asked, progress)
        if bar is None:
            report = self._core.run(asked, limit)
        else:
            with bar:
                begun = self._core.step
                report = self._core.run(asked, limit, lambda step: bar.to(step - begun))
                bar.to(report.steps)
        warned(report, stacklevel + 1)
        return report

    def frames(
        self, total: int, *, every: int, progress: bool | None = None, seconds: float | None = None
    ) -> Iterator[Frame]:
        """Runs ``total`` steps, and yields a frame after each ``every`` steps and after the last one.

        Between frames, fields and parameters may be read and set. A bar shows the progress, unless ``progress`` is
        false: tqdm's where it is installed, else that of ``run``. The run ends early where ``until`` ends it.
        """
        total, every = steps_of("total", total), steps_of("every", every)
        if every == 0:
            raise Invalid("every: 0 steps between frames are none; give 1 or more")
        return self._frames(total, every, progress, seconds)

    def _frames(
        self, total: int, every: int, progress: bool | None, seconds: float | None
    ) -> Iterator[Frame]:
        done, bar = 0, of_frames(total, progress)
        try:
            while done < total:
                asked = min(every, total - done)
                report = self._run(asked, seconds, False, stacklevel=3)
                done += report.steps
                if bar is not None:
                    bar.set_postfix_str(f"{report.gcells_per_s:.3g} GCells/s", refresh=False)
                    bar.update(report.steps)
                yield Frame(self, report)
                if report.steps < asked:
                    return
        finally:
            if bar is not None:
                bar.close()

    def __getitem__(self, field: str) -> NDArray[Any]:
        parts = self._parts(_name(field))
        if parts:
            return read_only(np.stack([self._core.read(part) for part in parts]))
        values: NDArray[Any] = self._core.read(field)
        return read_only(values)

    def _parts(self, field: str) -> list[str]:
        """Returns the components of a field that has several, by the name alone: their first axis is that of the components."""
        if field in self._extents:
            return []
        return [name for name in self._extents if name.startswith(f"{field}[") and name.endswith("]")]

    def __setitem__(self, field: str, values: Any) -> None:
        self._check_views()
        field = _name(field)
        parts = self._parts(field)
        if parts:
            own = array(field, values)
            if own.ndim > 0 and len(own) != len(parts):
                raise Invalid(
                    f"field {field}: it has {len(parts)} components, and the array {len(own)}; give one for each"
                )
            for number, part in enumerate(parts):
                self[part] = own if own.ndim == 0 else own[number]
            return
        if self.backend == "cuda" and is_on_gpu(values):
            self._core.fill(field, handed_over(field, values))
            return
        own = array(field, values)
        extents = self._extents.get(field)
        if own.ndim == 0 and extents is not None:
            own = np.full(extents, own)
        self._core.write(field, own)

    def field(self, field: str) -> FieldValues:
        """Returns a copy of a field's values, to be had as numpy array, by DLPack, as xarray or as picture.

        On CUDA the copy is made on the device, for CuPy, torch and JAX to take where it is; where the device
        has no memory for it, ``sim["u"]`` copies to the host at once.
        """
        lent = self._core.copy(_name(field))
        return self._on_host(field) if lent is None else FieldValues(lent, field, self.step)

    def view(self, field: str) -> View:
        """Returns a field's values where they lie on a CUDA device, to be read and written: ``with
        sim.view("u") as u: cupy.from_dlpack(u)[:, 0] = 1``.

        Other backends export no memory; ``field`` gives a copy everywhere.
        """
        return View(self, _name(field))

    def _check_views(self) -> None:
        if self._views:
            raise Invalid(
                f"the simulation: {self._views[0]!r} has its memory; leave the block of `with "
                "sim.view(…)` before it goes on"
            )

    def window(self, field: str, *ranges: slice) -> NDArray[Any]:
        """Returns a read-only copy of a part of a field: ``sim.window("u", slice(10, 20), slice(0, 5))``."""
        extents = self._extents.get(_name(field))
        if extents is None:
            raise words.unknown("no field is", field, self.fields)
        if len(ranges) != len(extents):
            raise Invalid(f"window: {len(ranges)} slices are given on {len(extents)} axes; give one an axis")
        try:
            bounds = [own.indices(extent) for own, extent in zip(ranges, extents, strict=True)]
        except (AttributeError, TypeError):
            raise Invalid(
                f"window: {ranges!r} are no slices of whole numbers; give one an axis, as in slice(0, 5), and slice(3, 4) "
                "for the index 3 alone"
            ) from None
        if any(step != 1 or low >= high for low, high, step in bounds):
            raise Invalid(
                "window: a slice is empty or has a step; give slices of one value at least, without steps"
            )
        values: NDArray[Any] = self._core.window(
            field, [low for low, _, _ in bounds], [high for _, high, _ in bounds]
        )
        return read_only(values)

    @overload
    def xarray(self, field: None = None) -> xarray.Dataset: ...
    @overload
    def xarray(self, field: str) -> xarray.DataArray: ...
    def xarray(self, field: str | None = None) -> xarray.DataArray | xarray.Dataset:
        """Returns a copy of a field as an ``xarray.DataArray``; without a name, of all fields as an ``xarray.Dataset``, with
        coordinates, the time and the step, and the parameters as attributes; xarray must be installed."""
        if field is not None:
            return self._on_host(field).xarray()
        return dataset(self)

    def save(self, path: str | PathLike[str], *fields: str) -> None:
        """Writes fields to a file, whose name says the format.

        ``.h5``, ``.npz`` and ``.vti`` hold all fields, unless some are named; ``.npy``, ``.tif`` and ``.png`` one, that which
        the program shows unless another is named. ``.h5``, which ``xarray.open_dataset`` and ParaView open, and ``.npz`` say
        where the result comes from: ``abide info`` prints it.
        """
        self._core.save(path_of(path), [_name(field) for field in fields])

    def png(self, field: str | None = None, *, range: tuple[float, float] | None = None) -> Picture:
        """Returns a picture of a field in false colours; of the program's first, unless named."""
        return self._on_host(self._core.shown if field is None else field).png(range)

    def _on_host(self, field: str) -> FieldValues:
        return FieldValues(self._core.read(_name(field)), field, self.step)

    def movie(
        self,
        total: int,
        *,
        every: int,
        field: str | None = None,
        range: tuple[float, float] | None = None,
        progress: bool | None = None,
    ) -> Movie:
        """Runs ``total`` steps and returns a movie of a field, with a picture each ``every`` steps."""
        shown = self._core.shown if field is None else _name(field)
        frames = self.frames(total, every=every, progress=progress)
        return movie((frame.simulation[shown] for frame in frames), range)

    def checkpoint(self, path: str | PathLike[str]) -> None:
        """Writes all fields, parameters and the step to a file, from which ``resume`` goes on to the bit."""
        self._core.checkpoint(path_of(path))

    def records(self) -> Records:
        """Returns the rows recorded since the last call, by the names of their columns; see ``record``
        of ``start``."""
        columns, rows = self._core.records()
        steps = np.array([step for step, _ in rows], dtype=np.uint64)
        values = np.array([own for _, own in rows], dtype=np.float64).reshape(
            len(rows), max(len(columns) - 1, 0)
        )
        return Records(columns, steps, values)

    @property
    def parameters(self) -> Parameters:
        """The parameters by name; setting one holds for the steps that follow."""
        return Parameters(self)

    @property
    def scalars(self) -> dict[str, float]:
        """The computed scalars by name, as they are now."""
        return dict(self._core.scalars())

    @property
    def step(self) -> int:
        """The steps done since the start, those before a checkpoint included."""
        return self._core.step

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(self._extents)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the domain in cells, slowest axis first."""
        return tuple(self._core.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of all fields: float32 or float64."""
        return np.dtype("float32" if self._core.dtype == "f32" else "float64")

    @property
    def backend(self) -> str:
        """The backend that runs it: ``"cuda"``, ``"wgpu"`` or ``"cpu"``."""
        return self._core.backend

    @property
    def plan(self) -> Plan:
        """The plan that runs; print it to see why it is so."""
        return self._core.plan()

    @property
    def notes(self) -> list[str]:
        """Where the simulation differs from what was asked, and why."""
        return self._core.notes

    @property
    def non_finite(self) -> int:
        """How many values of all fields are NaN or infinite, counted where they lie: it takes as long
        as a step or so."""
        return self._core.non_finite()

    def __reduce__(self) -> NoReturn:
        raise Invalid(
            "the simulation: it lives on a device of this process, and cannot be pickled or copied; write "
            "sim.checkpoint(path), and go on from it by ab.resume(path, program)"
        )

    def __repr__(self) -> str:
        extents = "×".join(map(str, self.shape))
        fields = ", ".join(self.fields)
        return f"<{self._core.program} of {fields} on {extents} cells in {self.dtype}, {self.backend}, step {self.step}>"

    def _repr_html_(self) -> str:
        import base64
        import html

        shown = self._core.shown
        image = base64.b64encode(self.png()).decode()
        words = html.escape(f"{repr(self)[1:-1]}; shown: {shown}")
        return f'<figure><img src="data:image/png;base64,{image}"><figcaption>{words}</figcaption></figure>'


class Frame:
    """A simulation as it stands at a step of ``Simulation.frames``."""

    def __init__(self, simulation: Simulation, report: Report) -> None:
        _check_simulation("a frame", simulation)
        self.simulation = simulation
        self.report = report
        self.step = simulation.step

    def __getitem__(self, field: str) -> FieldValues:
        """Returns a copy of a field's values. The frame must be read before the run goes on."""
        if self.simulation.step != self.step:
            raise Invalid(
                f"the frame is of step {self.step}, and the simulation is at step "
                f"{self.simulation.step}; read a frame in the "
                "loop, before the next one"
            )
        return self.simulation.field(field)

    @property
    def scalars(self) -> dict[str, float]:
        """The computed scalars at this step."""
        return self.report.scalars

    def __repr__(self) -> str:
        return f"<frame of step {self.step}>"


class Parameters(MutableMapping[str, float]):
    """The parameters of a simulation by name. Setting one holds for the steps that follow."""

    def __init__(self, simulation: Simulation) -> None:
        _check_simulation("parameters", simulation)
        self._simulation = simulation

    def _own(self) -> dict[str, float]:
        program = self._simulation._program
        everything = dict(self._simulation._core.parameters())
        return everything if program is None else {name: everything[name] for name in program.parameters}

    def __getitem__(self, name: str) -> float:
        own = self._own()
        text_of("parameters", name, '"kappa"')
        if name not in own:
            raise _unknown(name, own)
        return own[name]

    def __setitem__(self, name: str, value: float) -> None:
        self.update({name: value})

    def update(self, *others: Any, **values: Any) -> None:
        """Sets several parameters at once."""
        try:
            given = dict(*others, **values)
        except (TypeError, ValueError):
            raise Invalid(f"parameters: {others!r} is no dict; give numbers by name, as in update(kappa=0.1)") from None
        changed = {text_of("parameters", name, '"kappa"'): number_of(name, value) for name, value in given.items()}
        own = self._own()
        for name in changed:
            if name not in own:
                raise _unknown(name, own)
        self._simulation._core.set_parameters(list(changed.items()))

    def __delitem__(self, name: str) -> None:
        raise Invalid(f"parameter {name}: a program keeps its parameters; set another value")

    def __iter__(self) -> Iterator[str]:
        return iter(self._own())

    def __len__(self) -> int:
        return len(self._own())

    def __repr__(self) -> str:
        return repr(self._own())


class Records:
    """Rows that a run recorded: the steps, and the values of each column by its name."""

    def __init__(self, columns: list[str], steps: NDArray[np.uint64], values: NDArray[np.float64]) -> None:
        self.columns = columns
        self.steps = steps
        self.values = values

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self.columns:
            raise words.unknown("no column is", column, self.columns)
        at = self.columns.index(column)
        return self.steps if at == 0 else self.values[:, at - 1]

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {', '.join(self.columns)}>"


def _unknown(name: str, own: dict[str, float]) -> Unknown:
    return words.unknown("no parameter is", name, own)


def _name(field: Any) -> str:
    return text_of("field", field, 'sim["u"]')


def _check_simulation(what: str, simulation: Any) -> None:
    if not isinstance(simulation, Simulation):
        raise Invalid(f"{what}: {simulation!r} is no simulation; start one, as by heat.start(…)")


def warned(report: Report, stacklevel: int) -> None:
    """Warns where a run has made values that are not finite."""
    words = report.went_wrong
    if words is not None:
        warnings.warn(words, RuntimeWarning, stacklevel=stacklevel)
