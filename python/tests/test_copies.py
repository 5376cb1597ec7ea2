"""Values in and out: copies that say that they are, masks, and types that stay."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse

import pyabide as ab


@ab.stencil(2, boundary="mirror")
def heat(u, k, kappa=0.1):  # type: ignore[no-untyped-def]
    return {"u": u + kappa * k * ab.laplacian(u)}


def started() -> ab.Simulation:
    return heat.start(u=np.ones((4, 5)), k=1.0, backend="cpu")


def test_copies_refuse_to_be_written_to() -> None:
    sim = started()
    for values in (
        sim["u"],
        sim.window("u", slice(0, 2), slice(0, 2)),
        sim.field("u").values,
        np.asarray(sim.field("u")),
    ):
        assert not values.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            values[0, 0] = 99
    with pytest.raises(ValueError, match="read-only"):
        sim["u"] += 1
    with pytest.raises(ab.Invalid, match=r'write it by sim\["u"\] = array'):
        sim.field("u")[0, 0] = 99
    for frame in sim.frames(1, every=1, progress=False):
        with pytest.raises(ab.Invalid, match="this is a copy"):
            frame["u"][0, 0] = 99
    assert np.array_equal(sim["u"], np.ones((4, 5)))


def test_what_is_asked_to_be_a_copy_is_the_users() -> None:
    sim = started()
    for values in (
        np.array(sim["u"]),
        sim["u"].copy(),
        np.array(sim.field("u")),
        np.from_dlpack(sim.field("u")),
    ):
        values[0, 0] = 99
    own = sim["u"].copy()
    own[0, 0] = 99
    sim["u"] = own
    assert sim["u"][0, 0] == 99 and sim["u"][0, 1] == 1
    data = sim.xarray("u")
    data[0, 0] = 5.0
    assert data[0, 0] == 5.0 and sim["u"][0, 0] == 99


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_array(np.ones((4, 5)), np.eye(4, 5))
    sim = started()
    with pytest.raises(ab.Invalid, match=r"values.filled\(0.0\)"):
        heat.start(u=masked, k=1.0)
    with pytest.raises(ab.Invalid, match="masked"):
        sim["u"] = masked
    # A mask of nothing is a mask, too.
    with pytest.raises(ab.Invalid, match="masked"):
        ab.start("heat", u=np.ma.masked_array(np.ones((4, 5))))
    for A, b, x0 in [
        (np.ma.masked_array(np.eye(4)), np.ones(4), None),
        (np.eye(4), masked[:, 0], None),
        (np.eye(4), np.ones(4), masked[:, 0]),
    ]:
        with pytest.raises(ab.Invalid, match="masked"):
            ab.cg(A, b, x0)
    with pytest.raises(ab.Error):
        ab.stencil(2)(lambda u: u * masked)
    sim["u"] = masked.filled(0.0)


@pytest.mark.parametrize(
    "mask",
    [
        np.eye(4, 5, dtype=bool),
        np.eye(4, 5, dtype=int),
        np.eye(4, 5, dtype="u1"),
        np.eye(4, 5, dtype="i8").tolist(),
        np.eye(4, 5, dtype="f2"),
    ],
)
def test_masks_keep_the_type_of_the_floats_beside_them(mask: object) -> None:
    for first in ("u", "k"):
        fields = (
            {"u": np.ones((4, 5), "f4"), "k": mask}
            if first == "u"
            else {"u": mask, "k": np.ones((4, 5), "f4")}
        )
        sim = heat.start(**fields, backend="cpu")
        assert sim.dtype == np.float32 and np.array_equal(sim["k" if first == "u" else "u"], np.eye(4, 5))
    assert heat.start(u=np.ones((4, 5)), k=mask, backend="cpu").dtype == np.float64
    assert heat.start(u=np.ones((4, 5)), k=mask, dtype="float32", backend="cpu").dtype == np.float32


def test_whole_numbers_alone_are_float64_as_in_numpy() -> None:
    assert heat.start(u=np.eye(4, 5, dtype=bool), k=1.0, backend="cpu").dtype == np.float64
    assert (
        heat.start(u=np.eye(4, 5, dtype=int), k=np.eye(4, 5, dtype=bool), backend="cpu").dtype == np.float64
    )
    assert heat.start(u=np.eye(4, 5, dtype="f2"), k=1.0, backend="cpu").dtype == np.float32


def test_pictures_are_what_their_names_say(tmp_path: Path) -> None:
    sim = started()
    picture, movie = sim.png("u"), sim.movie(2, every=1, progress=False)
    for name in ("a.jpg", "a.jpeg", "a.tif", "a.gif", "a.npy", "a", "a.png.bak"):
        with pytest.raises(ab.Invalid, match=r"a picture is written as .png"):
            picture.save(tmp_path / name)
    for name in ("x.mp4", "x.webm", "x.avi", "x.png", "x", ".gif"):
        with pytest.raises(ab.Invalid, match=r"a movie is written as .gif"):
            movie.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    picture.save(tmp_path / "a.PNG")
    movie.save(str(tmp_path / "x.gif"))
    assert (tmp_path / "a.PNG").read_bytes() == picture and (tmp_path / "x.gif").read_bytes() == movie


def test_vectors_of_solvers_are_checked() -> None:
    A = sparse.eye_array(4).tocsr()
    for b in ("abcd", [[1], [2, 3]], np.ones(3), np.ones((4, 2)), None, np.array([object()] * 4), 1.0):
        with pytest.raises(ab.Error):
            ab.cg(A, b, backend="cpu")
