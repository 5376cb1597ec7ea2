//! "Did you mean": what a word that is not known stands for, among those that are.

/// Words of other tools and languages, and what Abide calls the same thing. A word is suggested only where it is
/// one of the known ones, so that the table needs no kinds.
#[rustfmt::skip]
const SYNONYMS: &[(&str, &[&str])] = &[
    // Boundaries.
    ("dirichlet", &["fixed", "constant=C"]), ("held", &["fixed"]), ("wall", &["fixed", "mirror"]),
    ("neumann", &["mirror"]), ("zeroflux", &["mirror"]), ("noflux", &["mirror"]), ("symmetric", &["mirror"]),
    ("insulated", &["mirror"]), ("adiabatic", &["mirror"]), ("reflecting", &["reflect", "mirror"]),
    ("reflective", &["reflect", "mirror"]), ("antisymmetric", &["-mirror", "-reflect"]), ("odd", &["-mirror", "-reflect"]),
    ("even", &["mirror", "reflect"]), ("wrap", &["periodic"]), ("cyclic", &["periodic"]), ("circular", &["periodic"]),
    ("torus", &["periodic"]), ("toroidal", &["periodic"]), ("nearest", &["clamp"]), ("edge", &["clamp"]),
    ("replicate", &["clamp"]), ("outflow", &["clamp"]), ("zero", &["constant=C"]), ("zeros", &["constant=C"]),
    // Types.
    ("float32", &["f32"]), ("single", &["f32"]), ("float", &["f32"]), ("fp32", &["f32"]), ("real4", &["f32"]),
    ("float64", &["f64"]), ("double", &["f64"]), ("fp64", &["f64"]), ("real8", &["f64"]), ("np.float32", &["f32"]),
    ("np.float64", &["f64"]),
    // Backends and devices.
    ("gpu", &["cuda", "wgpu"]), ("nvidia", &["cuda"]), ("nvcc", &["cuda"]), ("vulkan", &["wgpu"]), ("metal", &["wgpu"]),
    ("dx12", &["wgpu"]), ("directx", &["wgpu"]), ("webgpu", &["wgpu"]), ("amd", &["wgpu"]), ("hip", &["wgpu"]),
    ("rocm", &["wgpu"]), ("intel", &["wgpu", "cpu"]), ("opencl", &["wgpu"]), ("host", &["cpu"]), ("openmp", &["cpu"]),
    ("threads", &["cpu"]), ("serial", &["cpu"]), ("any", &["auto"]), ("default", &["auto"]), ("best", &["auto"]),
    ("v100s", &["v100"]), ("hopper", &["h100", "h200"]), ("ampere", &["a100"]), ("volta", &["v100"]),
    ("blackwell", &["b200", "rtx5090"]), ("ada", &["rtx4090", "l40s"]), ("lovelace", &["rtx4090", "l40s"]),
    ("4090", &["rtx4090"]), ("5090", &["rtx5090"]), ("a6000", &["rtxa6000"]), ("a770", &["arca770"]), ("arc", &["arca770"]),
    ("gb200", &["b200"]), ("instinct", &["mi300x"]), ("cdna3", &["mi300x"]), ("apple", &["m3max"]),
    // Starts.
    ("noise", &["random:SEED"]), ("rand", &["random:SEED"]), ("uniform", &["random:SEED"]), ("normal", &["gaussian"]),
    ("bump", &["gaussian"]), ("delta", &["point"]), ("dirac", &["point"]), ("default", &["own"]), ("model", &["own"]),
    // Solvers.
    ("conjugategradient", &["cg"]), ("conjugategradients", &["cg"]), ("pcg", &["cg"]), ("pipelinedcg", &["cg-pipelined"]),
    ("pipecg", &["cg-pipelined"]), ("bicg", &["bicgstab"]), ("bcgs", &["bicgstab"]), ("fgmres", &["gmres"]), ("symmlq", &["minres"]),
    ("krylov", &["cg", "gmres"]), ("richardson", &["jacobi"]), ("diagonal", &["jacobi"]), ("diag", &["jacobi"]),
    ("bjacobi", &["block-jacobi"]), ("ic", &["ilu"]), ("ic0", &["ilu"]),
    ("ilu0", &["ilu"]), ("cholesky", &["ilu"]), ("spilu", &["ilu"]), ("multigrid", &["amg"]), ("pyamg", &["amg"]),
    ("smoothedaggregation", &["amg"]), ("poly", &["chebyshev"]), ("identity", &["none"]),
    // Schedules and other choices.
    ("no", &["off", "none"]), ("false", &["off", "none"]), ("never", &["off", "none"]), ("registers", &["registers"]),
    ("register", &["registers"]), ("smem", &["shared"]), ("sharedmemory", &["shared"]), ("naive", &["stepwise"]),
    ("perks", &["persistent"]), ("ebisu", &["streaming"]), ("tiled", &["overlapped"]), ("nccl", &["network"]),
    ("mpi", &["messages"]), ("p2p", &["copies", "stores"]), ("genetic", &["search"]), ("unrolled", &["straight"]),
    // Stencils and models.
    ("diffusion", &["heat"]), ("laplace", &["2d5pt", "3d7pt", "laplacian2d", "laplacian"]),
    ("poisson", &["2d5pt", "3d7pt", "laplacian2d"]), ("laplacian", &["laplacian2d", "laplacian3d"]),
    ("jacobi", &["2d5pt", "3d7pt"]), ("gol", &["life"]), ("conway", &["life"]), ("gameoflife", &["life"]),
    ("reactiondiffusion", &["gray-scott"]), ("maxwell", &["fdtd-tm", "fdtd-3d"]), ("fdtd", &["fdtd-tm", "fdtd-3d"]),
    // Colour maps.
    ("coolwarm", &["diverging"]), ("rdbu", &["diverging"]), ("bwr", &["diverging"]), ("seismic", &["diverging"]),
    ("gray", &["grey"]), ("jet", &["turbo"]), ("rainbow", &["turbo"]), ("hot", &["inferno"]),
    // Functions of formulas.
    ("ln", &["log"]), ("fabs", &["abs"]), ("absolute", &["abs"]), ("power", &["pow"]), ("maximum", &["max"]),
    ("minimum", &["min"]), ("fmax", &["max"]), ("fmin", &["min"]), ("if", &["where"]), ("select", &["where"]),
    ("arctan2", &["atan2"]), ("lap", &["laplacian"]), ("sqr", &["sqrt"]), ("product", &["prod"]), ("reduce", &["fold"]),
    // Keys of model files.
    ("dim", &["axes"]), ("dims", &["axes"]), ("dimensions", &["axes"]), ("ndim", &["axes"]), ("variables", &["fields"]),
    ("params", &["parameters"]), ("constants", &["parameters", "tables"]), ("init", &["start"]), ("initial", &["start"]),
    ("value", &["default", "start"]), ("bc", &["boundary"]), ("boundaries", &["boundary"]), ("doc", &["about"]),
    ("description", &["about"]), ("equations", &["stages"]), ("options", &["run"]), ("min", &["low"]), ("max", &["high"]),
];

