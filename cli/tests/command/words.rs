//! Words that people try: values that begin with a minus sign, and words of other tools.

use super::{Place, words};

#[test]
fn values_may_begin_with_a_minus_sign() {
    let place = Place::new();
    for line in [
        "run heat --size 8x8 --steps 1 --boundary -mirror",
        "run heat --size 8x8 --steps 1 --boundary -reflect",
        "run heat --size 8x8 --steps 1 --boundary y=-mirror,x=mirror",
        "run heat --size 8x8 --steps 1 --param kappa=-0.1",
        "run heat --size 8x8 --steps 1 --range -1:1 --output u.png",
    ] {
        place.works(&format!("{line} --backend cpu"));
    }
    place.works("plan heat --size 8x8 --boundary -mirror --device a100");
    // What is wrong with a negative number is said by the option, wherever one is given.
    for (line, reason) in [
        ("run heat --steps -1", "steps `-1`"),
        ("run heat --steps 1 --devices -2", "devices `-2`"),
        ("run heat --steps 1 --batch -3", "members of a batch `-3`"),
        ("run heat --size -5 --steps 1", "-5"),
        ("run heat --steps 1 --depth -2", "-2"),
        ("run heat --steps 1 --jam -1", "-1"),
        ("solve a.mtx --max-iterations -3", "iterations `-3`"),
        ("solve a.mtx --time-limit -1", "time `-1`"),
    ] {
        let output = place.command(line).output().unwrap();
        let reported = words(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {reported}");
        assert!(reported.contains(reason) && !reported.contains("unexpected argument"), "{line}: {reported}");
    }
}

#[test]
fn other_words_lead_to_ours() {
    let place = Place::new();
    std::fs::write(place.path("spots.toml"), "axes = 1\n").unwrap();
    std::fs::write(place.path("other.tml"), "axes = 1\n").unwrap();
    for (line, meant) in [
        ("run heat --steps 1 --boundary dirichlet", "write dirichlet=G"),
        ("run heat --steps 1 --boundary neumann", "write neumann=Q"),
        ("run heat --steps 1 --boundary x=Neumann", "did you mean `neumann=Q`?"),
        ("run heat --steps 1 --boundary perodic", "did you mean `periodic`?"),
        ("run heat --steps 1 --input gaus", "did you mean `gaussian`?"),
        ("run heat --steps 1 --input noise", "did you mean `random:SEED`?"),
        ("run heat --steps 1 --dtype float32", "did you mean `f32`?"),
        ("run heat --steps 1 --dtype double", "did you mean `f64`?"),
        ("run heat --steps 1 --backend gpu", "did you mean `cuda` or `wgpu`?"),
        ("run heat --steps 1 --backend CPU", "did you mean `cpu`?"),
        ("run HEAT --steps 1", "did you mean `heat`?"),
        ("run gray_scott --steps 1", "did you mean `gray-scott`?"),
        ("run spots.tml --steps 1", "did you mean `spots.toml`?"),
        ("run other.tml --steps 1", "the name of a model file ends in .toml"),
        ("run heat --steps 1e3", "did you mean 1000?"),
        ("run heat --steps 10_000", "did you mean 10000?"),
        ("run heat --steps 10 --every 1e1 --frames f%d.npy", "did you mean 10?"),
        ("run heat --steps 10 --batch 4.0", "did you mean 4?"),
        ("run heat --steps 1 --param kapa=1", "did you mean `kappa`?"),
        ("run heat --steps 1 --size 8x8 --output U=u.npy", "did you mean `u`?"),
        ("run heat --steps 1 --execution Persistent", "did you mean `persistent`?"),
        ("run heat --steps 1 --cache smem", "did you mean `shared`?"),
        ("run heat --step 1", "--steps"),
        ("solve --matrix laplacian2d:9x9 --method CG", "did you mean `cg`?"),
        ("solve --matrix laplacian2d:9x9 --method conjugate-gradient", "did you mean `cg`?"),
        ("solve --matrix laplacian2d:9x9 --preconditioner diagonal", "did you mean `jacobi`?"),
        ("solve --matrix laplacian:9x9", "did you mean `laplacian2d"),
        ("solve --matrix laplacian2d:9x9 --max-iterations 1e3", "did you mean 1000?"),
        ("solve --matrix laplacian2d:9x9 --dtype float64", "did you mean `f64`?"),
        ("plan heat --device hopper", "did you mean `h100` or `h200`?"),
        ("gas --mixture ch4 --T 300 --p 1e5", "did you mean `CH4`?"),
        ("verify --backend gpu", "did you mean"),
    ] {
        let output = place.command(line).output().unwrap();
        let reported = words(&output);
        assert!(!output.status.success(), "{line} works");
        assert!(reported.contains(meant), "{line}: {reported} does not say {meant}");
    }
    for (text, meant) in [
        ("boundary = \"neumann\"", "write neumann=Q"),
        ("dims = 2", "did you mean `axes`?"),
        ("axes = 1\n[fields]\nu = \"gaus\"", "did you mean `gaussian`?"),
        ("axes = 1\n[fields]\nu = { init = 1 }", "did you mean `start`?"),
        ("axes = 1\n[fields]\nu = 1\n[[stages]]\nu = \"ln(u)\"", "did you mean `log`?"),
        ("axes = 1\n[fields]\ndensity = 1\n[[stages]]\ndensity = \"2*desnity\"", "did you mean `density`?"),
        ("base = \"HEAT\"", "did you mean `heat`?"),
    ] {
        let text = if text.contains("axes") || text.contains("base") {
            text.to_owned()
        } else {
            format!("axes = 1\n{text}")
        };
        std::fs::write(place.path("m.toml"), &text).unwrap();
        let reported = words(&place.command("run m.toml --steps 1 --size 8").output().unwrap());
        assert!(reported.contains(meant), "{text}: {reported} does not say {meant}");
    }
}
