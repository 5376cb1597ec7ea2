//! `abide solve` and `abide bench solvers`.

use std::io::Write as _;

use abide::sparse::market;
use abide::{Array, DType};

use super::{Place, exists, json, words};

/// The lower triangle of the 1D Laplacian plus 1, of 4 rows.
const MATRIX: &str = "%%MatrixMarket matrix coordinate real symmetric\n4 4 7\n1 1 3\n2 2 3\n3 3 3\n4 4 3\n2 1 -1\n3 2 -1\n4 3 -1\n";

fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.path("a.mtx"), MATRIX).unwrap();
    place
}

fn close(x: &Array, expected: &[f64]) {
    let x = x.to_f64();
    assert!(x.len() == expected.len() && x.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-7), "{x:?}");
}

/// With x = 1, 2, 3, 4 the product is 1, 2, 3, 9.
#[test]
fn a_file_is_solved_by_every_method_and_type() {
    let place = place();
    let b = "%%MatrixMarket matrix array real general\n4 1\n1\n2\n3\n9\n";
    std::fs::write(place.path("b.mtx"), b).unwrap();
    for method in ["cg", "cg-single", "cg-pipelined:9", "bicgstab", "gmres:3", "chebyshev", "jacobi:0.9"] {
        for preconditioner in ["none", "jacobi", "block-jacobi:2", "chebyshev:2", "ilu", "amg:0.1"] {
            let line = format!(
                "solve a.mtx --rhs b.mtx --method {method} --preconditioner {preconditioner} --backend cpu --output x.mtx"
            );
            place.works(&line);
            close(&market::read_vector(place.path("x.mtx"), DType::F64).unwrap(), &[1.0, 2.0, 3.0, 4.0]);
        }
    }
    place.works("solve a.mtx --rhs b.mtx --backend cpu --dtype mixed --tolerance 1e-14 --output x.npy");
    close(&place.read("x.npy").values, &[1.0, 2.0, 3.0, 4.0]);
    place.works("solve a.mtx --rhs x.npy --backend cpu --dtype f32 --tolerance 1e-5 --output y.npy");
    assert_eq!(place.read("y.npy").values.dtype(), DType::F32);
}

#[test]
fn a_compressed_file_is_read() {
    let place = place();
    let file = std::fs::File::create(place.path("z.mtx.gz")).unwrap();
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    file.write_all(MATRIX.as_bytes()).unwrap();
    file.finish().unwrap();
    let text = place.works("solve z.mtx.gz --backend cpu");
    assert!(text.contains("4 rows, 10 entries") && text.contains("converged"), "{text}");
}