/// Returns what a word that is not known may stand for among the known ones, best first; none where nothing is near.
///
/// ```
/// use abide_core::words::meant;
///
/// assert_eq!(meant("gray_scott", ["heat", "gray-scott"]), ["gray-scott"]);
/// assert_eq!(meant("Neumann", ["fixed", "mirror"]), ["mirror"]);
/// assert!(meant("tarantella", ["heat", "wave"]).is_empty());
/// ```
pub fn meant<'k>(asked: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    let plain = plain(asked);
    if plain.is_empty() || asked.len() > LONGEST {
        return Vec::new();
    }
    let find = |wanted: &str| known.iter().copied().find(|name| self::plain(name) == wanted);
    if let Some(same) = find(&plain) {
        return vec![same];
    }
    let others = SYNONYMS.iter().filter(|(word, _)| self::plain(word) == plain).flat_map(|(_, ours)| *ours);
    let mut same: Vec<&str> =
        others.filter_map(|ours| known.iter().copied().find(|name| name == ours)).collect();
    same.truncate(MOST);
    if !same.is_empty() {
        return same;
    }
    // The beginning of one name alone, or a name with something after it.
    let mut begun =
        known.iter().copied().filter(|name| plain.len() > 1 && self::plain(name).starts_with(&plain));
    if let (Some(one), None) = (begun.next(), begun.next()) {
        return vec![one];
    }
    let far = |name: &str| strsim::damerau_levenshtein(&plain, &self::plain(name));
    let nearest = known.iter().map(|name| (far(name), *name)).min_by_key(|(far, _)| *far);
    // A third of the letters may be wrong, of two or three letters one where the first is right.
    let letters = plain.chars().count();
    let is_near = |(far, name): &(usize, &str)| match letters {
        0 | 1 => false,
        2 | 3 => *far == 1 && self::plain(name).chars().next() == plain.chars().next(),
        letters => *far <= letters / 3,
    };
    nearest.filter(is_near).map(|(_, name)| name).into_iter().collect()
}

