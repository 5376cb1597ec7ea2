"""From a function to a program: its arguments declared, its formulas recorded, its stages sorted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _pyabide, boundaries, declare
from .arguments import number_of, text_of, whole, wholes
from .boundaries import Boundary
from .chance import watched
from .declare import ExtentPart, FieldPart, ParameterPart, Reduction, ScalarPart, Stage, TemporaryPart
from .errors import Invalid, Limit, Unknown
from .expressions import Field, Tape
from .formulas import Op, needed, operands, text
from .loops import Repeat, Solve

RESERVED = (
    "backend",
    "boundary",
    "by_name",
    "cache",
    "depth",
    "devices",
    "dtype",
    "exchange",
    "execution",
    "fuse",
    "marks",
    "model",
    "pin",
    "probes",
    "record",
    "self",
    "shape",
    "tune",
    "until",
)
"""Arguments of ``start``, which no field and no parameter may be named after."""

MOST_STAGES = 4096
"""The most stages of a program. A function that yields more is refused, as one that may never end."""


def name_of(function: Any) -> str:
    """Returns the name of a function, of what ``functools.partial`` made of one, or of an object that is called."""
    name = getattr(function, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return type(function).__name__


class Recorder:
    """Records a function: declares its arguments, calls it once, and sorts what it returns or yields."""

    def __init__(
        self,
        function: Callable[..., Any],
        dimensions: int,
        boundary: Boundary | None,
        until: str | None,
        grid: Mapping[str, Any],
    ) -> None:
        self.name = name_of(function)
        try:
            axes = whole("axes", dimensions)
        except Invalid:
            axes = 0
        if axes not in (1, 2, 3):
            raise Invalid(f"{self.name}: {dimensions!r} axes are asked for; give 1, 2 or 3, as in @ab.stencil(2)")
        if until is not None:
            text_of("until", until, '"time >= 1.5"')
        self.function = function
        self.tape = Tape(axes)
        self.tape.grid = {kind: self._along(kind, value) for kind, value in grid.items()}
        self.walls: list[tuple[str, str, str, list[int]]] = []
        """The conditions of fields, with their sides, kinds and values."""
        self.boundary = boundary
        self.until = until
        self.parts: list[tuple[Any, ...]] = []
        self.kinds: dict[str, str] = {}
        """Of each field and temporary: where it stands."""
        self.parameters: dict[str, float] = {}
        self.made: set[str] = set()
        """The computed scalars."""
        self.derived: dict[int, str] = {}
        """The names of formulas of parameters, which the host computes and the kernels read as parameters."""
        self.steps: list[list[tuple[Any, ...]]] = [[]]
        self.definition: tuple[Any, ...] = ()
        """What the program was made of."""

    def define(self) -> _pyabide.Program:
        own = boundaries.text(self.boundary, tuple(self.kinds)) if self.boundary is not None else None
        derived = [(name, number) for number, name in self.derived.items()]
        steps = [step for step in self.steps if step]
        self.definition = (
            self.name,
            self.tape.dimensions,
            own,
            self.until,
            self.parts,
            list(self.tape.ops),
            derived,
            steps,
            [(kind, axis, value) for kind, along in self.tape.grid.items() for axis, value in along.items()],
            self.walls,
        )
        return _pyabide.Program.define(*self.definition)

    def _along(self, kind: str, value: Any) -> dict[int, float | str]:
        """Returns the spacing or the origin of each axis: a number, or the name of a parameter."""
        axes = ["z", "y", "x"][3 - self.tape.dimensions :]
        if value is None:
            return {}
        given = value if isinstance(value, Mapping) else dict.fromkeys(axes, value)
        for axis in given:
            if axis not in axes:
                raise Unknown(f"{self.name}: {kind}: no axis is named `{axis}`; known: {', '.join(axes)}")
        return {
            axes.index(axis): own if isinstance(own, str) else number_of(f"{self.name}: {kind}", own)
            for axis, own in given.items()
        }

    def record(self) -> None:
        arguments, named = [], {}
        for argument in self._signature().parameters.values():
            part = self._declare(argument)
            if argument.kind is argument.KEYWORD_ONLY:
                named[argument.name] = part
            else:
                arguments.append(part)
        with self.tape, watched(self.function, self.name):
            returned = self.function(*arguments, **named)
            if inspect.isawaitable(returned) or inspect.isasyncgen(returned):
                getattr(returned, "close", lambda: None)()
                raise Invalid(f"{self.name}: it is asynchronous, and a formula waits for nothing; write def alone")
            if inspect.isgenerator(returned):
                for number, stage in enumerate(returned):
                    if number == MOST_STAGES:
                        raise Limit(
                            f"{self.name}: it yields more than {MOST_STAGES} stages; write a formula for all cells, "
                            "and let a generator end"
                        )
                    self._add(stage)
            else:
                self._add(self._only(returned))
        if not any(self.steps):
            raise Invalid(f"{self.name}: it has no stage; yield or return the new values of its fields")
        self._derive()

    def _signature(self) -> inspect.Signature:
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):
            raise Invalid(
                f"{self.name}: its arguments are not known, because it is not written in Python; write a function "
                "with def that calls it"
            ) from None

    def _declare(self, argument: inspect.Parameter) -> Any:
        name, part = argument.name, argument.default
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            raise Invalid(
                f"{self.name}: the argument {name} stands for many; write each field as one argument"
            )
        if name in RESERVED:
            raise Invalid(
                f"{self.name}: {name} is an argument of start, so no field and no parameter can be named "
                "so; rename it"
            )
        if part is argument.empty:
            part = declare.field()
        match part:
            case FieldPart():
                return self._field(name, part)
            case TemporaryPart():
                self.parts.append(("temporary", name, part.on))
                self.kinds[name] = part.on
                return Field(self.tape, name)
            case ScalarPart():
                initial = None if part.initial is None else number_of(name, part.initial)
                self.parts.append(("scalar", name, initial, part.about))
                self.made.add(name)
            case ExtentPart():
                axes = ["z", "y", "x"][3 - self.tape.dimensions :]
                if part.axis not in axes:
                    raise Unknown(f"{self.name}: no axis is named `{part.axis}`; known: {', '.join(axes)}")
                self.parts.append(("extent", name, axes.index(part.axis), part.about))
            case _:
                own = part if isinstance(part, ParameterPart) else ParameterPart(self._default(name, part), "")
                self.parts.append(("parameter", name, own.default, own.about))
                self.parameters[name] = own.default
                self.tape.parameters.add(name)
        return self.tape.add("scalar", name)

    def _default(self, name: str, part: Any) -> float:
        if part is None:
            raise Invalid(f"{self.name}: {name} has the default None; give a number, or none at all for a field")
        return number_of(f"{self.name}: {name}", part)

    def _field(self, name: str, part: FieldPart) -> Field | list[Field]:
        own = boundaries.text(part.boundary) if part.boundary is not None else None
        self.parts.append(("field", name, part.on, part.components, part.start, own, part.precision))
        names = [f"{name}[{component}]" for component in range(part.components)] or [name]
        self.kinds |= dict.fromkeys(names, part.on)
        fields = [Field(self.tape, each) for each in names]
        return fields if part.components else fields[0]

    def _only(self, returned: Any) -> Any:
        if isinstance(returned, (Mapping, Stage)):
            return returned
        fields = [name for name in self.kinds]
        if returned is None:
            raise Invalid(
                f"{self.name}: it returns nothing; return the new value of "
                f"{fields[0] if fields else 'its field'}"
            )
        if len(fields) != 1:
            listed = ", ".join(fields) or "none"
            raise Invalid(
                f"{self.name}: it returns one formula, and its fields are {listed}; return a dict of the "
                "new values, as in " + "{" + f'"{fields[0] if fields else "u"}": …' + "}"
            )
        return {fields[0]: returned}

    def _add(self, described: Any) -> None:
        if sum(map(len, self.steps)) >= MOST_STAGES:
            raise Limit(
                f"{self.name}: more than {MOST_STAGES} stages are yielded; end the loop that yields them, or write "
                "fewer"
            )
        if isinstance(described, declare.EndOfStep):
            self.steps.append([])
            return
        if isinstance(described, declare.Wall):
            numbers = [self._number(value) for value in described.values]
            self.walls.append((described.field, described.sides, described.condition, numbers))
            return
        if isinstance(described, Repeat):
            self._repeat(described)
            return
        if isinstance(described, Solve):
            own = described
            formulas = (self._number(own.operator), self._number(own.rhs))
            self.steps[-1].append(
                ("solve", own.unknown, formulas, own.method, own.tolerance, own.most, own.null_space)
            )
            return
        stage = Stage(described) if isinstance(described, Mapping) else described
        if not isinstance(stage, Stage):
            raise Invalid(
                f"{self.name}: it yields {described!r}, which is no stage; yield a dict of new values by "
                "name, or ab.stage(…)"
            )
        fields = {name: value for name, value in stage.values.items() if name in self.kinds}
        scalars = {name: value for name, value in stage.values.items() if name in self.made}
        unknown = [name for name in stage.values if name not in fields and name not in scalars]
        if unknown or not stage.values:
            known = ", ".join([*self.kinds, *self.made])
            reason = f"`{unknown[0]}` is no field and no scalar" if unknown else "a stage sets nothing"
            raise Unknown(f"{self.name}: {reason}; what a stage can set: {known}")
        if fields and scalars:
            raise Invalid(
                f"{self.name}: a stage sets the field {next(iter(fields))} and the scalar "
                f"{next(iter(scalars))}; write a stage "
                "for each"
            )
        if fields:
            self._update(stage, fields)
        else:
            self._scalars(stage, scalars)

    def _repeat(self, loop: Repeat) -> None:
        self.steps[-1].append(("once",) if loop.once else ("repeat", loop.most, loop.until))
        for stage in loop.stages:
            if isinstance(stage, (declare.EndOfStep, Repeat, Solve)):
                kind = "the end of a step" if isinstance(stage, declare.EndOfStep) else "another loop"
                raise Invalid(f"{self.name}: a loop has {kind} within; write the turns of one of the two out")
            self._add(stage)
        self.steps[-1].append(("end of loop",))

    def _update(self, stage: Stage, fields: Mapping[str, Any]) -> None:
        sets = []
        for name, value in fields.items():
            if isinstance(value, Reduction):
                raise Invalid(
                    f"{self.name}: the field {name} gets a reduction; declare a scalar for it by ab.scalar()"
                )
            sets.append((name, self._number(value)))
        mask = None if stage.where is None else self._number(stage.where)
        name = stage.name or (self.name if not self.steps[0] else f"{self.name}: {', '.join(fields)}")
        example = "points=[(40, 60)]"
        if not isinstance(stage.points, Iterable) or isinstance(stage.points, (str, bytes)):
            raise Invalid(f"{self.name}: points: {stage.points!r} are none; give their indices, as in {example}")
        points = [wholes(f"{self.name}: points", point, example) for point in stage.points]
        self.steps[-1].append(("set", name, sets, mask, points))

    def _scalars(self, stage: Stage, scalars: Mapping[str, Any]) -> None:
        if stage.where is not None or stage.points:
            raise Invalid(f"{self.name}: a stage of scalars has no places; leave where and points out")
        before: list[str] = []
        for name, value in scalars.items():
            formula = value.value if isinstance(value, Reduction) else value
            number = self._number(formula)
            used = [other for other in before if other in self._names(number, "scalar")]
            if used:
                raise Invalid(
                    f"{self.name}: {name} is computed from {used[0]}, which the same stage sets; write a "
                    "stage for each"
                )
            before.append(name)
            if isinstance(value, Reduction):
                on = value.on or self._place(name, number)
                margins = self._margins(value.margins)
                self.steps[-1].append(("reduce", name, value.how, on, margins, number, value.every))
            else:
                self.steps[-1].append(("compute", name, number))

    def _number(self, value: Any) -> int:
        return self.tape.expression(value)._number

    def _names(self, number: int, kind: str) -> set[str]:
        """Returns the names of a kind that a formula uses."""
        ops = self.tape.ops
        return {ops[at][1] for at in needed(ops, [number]) if ops[at][0] == kind}

    def _place(self, scalar: str, number: int) -> str:
        """Returns where the values of a reduction stand, unless that is said."""
        places = {self.kinds[name] for name in self._names(number, "tap")}
        if len(places) > 1:
            raise Invalid(
                f"{self.name}: {scalar} is reduced from fields on {' and '.join(sorted(places))}; say "
                "where its values stand by "
                'on="cells" or the like'
            )
        return places.pop() if places else "cells"

    def _margins(self, margins: Mapping[str, tuple[int, int]]) -> list[list[int]]:
        axes = ["z", "y", "x"][3 - self.tape.dimensions :]
        example = 'margins={"x": (1, 0)}'
        if not isinstance(margins, Mapping):
            raise Invalid(f"{self.name}: margins: {margins!r} is no dict; write {example}")
        for axis in margins:
            if axis not in axes:
                raise Unknown(f"{self.name}: no axis is named `{axis}`; known: {', '.join(axes)}")
        both = [wholes(f"{self.name}: margins", margins.get(axis, (0, 0)), example) for axis in axes]
        if any(len(own) != 2 or min(own) < 0 for own in both):
            raise Invalid(f"{self.name}: margins: give two counts, 0 or more, for an axis, as in {example}")
        return both

    def _derive(self) -> None:
        """Finds the largest formulas of parameters alone, which the host computes as Python does."""
        tape = self.tape
        outputs = [number for step in self.steps for stage in step for number in _outputs(stage)]
        found = {number for number in outputs if tape.on_host[number]}
        for at in needed(tape.ops, outputs):
            if not tape.on_host[at]:
                found |= {operand for operand in operands(tape.ops[at]) if tape.on_host[operand]}
        taken = {part[1] for part in self.parts}
        for number in sorted(found):
            uses = self._names(number, "scalar")
            if tape.ops[number][0] in {"constant", "scalar"} or not uses:
                continue
            name = text(tape.ops, number, limit=60)
            while name in taken:
                name += "'"
            taken.add(name)
            self.derived[number] = name


def _outputs(stage: tuple[Any, ...]) -> list[int]:
    if stage[0] == "set":
        return [number for _, number in stage[2]] + ([] if stage[3] is None else [stage[3]])
    if stage[0] == "solve":
        return list(stage[2])
    if stage[0] in ("once", "repeat", "end of loop"):
        return []
    number: int = stage[-1]
    return [number]