#[test]
fn the_report_the_history_and_the_plot_tell_the_same() {
    let place = Place::new();
    let line =
        "solve --matrix laplacian2d:20x21 --rhs random:3 --backend cpu --history h.csv --plot h.svg --json";
    let reported = json(&place.works(line));
    assert_eq!((reported["converged"].as_bool(), reported["error"].is_null()), (Some(true), true));
    let report = &reported["report"];
    let history: Vec<f64> =
        report["history"].as_array().unwrap().iter().map(|r| r.as_f64().unwrap()).collect();
    let iterations = report["iterations"].as_u64().unwrap() as usize;
    assert_eq!(history.len(), iterations + 1);
    let file = std::fs::read_to_string(place.path("h.csv")).unwrap();
    let lines: Vec<&str> = file.lines().collect();
    assert_eq!((lines[0], lines.len()), ("iteration,residual", iterations + 2));
    for (k, residual) in history.iter().enumerate() {
        let (number, value) = lines[k + 1].split_once(',').unwrap();
        assert_eq!((number.parse(), value.parse()), (Ok(k), Ok(*residual)));
    }
    assert!(std::fs::read_to_string(place.path("h.svg")).unwrap().contains("<svg"));
    // The residual of the iterate at 0 is the right-hand side.
    let residual = &reported["residual"];
    assert!((residual["norm_of_b"].as_f64().unwrap() / history[0] - 1.0).abs() < 1e-12);
    let (recurred, truth) = (residual["recurred"].as_f64().unwrap(), residual["true"].as_f64().unwrap());
    assert!(truth <= 1.001e-8 * history[0] && (truth / recurred - 1.0).abs() < 1e-3, "{truth} {recurred}");
    assert_eq!(
        (reported["plan"]["method"].as_str(), reported["plan"]["product"].as_str()),
        (Some("cg"), Some("rows"))
    );
    assert!(reported["us_per_iteration"].as_f64().unwrap() > 0.0);
    let text = place.works("solve --matrix laplacian2d:20x21 --backend cpu --verbose");
    for words in [
        "420 rows, 2018 entries",
        "s each",
        "by the recurrence",
        "the least possible",
        "was chosen by the matrix",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn an_operator_is_solved_without_being_stored() {
    let place = Place::new();
    let line =
        "solve --operator laplacian3d --size 7x8x9 --rhs random:5 --backend cpu --tolerance 1e-12 --output";
    place.works(&format!("{line} u.npy"));
    let u = place.read("u.npy");
    assert_eq!(u.shape.extents(), [7, 8, 9]);
    place.works(
        "solve --matrix laplacian3d:7x8x9 --rhs random:5 --backend cpu --tolerance 1e-12 --output v.npy",
    );
    close(&place.read("v.npy").values, &u.values.to_f64());
    let text =
        place.works("solve --operator 3d7pt --size 6x7x8 --boundary y=periodic,x=mirror --backend cpu");
    assert!(text.contains("7 taps, never stored") && text.contains("gmres"), "{text}");
}

#[test]
fn what_does_not_converge_is_reported_and_fails() {
    let place = Place::new();
    let line = "solve --matrix laplacian2d:40x40 --rhs random:1 --backend cpu --max-iterations 7";
    let output = place.command(&format!("{line} --history h.csv --output x.npy --json")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        words(&output).starts_with("error: cg did not converge: the limit on iterations"),
        "{}",
        words(&output)
    );
    let reported = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(
        (reported["converged"].as_bool(), reported["report"]["iterations"].as_u64()),
        (Some(false), Some(7))
    );
    assert_eq!(std::fs::read_to_string(place.path("h.csv")).unwrap().lines().count(), 9);
    // A vector that is no solution is not written as one.
    assert!(!exists(&place.path("x.npy")));
}

#[test]
fn bad_requests_are_refused_in_words() {
    let place = place();
    std::fs::write(place.path("bad.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 3\n")
        .unwrap();
    std::fs::write(place.path("wide.mtx"), "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 1 3\n")
        .unwrap();
    std::fs::write(place.path("hole.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n")
        .unwrap();
    let cases: [(&str, &[&str]); 14] = [
        ("solve none.mtx", &["none.mtx"]),
        ("solve bad.mtx", &["bad.mtx", "line 3"]),
        ("solve wide.mtx --backend cpu", &["1 rows and 2 columns"]),
        ("solve hole.mtx --backend cpu", &["singular", "row 1"]),
        ("solve --operator 2d5pt --size 9x9 --method cg --backend cpu", &["symmetric", "gmres"]),
        ("solve a.mtx --method sor", &["sor", "bicgstab"]),
        ("solve a.mtx --preconditioner ssor", &["ssor", "block-jacobi", "amg"]),
        ("solve a.mtx --rhs twos", &["twos", "random:SEED"]),
        ("solve a.mtx --rhs a.mtx", &["a.mtx"]),
        ("solve a.mtx --tolerance -1 --backend cpu", &["tolerance"]),
        ("solve a.mtx --output x.txt", &["x.txt", ".npy"]),
        ("solve a.mtx --output x.npy --history x.npy", &["two outputs"]),
        ("solve --matrix cube:3", &["cube:3", "hpcg"]),
        ("solve --operator laplacian2d --size 9x9 --boundary constant=1", &["right-hand side"]),
    ];
    for (line, reasons) in cases {
        let output = place.command(line).output().unwrap();
        let reported = words(&output);
        assert!(!output.status.success() && !reported.contains("panicked"), "abide {line}: {reported}");
        for reason in reasons {
            assert!(reported.contains(reason), "abide {line}: {reported} does not say {reason}");
        }
    }
    place.fails("bench solvers --matrix cube:3", &["cube:3"]);
    place.fails("bench solvers --operator laplacian2d", &["laplacian2d/1000x999"]);
    place.fails("bench solvers --repeats 2", &["at least 5"]);
}

#[test]
fn solvers_are_timed_and_checked() {
    let place = place();
    let indefinite = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 1 2\n2 2 1\n";
    std::fs::write(place.path("indefinite.mtx"), indefinite).unwrap();
    let line = "bench solvers --backend cpu --quick --repeats 1 --matrix a.mtx --matrix indefinite.mtx \
                --operator laplacian2d/9x8 --method cg --method jacobi --csv results.csv";
    // A system that no method solves is reported, and the command fails.
    let output = place.command(line).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("µs/iter") && text.contains("indefinite.mtx f64 jacobi auto  FAILED: "), "{text}");
    let results = std::fs::read_to_string(place.path("results.csv")).unwrap();
    let lines: Vec<&str> = results.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines[0],
        "matrix,dtype,rows,nnz,method,cache,us_per_iteration,spread_percent,us_per_solve,iterations,true_residual"
    );
    assert_eq!(lines.len(), 5, "{results}");
    assert!(lines[1].starts_with("\"a.mtx\",f64,4,10,cg,none,"), "{results}");
    assert!(lines[3].starts_with("\"laplacian2d/9x8 matrix-free\",f64,72,360,cg,none,"), "{results}");
    let reported =
        json(&place.works("bench solvers --backend cpu --quick --matrix trefethen:50 --dtype mixed --json"));
    let row = &reported["rows"][0];
    assert_eq!((reported["holds"].as_bool(), row["dtype"].as_str()), (Some(true), Some("mixed")));
    assert!(row["true_residual"].as_f64().unwrap() <= 1e-8);
}

#[test]
fn a_pure_neumann_problem_needs_a_right_hand_side_without_a_mean() {
    let place = Place::new();
    let line = "solve --operator laplacian2d --size 8x9 --boundary mirror --rhs random:3 --backend cpu";
    let output = place.command(line).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = words(&output);
    assert!(
        said.contains("its rows add up to 0, so must b") && said.contains("(nullspace constant)"),
        "{said}"
    );
    place.works(&format!("{line} --nullspace constant --tolerance 1e-10 --output u.npy"));
    let u = place.read("u.npy").values.to_f64();
    assert!(u.iter().sum::<f64>().abs() < 1e-9 && u.iter().any(|u| u.abs() > 0.1));
    let refused = place.command("solve --matrix laplacian2d:8x9 --nullspace constant --backend cpu").output();
    let said = words(&refused.unwrap());
    assert!(said.contains("row 0 of the matrix adds up to"), "{said}");
}

#[test]
fn the_method_rests_on_symmetry_within_rounding() {
    let place = Place::new();
    let write = |name: &str, value: &str| {
        let head = "%%MatrixMarket matrix coordinate real general\n3 3 6\n1 1 2.3\n2 2 2.3\n3 3 2.3\n";
        let text = format!("{head}1 2 -1\n2 1 -1\n1 3 {value}\n");
        std::fs::write(place.path(name), text).unwrap();
    };
    write("rounded.mtx", "7e-18");
    let text = place.works("solve rounded.mtx --backend cpu");
    assert!(text.contains("method cg was chosen by the matrix: it is symmetric within rounding"), "{text}");
    place.works("solve rounded.mtx --method cg --backend cpu");
    write("skewed.mtx", "1e-6");
    let said = words(&place.command("solve skewed.mtx --method cg --backend cpu").output().unwrap());
    assert!(said.contains("needs a symmetric matrix") && said.contains("(assume-symmetric)"), "{said}");
    place.works("solve skewed.mtx --method cg --assume-symmetric --tolerance 1e-5 --backend cpu");
    let text = place.works("solve skewed.mtx --backend cpu");
    assert!(text.contains("method gmres was chosen by the matrix: it is not symmetric"), "{text}");
}