/// The most words of a suggestion.
const MOST: usize = 2;
/// Words longer than this are compared with nothing: the time grows with the product of the lengths.
const LONGEST: usize = 64;

/// Returns a word as it is compared: small letters and digits alone, without what follows `:` or `=`, which is a
/// value. The sign of `-mirror` is part of the word.
fn plain(word: &str) -> String {
    let end = word.char_indices().skip(1).find(|(_, letter)| matches!(letter, ':' | '='));
    let word = &word[..end.map_or(word.len(), |(at, _)| at)];
    let letters = word.char_indices().filter(|(at, letter)| match letter {
        '-' => *at == 0,
        letter => !matches!(letter, '_' | ' '),
    });
    letters.flat_map(|(_, letter)| letter.to_lowercase()).collect()
}

/// Returns a suggestion as a part of a sentence, as in "; did you mean `mirror`?"; empty where nothing is near.
pub fn suggestion<'k>(asked: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let meant: Vec<String> = meant(asked, known).into_iter().map(|word| format!("`{word}`")).collect();
    if meant.is_empty() { String::new() } else { format!("; did you mean {}?", meant.join(" or ")) }
}

/// Returns the whole number that a text which is none stands for: `1e3`, `1_000`, `1,000`, `1000.0`, `1k`.
///
/// ```
/// use abide_core::words::meant_number;
///
/// assert_eq!(meant_number("1e3"), Some(1000));
/// assert_eq!(meant_number("1.5"), None);
/// ```
pub fn meant_number(text: &str) -> Option<u64> {
    let text: String =
        text.trim().chars().filter(|letter| !matches!(letter, '_' | ',' | ' ' | '\'')).collect();
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1e3),
        (at, 'm' | 'M') => (&text[..at], 1e6),
        _ => (&text[..], 1.0),
    };
    let value = digits.parse::<f64>().ok()? * unit;
    // Beyond 2⁵³ the text's digits are not the number's.
    (value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value)).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_tools_lead_to_ours() {
        let boundaries =
            ["fixed", "periodic", "mirror", "reflect", "-mirror", "-reflect", "clamp", "constant=C"];
        for (asked, expected) in [
            ("dirichlet", &["fixed", "constant=C"][..]),
            ("Neumann", &["mirror"]),
            ("no-flux", &["mirror"]),
            ("zero_flux", &["mirror"]),
            ("wrap", &["periodic"]),
            ("Periodic", &["periodic"]),
            ("mirrored", &["mirror"]),
            ("-mirorr", &["-mirror"]),
            ("constant:3", &["constant=C"]),
            ("perodic", &["periodic"]),
            ("--json", &[]),
            ("", &[]),
        ] {
            assert_eq!(meant(asked, boundaries), expected, "{asked}");
        }
        for (asked, known, expected) in [
            ("gaus", &["random:SEED", "gaussian", "point"][..], "gaussian"),
            ("rand:3", &["random:SEED", "gaussian", "point"], "random:SEED"),
            ("HEAT", &["heat", "wave"], "heat"),
            ("gray", &["gray-scott", "heat"], "gray-scott"),
            ("float32", &["f32", "f64"], "f32"),
            ("F64", &["f32", "f64"], "f64"),
            ("CG", &["cg", "cg-pipelined"], "cg"),
            ("gmrs:30", &["cg", "gmres"], "gmres"),
        ] {
            assert_eq!(meant(asked, known.iter().copied()), [expected], "{asked}");
        }
        assert_eq!(meant("gpu", ["auto", "cuda", "wgpu", "cpu"]), ["cuda", "wgpu"]);
        assert_eq!(meant("zz", ["u", "v"]), [""; 0]);
        assert_eq!(suggestion("gpu", ["cuda", "wgpu"]), "; did you mean `cuda` or `wgpu`?");
    }

    #[test]
    fn numbers_written_otherwise_are_whole() {
        for (text, number) in
            [("1e3", 1000), ("1_000", 1000), ("10,000", 10_000), ("2.5e4", 25_000), ("5k", 5000)]
        {
            assert_eq!(meant_number(text), Some(number), "{text}");
        }
        for text in ["", "x", "-3", "0.5", "1e300", "inf", "nan", "k"] {
            assert_eq!(meant_number(text), None, "{text}");
        }
    }
}
