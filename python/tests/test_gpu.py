"""Fields in a GPU's memory, and packages that share them: CuPy, torch, JAX, Numba."""

import gc
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Array, cuda

import pyabide as ab


@ab.stencil(2, boundary="periodic")
def heat(u, kappa=0.1):  # type: ignore[no-untyped-def]
    return u + kappa * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u)


def plane(*shape: int) -> Array:
    return np.random.default_rng(3).random(shape or (24, 31)).astype("f4")


# A package: how it takes what has __dlpack__, brings values to the host, and makes an array on the device.
PACKAGES: dict[str, Callable[[Any], tuple[Callable[..., Any], ...]]] = {
    "cupy": lambda cupy: (cupy.from_dlpack, cupy.asnumpy, cupy.asarray),
    "torch": lambda torch: (
        torch.from_dlpack,
        lambda values: values.cpu().numpy(),
        lambda values: torch.asarray(values, device="cuda"),
    ),
    "jax": lambda jax: (jax.dlpack.from_dlpack, np.asarray, jax.device_put),
    "numba.cuda": lambda numba: (
        numba.as_cuda_array,
        lambda values: values.copy_to_host(),
        numba.to_device,
    ),
}


@pytest.fixture
def here() -> None:
    if not cuda():
        pytest.skip(f"cuda: {cuda().unavailable}")


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest, here: None) -> Any:
    try:
        # What packages warn of, of each other, is theirs.
        with warnings.catch_warnings(action="ignore"):
            module = importlib.import_module(request.param)
    except ImportError as error:
        pytest.skip(f"{request.param}: {error}")
    return request.param, *PACKAGES[request.param](module)


def test_copies_go_out_and_stay(package: Any) -> None:
    name, take, host, _ = package
    if name == "numba.cuda":
        pytest.skip("numba takes what has strides, which is a view")
    sim = heat.start(u=plane(), backend="cuda")
    sim.run(5)
    taken, expected = take(sim.field("u")), sim["u"]
    assert np.array_equal(host(taken), expected) and host(taken).dtype == np.float32
    sim.run(5)
    del sim
    gc.collect()
    assert np.array_equal(host(taken), expected), "a copy stays as it is, and outlives the simulation"


def test_arrays_go_in(package: Any) -> None:
    _, _, host, make = package
    u = plane()
    sim = heat.start(u=make(u), backend="cuda")
    assert (sim.shape, sim.dtype) == (u.shape, np.float32) and np.array_equal(sim["u"], u)
    sim.run(4)
    sim["u"] = make(u[::-1].copy())
    assert np.array_equal(sim["u"], u[::-1])
    other = heat.start(u=u[::-1], backend="cpu")
    assert sim.run(7).steps == other.run(7).steps and np.array_equal(sim["u"], other["u"])


def test_a_view_is_the_field(package: Any) -> None:
    name, take, host, _ = package
    if name == "jax":
        pytest.skip("jax takes no array whose rows lie further apart than they are long")
    # 24 rows of 31 values: the rows have gaps.
    sim = heat.start(u=plane(), backend="cuda")
    sim.run(3)
    expected = sim["u"].copy()
    with sim.view("u") as view:
        own = take(view)
        assert np.array_equal(host(own), expected)
        if name != "numba.cuda":
            own[2:5] = own[12:15]
            expected[2:5] = expected[12:15]
    assert np.array_equal(sim["u"], expected)
    other = heat.start(u=expected, backend="cpu")
    sim.run(9), other.run(9)
    assert np.array_equal(sim["u"], other["u"])


def test_strided_arrays_go_in(here: None) -> None:
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    u = plane(48, 62)
    sim = heat.start(u=0.0, shape=(24, 31), dtype="f4", backend="cuda")
    on_gpu = cupy.asarray(u)
    for part in (np.s_[::2, :31], np.s_[24:, 31:], np.s_[23::-1, :31]):
        sim["u"] = on_gpu[part]
        assert np.array_equal(sim["u"], u[part])
    sim["u"] = cupy.broadcast_to(on_gpu[:1, :31], (24, 31))
    assert np.array_equal(sim["u"], np.broadcast_to(u[:1, :31], (24, 31)))
    with pytest.raises(ab.Invalid, match="2 apart along the last axis; give a contiguous copy"):
        sim["u"] = on_gpu[:24, ::2]
    with pytest.raises(ab.Invalid, match="the array is f64, the run is f32; convert it on the device"):
        sim["u"] = on_gpu[:24, :31].astype("f8")
    with pytest.raises(ab.Invalid, match=r"the array's shape is \[24, 30\]"):
        sim["u"] = on_gpu[:24, :30]
    assert sim.run(1).steps == 1


