//! Every kind of bad input gets its error and leaves existing files untouched.

use abide::Array;

use super::{Place, noise};

/// Makes a place with a good input and an output that must survive.
fn place() -> Place {
    let place = Place::new();
    place.write("x.npy", &[6, 5], &Array::F64(noise(30, 9)));
    std::fs::write(place.path("y.npy"), "precious").unwrap();
    place
}

/// Returns an npy file of this type descriptor and claimed extents, with `data` behind its header.
fn npy(descriptor: &str, extents: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {extents}, }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

#[test]
fn arguments() {
    let place = place();
    let rest = "--size 6x5 --output y.npy --backend cpu";
    for (line, reasons) in [
        ("run 2d6pt --steps 1", &["no stencil is named `2d6pt`", "2d5pt"][..]),
        ("run 2d5pt", &["--steps"]),
        ("run 2d5pt --steps -3", &["steps `-3`", "not a whole number of 0 or more"]),
        ("run 2d5pt --steps 1.5", &["steps `1.5`"]),
        ("run 2d5pt --steps many", &["steps `many`"]),
        ("run 2d5pt --steps 1 --dtype f16", &["no dtype is named `f16`", "f32, f64"]),
        ("run 2d5pt --steps 1 --boundary round", &["no boundary is named `round`"]),
        ("run 2d5pt --steps 1 --boundary constant=nan", &["no boundary is named"]),
        ("run 2d5pt --steps 1 --boundary z=fixed", &["no axis is named `z`", "y, x"]),
        ("run 2d5pt --steps 1 --boundary x-=periodic", &["only one side is periodic"]),
        ("run heat --steps 1 --param kapa=0.1", &["no parameter is named `kapa`", "kappa"]),
        ("run heat --steps 1 --param kappa=warm", &["parameter `kappa=warm`", "not a name and a number"]),
        ("run heat --steps 1 --param kappa", &["not a name and a number"]),
        ("run heat --steps 1 --param kappa=nan", &["not a finite number"]),
        ("run heat --steps 1 --param kappa=1e300", &["not a finite number in f32"]),
        ("run heat --steps 1 --backend tpu", &["no backend is named `tpu`", "auto, cuda, wgpu, cpu"]),
        ("run heat --steps 1 --execution lazy", &["no execution is named `lazy`"]),
        ("run heat --steps 1 --cache l2", &["no cache policy is named `l2`"]),
        ("run heat --steps 1 --depth 0", &["depth `0`"]),
        ("run heat --steps 1 --tune fast", &["no tuning is named `fast`", "off, kept, quick, full"]),
        (
            "run heat --steps 1 --execution persistent --cache shared",
            &["cannot run this: cache shared was asked for"],
        ),
        ("run heat --steps 1 --execution streaming --depth 1000", &["temporal depth", "256"]),
        ("run heat --steps 1 --input noise", &["no start is named `noise`"]),
        ("run heat --steps 1 --input random:x", &["no start is named `random:x`"]),
        ("run heat --steps 1 --input q=gaussian", &["no field is named `q`"]),
        ("run heat --steps 1 --range 2:1", &["range `2:1`"]),
    ] {
        place.fails(&format!("{line} {rest}"), reasons);
    }
}

#[test]
fn sizes() {
    let place = place();
    let rest = "--steps 1 --output y.npy --backend cpu";
    for (line, reasons) in [
        ("run 2d5pt --size 6x0", &["an extent is zero"][..]),
        ("run 2d5pt --size 6", &["2d5pt", "limit is 2"]),
        ("run 2d5pt --size 6x-5", &["size `6x-5`"]),
        ("run 2d5pt --size big", &["size `big`"]),
        ("run 2d5pt --size 4294967296x4294967296", &["cells of a domain"]),
        ("run 2d5pt --size 9999999999999999999999x2", &["size `"]),
        ("run 2d5pt --size 30000000x30000000", &["memory for the fields", "choose a smaller --size"]),
        (
            "run 2ds25pt --size 5x64 --boundary periodic --execution streaming",
            &["execution streaming", "on axes no shorter than they reach"],
        ),
        (
            "run 2ds25pt --size 64x5 --boundary mirror --depth 3",
            &["depth 3", "on axes no shorter than they reach"],
        ),
        ("run 2d5pt --size 7x5 --input x.npy", &["x.npy", "its size is 6x5, the domain's is 7x5"]),
        (
            "run cloverleaf --size 5x6 --input vol_flux_x=x.npy",
            &["x.npy", "its size is 6x5, the field's is 5x7"],
        ),
        ("run 3d7pt --input x.npy", &["axes of 3d7pt", "2 asked"]),
    ] {
        place.fails(&format!("{line} {rest}"), reasons);
    }
}

