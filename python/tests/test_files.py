"""Files that other packages open: HDF5 by h5py, netCDF4, h5netcdf and xarray, TIFF by tifffile, and VTK's reader."""

import importlib.util
import os
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tifffile
import xarray

import pyabide as ab

COMMAND = os.environ.get("ABIDE_COMMAND")
"""The command, where it was built beside this package."""


def grid(shape: tuple[int, ...], dtype: str) -> ab.Simulation:
    @ab.program(len(shape), spacing=0.25, origin=-1.0)
    def moved(u, nodes=ab.field(on="nodes"), time=ab.scalar(0.0), dt=0.125):  # type: ignore[no-untyped-def]
        yield {"u": u * 0.5}
        yield {"nodes": nodes + 1.0}
        yield {"time": time + dt}

    rng = np.random.default_rng(7)
    own = rng.random(shape).astype(dtype)
    return moved.start(u=own, nodes=0.0, dtype=dtype, backend="cpu")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (5, 9), (3, 5, 7)])
def test_all_fields_are_one_dataset(shape: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    sim = grid(shape, dtype)
    sim.run(3)
    sim.save(tmp_path / "a.h5")
    own = sim.xarray()
    axes = "zyx"[3 - len(shape) :]
    assert own["u"].dims == tuple(axes) and own["nodes"].dims == tuple(f"{axis}_nodes" for axis in axes)
    for engine in ("netcdf4", "h5netcdf"):
        with xarray.open_dataset(tmp_path / "a.h5", engine=engine) as read:
            last = read.isel(t=-1)
            for name in ("u", "nodes"):
                assert last[name].dtype == dtype and np.array_equal(last[name], sim[name])
                assert last[name].dims == own[name].dims
            for name in last.coords:
                assert np.array_equal(last[name], own[name]), name
            assert float(last.t) == 0.375 == float(own.t) and int(last.step) == 3
            assert float(last["time"]) == 0.375 == float(own["time"])
            assert float(last.x[0]) == -0.875 and float(last.x_nodes[1]) == -0.75
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["u"].maxshape == (None, *shape)
        assert np.array_equal(file["VTKHDF/CellData/u"], sim["u"])
        assert [axis[0].name for axis in file["u"].dims] == ["/t", *(f"/{axis}" for axis in axes)]
        assert file["abide_provenance"].attrs["program"] == b"moved"
        assert len(file["abide_provenance"].attrs["digest"]) == 64
        assert b"[run]" in file["abide_provenance/model"][()]
    sim.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as read:
        assert np.array_equal(read["u"], sim["u"]) and np.array_equal(read["nodes"], sim["nodes"])


def test_one_field_is_a_stack(tmp_path: Path) -> None:
    for shape in ((5, 9), (3, 5, 7)):
        sim = grid(shape, "float64")
        sim.save(tmp_path / "u.tif", "u")
        assert np.array_equal(tifffile.imread(tmp_path / "u.tif"), sim["u"])
    for wrong, words in (("u.npy", "holds one field"), ("u.txt", "no output format")):
        with pytest.raises(ab.FileError, match=words):
            sim.save(tmp_path / wrong, "u", "nodes")
    with pytest.raises(ab.Unknown, match="w"):
        sim.save(tmp_path / "u.npz", "w")


def run(folder: Path, line: str) -> None:
    assert COMMAND is not None
    done = subprocess.run([COMMAND, *line.split()], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(COMMAND is None, reason="the command was not built")
def test_frames_of_the_command(tmp_path: Path) -> None:
    run(
        tmp_path,
        "run gray-scott --size 33x47 --steps 150 --every 1 --backend cpu --output run.h5 --frames u=f%d.npy",
    )
    with xarray.open_dataset(tmp_path / "run.h5") as read:
        assert read.sizes == {"t": 151, "y": 33, "x": 47} and np.array_equal(read.step, np.arange(151))
        for step in (0, 1, 64, 150):
            assert np.array_equal(read.u[step], np.load(tmp_path / f"f{step}.npy"))
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["VTKHDF/PointData/u"] == file["u"] and file["VTKHDF/Steps/Values"] == file["t"]
        assert file["VTKHDF/Steps"].attrs["NSteps"] == 151
    tifffile.imwrite(tmp_path / "mask.tif", np.arange(60, dtype=np.uint8).reshape(3, 4, 5), photometric="minisblack")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        values = np.arange(60.0).reshape(3, 4, 5)
        file.create_dataset("group/a", data=values, chunks=(2, 2, 2), compression="gzip", shuffle=True)
        file["b"] = values.astype(">f4")
        file.create_dataset("far", shape=(60,), dtype="f8", external=[(str(tmp_path / "raw"), 0, 480)])
    np.savez_compressed(tmp_path / "in.npz", a=values)
    for source in ("mask.tif", "in.h5:group/a", "in.h5:b", "in.npz:a"):
        run(tmp_path, f"run 3d7pt --input {source} --steps 0 --backend cpu --output out.npy")
        assert np.array_equal(np.load(tmp_path / "out.npy"), values), source
    done = subprocess.run([COMMAND, "run", "2d5pt", "--input", "in.h5:far", "--steps", "0"], cwd=tmp_path, capture_output=True)
    assert done.returncode != 0 and b"stand in other files" in done.stderr


@pytest.mark.skipif(COMMAND is None, reason="the command was not built")
@pytest.mark.skipif(importlib.util.find_spec("vtk") is None, reason="vtk is not installed")
def test_vtk_finds_the_steps(tmp_path: Path) -> None:
    import vtk
    from vtkmodules.util.numpy_support import vtk_to_numpy

    run(tmp_path, "run heat --size 33x47 --input random:1 --steps 9 --every 3 --backend cpu --output run.h5 --frames f%d.vti")
    reader: Any = vtk.vtkHDFReader()
    reader.SetFileName(str(tmp_path / "run.h5"))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    assert times == (0.0, 3.0, 6.0, 9.0)
    for number, time in enumerate(times):
        reader.UpdateTimeStep(time)
        other: Any = vtk.vtkXMLImageDataReader()
        other.SetFileName(str(tmp_path / f"f{number}.vti"))
        other.Update()
        own, there = reader.GetOutput(), other.GetOutput()
        assert own.GetDimensions() == there.GetDimensions() == (47, 33, 1)
        values = [vtk_to_numpy(image.GetPointData().GetArray("u")) for image in (own, there)]
        assert np.array_equal(*values)


@pytest.mark.skipif(importlib.util.find_spec("vtk") is None, reason="vtk is not installed")
@pytest.mark.parametrize("shape", [(7,), (5, 9), (3, 5, 7)])
def test_vtk_finds_an_image(shape: tuple[int, ...], tmp_path: Path) -> None:
    import vtk
    from vtkmodules.util.numpy_support import vtk_to_numpy

    sim = grid(shape, "float32")
    sim.run(2)
    sim.save(tmp_path / "a.vtkhdf")
    reader: Any = vtk.vtkHDFReader()
    reader.SetFileName(str(tmp_path / "a.vtkhdf"))
    reader.Update()
    image = reader.GetOutput()
    assert image.GetSpacing()[0] == 0.25 and image.GetOrigin()[0] == -1.0
    assert image.GetDimensions()[: len(shape)] == tuple(extent + 1 for extent in reversed(shape))
    assert np.array_equal(vtk_to_numpy(image.GetCellData().GetArray("u")), sim["u"].ravel())
    assert np.array_equal(vtk_to_numpy(image.GetPointData().GetArray("nodes")), sim["nodes"].ravel())