def test_three_axes_and_fields_on_faces(here: None) -> None:
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")

    @ab.program(3, boundary="mirror")
    def push(u=ab.field(start=0.0), v=ab.field(on="x-faces", start=0.0), w=ab.field(on="x-faces", start=1.0)):  # type: ignore[no-untyped-def]
        # The fields on faces swap their buffers.
        yield {"v": w, "w": v}
        yield {"u": u + v[0, 0, 1] - v[0, 0, 0]}

    sim = push.start(shape=(5, 6, 7), dtype="f8", backend="cuda")
    sim.run(3)
    values = np.random.default_rng(1).random((5, 6, 8))
    sim["v"] = cupy.asarray(values)
    assert np.array_equal(sim["v"], values) and not np.array_equal(sim["w"], values)
    assert np.array_equal(cupy.asnumpy(cupy.from_dlpack(sim.field("v"))), values)
    with sim.view("w") as w, sim.view("v") as v:
        cupy.from_dlpack(w)[...] = 2 * cupy.from_dlpack(v)
    assert np.array_equal(sim["w"], 2 * values) and np.array_equal(sim["v"], values)
    sim.run(1)
    assert np.array_equal(sim["v"], 2 * values)


def test_unread_capsules_free_themselves(here: None) -> None:
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    sim = heat.start(u=0.5, shape=(4096, 4096), dtype="f4", backend="cuda")
    free = cupy.cuda.runtime.memGetInfo()[0]
    for turn in range(50):
        field = sim.field("u")
        capsule = field.__dlpack__(max_version=(1, 0) if turn % 2 else None)
        assert f"dltensor{'_versioned' if turn % 2 else ''}" in repr(capsule)
        del field, capsule
    # The driver may keep some for the next copy.
    assert cupy.cuda.runtime.memGetInfo()[0] > free - 4 * 2**26


def test_a_view_holds_a_run_up_and_ends(here: None) -> None:
    sim = heat.start(u=1.0, shape=(8, 9), backend="cuda")
    with sim.view("u") as view:
        described = view.__cuda_array_interface__
        assert described["shape"] == (8, 9) and described["typestr"] == "<f4" and described["strides"][1] == 4
        with pytest.raises(ab.Invalid, match="leave the block"):
            sim.run(1)
        with pytest.raises(ab.Invalid, match="leave the block"):
            sim["u"] = 1.0
    for attribute in ("__cuda_array_interface__", "shape"):
        with pytest.raises(ab.Invalid, match="its block has ended"):
            getattr(view, attribute)
    assert sim.run(1).steps == 1


def test_the_host_gets_what_it_asks_for(here: None) -> None:
    sim = heat.start(u=plane(), backend="cuda")
    field = sim.field("u")
    assert field.__dlpack_device__()[0] == 2 and field.shape == (24, 31) and field.dtype == np.float32
    assert np.array_equal(np.asarray(field), plane())
    assert np.array_equal(np.from_dlpack(field, device="cpu"), plane())
    with pytest.raises(BufferError, match="np.asarray brings"):
        field.__dlpack__(dl_device=(2, 9))


class OnGpu:
    """Stands for an array of another package on a GPU."""

    shape, dtype = (24, 31), "float32"

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("it cannot leave")


def test_an_array_on_a_gpu_does_not_reach_the_host_unasked() -> None:
    for start in (OnGpu(), 1.0):
        with pytest.raises(ab.Invalid, match=r"OnGpu makes no array.*\.get\(\) of CuPy or \.cpu\(\) of torch"):
            sim = heat.start(u=start, shape=(24, 31), backend="cpu")
            sim["u"] = OnGpu()


def test_views_are_of_cuda_alone() -> None:
    sim = heat.start(u=1.0, shape=(8, 9), backend="cpu")
    with pytest.raises(ab.Unsupported, match="take a copy by sim.field"), sim.view("u"):
        pass
    assert sim.run(1).steps == 1
    assert sim.field("u").__dlpack_device__() == (1, 0)