#[test]
fn inputs() {
    let place = place();
    let write = |name: &str, contents: &[u8]| std::fs::write(place.path(name), contents).unwrap();
    write("complex.npy", &npy("<c16", "(2, 2)", &[0; 64]));
    write("whole.npy", &npy("<i8", "(2, 2)", &[0; 32]));
    write("lie.npy", &npy("<f8", "(1000000, 1000000)", &[0; 32]));
    write("four.npy", &npy("<f8", "(1, 1, 2, 2)", &[0; 32]));
    write("cut.npy", &npy("<f8", "(2, 2)", &[0; 31]));
    write("long.npy", &npy("<f8", "(2, 2)", &[0; 33]));
    write("foreign.npy", b"not an array at all");
    write("nested.npy", &[b"\x93NUMPY\x01\x00\x1f\x00", &[b'{'; 30][..], b"\n"].concat());
    let records = b"{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1,)}\n";
    write(
        "records.npy",
        &[b"\x93NUMPY\x03\x00", &(records.len() as u32).to_le_bytes()[..], records, &[0; 8]].concat(),
    );
    write("empty.npy", b"");
    write("foreign.png", b"not a picture at all");
    write("cut.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF");
    write("x.csv", b"1,2");
    std::fs::create_dir(place.path("folder.npy")).unwrap();
    let rest = "--steps 1 --output y.npy --backend cpu";
    for (input, reasons) in [
        ("missing.npy", &["missing.npy", "give a file that exists"][..]),
        ("folder.npy", &["folder.npy", "it is a folder"]),
        ("complex.npy", &["complex numbers", "<c16"]),
        ("whole.npy", &["whole numbers", "<i8"]),
        ("lie.npy", &["promises 1000000000000 values"]),
        ("four.npy", &["[1, 1, 2, 2]"]),
        ("cut.npy", &["promises 4 values of 8 bytes, 31 bytes follow"]),
        ("long.npy", &["goes on after the 4 values"]),
        ("foreign.npy", &["not a .npy file"]),
        ("empty.npy", &["not a .npy file"]),
        (
            "nested.npy",
            &["not a .npy file: its header has '{' at byte 1 where a key in quotes is due; save it"],
        ),
        ("records.npy", &["it holds records"]),
        ("foreign.png", &["foreign.png"]),
        ("cut.jpg", &["cut.jpg"]),
        ("x.csv", &["no input format has this extension", ".tif, .png or .jpg"]),
    ] {
        place.fails(&format!("run 2d5pt --input {input} {rest}"), reasons);
    }
    place.fails(&format!("run gray-scott --input u=x.npy --input v=cut.npy {rest}"), &["cut.npy"]);
    place.write("other.npy", &[5, 6], &Array::F64(noise(30, 9)));
    place.fails(
        &format!("run gray-scott --input u=x.npy --input v=other.npy {rest}"),
        &["other.npy", "5x6", "6x5"],
    );
}

#[test]
fn outputs() {
    let place = place();
    for (line, reasons) in [
        ("--output y.npy --output missing/z.npy", &["missing", "is not there"][..]),
        ("--output y.npy --output z.txt", &["no output format", ".vti, .gif, .tif or .h5"]),
        ("--output y.npy --output q=z.npy", &["no field is named `q`"]),
        ("--output y.npy --output y.npy", &["two outputs have this name"]),
        ("--output y.npy --output z.gif", &["--output with .gif", "--every is missing"]),
        ("--output y.npy --frames out_%d.png", &["--frames", "--every is missing"]),
        ("--output y.npy --checkpoint c.npz", &["--checkpoint", "--every is missing"]),
        ("--output y.npy --every 5", &["--every", "nothing is written on the way"]),
        ("--output y.npy --checkpoint c.npz --every 0", &["interval `0`"]),
        ("--output y.npy --checkpoint c.npz --every -2", &["interval `-2`"]),
        ("--output y.npy --checkpoint no/c.npz --every 1", &["no is not there"]),
        ("--output y.npy --frames out.png --every 1", &["no place for a number"]),
        ("--output y.npy --frames out_%+5d.png --every 1", &["the number is not written %d or %05d"]),
        ("--output y.npy --frames out_%d.gif --every 1", &["holds all frames in one file"]),
        ("--output y.npy --frames no/out_%d.png --every 1", &["no is not there"]),
    ] {
        place.fails(&format!("run heat --size 6x5 --steps 3 --backend cpu {line}"), reasons);
    }
    place.fails(
        "run heat --size 1x70000 --steps 1 --output y.npy --output z.gif --every 1 --backend cpu",
        &["the limit is 65535"],
    );
}

#[test]
fn checkpoints() {
    let place = place();
    place.works("run gray-scott --size 9x8 --steps 5 --dtype f64 --checkpoint c.npz --every 5 --backend cpu");
    let whole = std::fs::read(place.path("c.npz")).unwrap();
    std::fs::write(place.path("cut.npz"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(place.path("foreign.npz"), "not a checkpoint").unwrap();
    let rest = "--steps 1 --output y.npy --backend cpu";
    for (line, reasons) in [
        ("run gray-scott --resume missing.npz", &["missing.npz"][..]),
        ("run gray-scott --resume cut.npz", &["not a checkpoint"]),
        ("run gray-scott --resume foreign.npz", &["not a checkpoint"]),
        ("run gray-scott --resume x.npy", &["not a checkpoint"]),
        ("run heat --resume c.npz", &["the program", "gray-scott", "heat"]),
        ("run gray-scott --resume c.npz --size 8x9", &["the size", "9x8", "8x9"]),
        ("run gray-scott --resume c.npz --dtype f32", &["the dtype", "f64", "f32"]),
        ("run gray-scott --resume c.npz --boundary mirror", &["the boundary", "periodic", "mirror"]),
        ("run gray-scott --resume c.npz --param feed=0.5", &["parameter feed", "0.03", "0.5"]),
        ("run gray-scott --resume c.npz --input random:1", &["brings all fields with it"]),
        ("run gray-scott --resume c.npz --input own", &["brings all fields with it"]),
    ] {
        place.fails(&format!("{line} {rest}"), reasons);
    }
}
