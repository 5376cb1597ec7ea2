//! Within each crate of the workspace, the modules at the top depend on each other in one direction: there is no circle.
//!
//! A module depends on another one where its code, other than tests, names a path into it: `crate::other::…`,
//! `super::other::…`, or `crate::Name`, which the crate's root re-exports from it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Dependencies that close a circle, and why they stay for now: crate, module, the module that it depends on.
const ALLOWED: &[(&str, &str, &str, &str)] = &[
    ("core", "real", "expr", "a real number has the operations of which formulas are made"),
    ("core", "real", "functions", "a real number has the operations of which elementary functions are made"),
    (".", "builder", "simulation", "a builder makes a simulation, which offers its builder"),
    ("text", "formula", "loops", "a loop's body is a formula, which may hold a loop"),
    ("gas", "composition", "state", "a composition's properties are those of its states"),
    ("backend-cpu", "pin", "threads", "threads that cannot be pinned are refused as those that cannot start"),
    ("backend-cpu", "bytecode", "native", "bytecode keeps the machine code that was made of it"),
    ("backend-wgpu", "krylov", "backend", "solvers run on the backend, which keeps their compiled modules"),
    ("backend-wgpu", "count", "pass", "counting values is a pass of its own, of the same grid"),
    (
        "backend-cuda",
        "launcher",
        "streaming",
        "a launcher holds the planes that streaming kernels put to peers",
    ),
    ("backend-cuda", "peer", "ipc", "a peer exchanges by one of several ways, which share its checks"),
    ("backend-cuda", "peer", "nccl", "a peer exchanges by one of several ways, which share its checks"),
    ("backend-cuda", "peer", "puts", "a peer exchanges by one of several ways, which share its checks"),
    ("backend-cuda", "window", "staging", "staged copies are of windows, which are copied so"),
    ("backend-cuda", "memory", "lent", "memory is lent as buffers, whose room is asked for in memory"),
    ("cli", "trust", "problem", "files to be trusted are those that a problem's inputs name"),
    ("cli", "run_files", "outputs", "the files that a run asks for include the frames of its outputs"),
    ("console", "signals", "ending", "a signal ends a command with an ending of its own"),
    ("chaos", "complete", "checkpoint", "a checkpoint is complete where its steps can be read"),
    ("viewer", "engine", "field", "the engine keeps how a field looks"),
    ("viewer", "panels", "app", "panels show and change the state of the application"),
    ("fuzz", "mutate", "targets", "targets bring mutations of their own"),
];

/// The path of a module within its crate; empty for the root.
type Module = Vec<String>;

/// A crate's sources.
struct Sources {
    /// The modules at the top.
    top: BTreeSet<String>,
    /// The names that the root re-exports, each with its module.
    exports: BTreeMap<String, String>,
    /// Each file's module and code, without tests.
    files: Vec<(Module, TokenStream)>,
}

/// Returns the sources below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}

/// Returns the module of a file, by its path within `src`.
fn module_of(path: &Path) -> Module {
    let mut module: Module =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&&**last)) {
        module.pop();
    }
    module
}

/// Returns whether an attribute leaves an item to tests: `#[cfg(test)]`, `#[cfg(all(test, …))]`.
fn is_for_tests(attribute: &TokenTree) -> bool {
    let words = attribute.to_string();
    words.contains("cfg") && words.contains("test") && !words.contains("not") && !words.contains("any")
}

/// Returns code without the items that are for tests. The modules among them that are files of their own go to `tests`.
fn without_tests(code: TokenStream, module: &Module, tests: &mut HashSet<Module>) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut trees = code.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let is_attribute = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '#');
        if is_attribute && trees.peek().is_some_and(is_for_tests) {
            let mut item = Vec::new();
            for tree in trees.by_ref() {
                let is_end = match &tree {
                    TokenTree::Punct(punct) => punct.as_char() == ';',
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    _ => false,
                };
                item.push(tree.to_string());
                if is_end {
                    break;
                }
            }
            if let Some(at) = item.iter().position(|word| word == "mod") {
                tests.insert(module.iter().cloned().chain([item[at + 1].clone()]).collect());
            }
            continue;
        }
        kept.push(match tree {
            TokenTree::Group(group) => {
                let inner = without_tests(group.stream(), module, tests);
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))
            }
            other => other,
        });
    }
    kept.into_iter().collect()
}

/// Returns the paths of a `use` tree, or of a path in code, that begins at a place; and the place behind it.
fn paths(trees: &[TokenTree], mut at: usize, begun: &Module) -> (Vec<Module>, usize) {
    let mut path = begun.clone();
    loop {
        match trees.get(at) {
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace && path != *begun => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let parts =
                    inner.split(|tree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ','));
                return (parts.flat_map(|part| paths(part, 0, &path).0).collect(), at + 1);
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                return (Vec::new(), at + 1 + usize::from(group.stream().is_empty()));
            }
            _ => return (vec![path], at),
        }
        at += 1;
        let is_colon = |at: usize| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        if !(is_colon(at) && is_colon(at + 1)) {
            return (vec![path], at);
        }
        at += 2;
    }
}

/// Calls `found` with each path in code and the module in which it stands; bodies of modules within are theirs.
fn each_path(code: TokenStream, module: &Module, found: &mut dyn FnMut(&Module, &Module)) {
    let trees: Vec<TokenTree> = code.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        match &trees[at] {
            TokenTree::Ident(word) if *word == "mod" => {
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                    (trees.get(at + 1), trees.get(at + 2))
                {
                    let inner = module.iter().cloned().chain([name.to_string()]).collect();
                    each_path(body.stream(), &inner, found);
                    at += 3;
                    continue;
                }
                at += 1;
            }
            TokenTree::Ident(_) => {
                let (all, behind) = paths(&trees, at, &Vec::new());
                all.iter().for_each(|path| found(module, path));
                at = behind.max(at + 1);
            }
            TokenTree::Group(group) => {
                each_path(group.stream(), module, found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

impl Sources {
    /// Reads the crate in a folder.
    fn read(folder: &Path) -> Sources {
        let src = folder.join("src");
        let mut tests = HashSet::new();
        let mut files: Vec<(Module, TokenStream)> = Vec::new();
        for path in rust_files(&src) {
            let module = module_of(path.strip_prefix(&src).unwrap());
            let text = fs::read_to_string(&path).unwrap();
            let code = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.push((module.clone(), without_tests(code, &module, &mut tests)));
        }
        files.retain(|(module, _)| !(1..=module.len()).any(|len| tests.contains(&module[..len])));
        let top: BTreeSet<String> = files.iter().filter_map(|(module, _)| module.first().cloned()).collect();
        let mut exports = BTreeMap::new();
        for (_, code) in files.iter().filter(|(module, _)| module.is_empty()) {
            each_path(code.clone(), &Vec::new(), &mut |_, path| {
                let path = path.strip_prefix(&["self".to_owned()][..]).unwrap_or(path);
                if let [first, .., last] = path
                    && top.contains(first)
                {
                    exports.insert(last.clone(), first.clone());
                }
            });
        }
        Sources { top, exports, files }
    }

    /// Returns the module at the top into which a path leads; `None` where it leads out of the crate or to its root.
    fn target<'a>(&'a self, module: &Module, path: &'a [String]) -> Option<&'a String> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        let within = match path.first()? {
            first if first == "crate" => &path[1..],
            _ if ups > 0 && ups == module.len() => &path[ups..],
            _ => return None,
        };
        let name = within.first()?;
        self.top.get(name).or_else(|| self.exports.get(name))
    }

    /// Returns which module at the top depends on which, each with the path of one place that says so.
    fn dependencies(&self) -> BTreeMap<(String, String), String> {
        let mut found = BTreeMap::new();
        for (module, code) in self.files.iter().filter(|(module, _)| !module.is_empty()) {
            each_path(code.clone(), module, &mut |module, path| {
                if let Some(target) = self.target(module, path).filter(|target| **target != module[0]) {
                    let place = format!("{} names {}", module.join("::"), path.join("::"));
                    found.entry((module[0].clone(), target.clone())).or_insert(place);
                }
            });
        }
        found
    }
}

/// Returns a way from one module to another along dependencies; `None` if there is none.
fn way(dependencies: &BTreeSet<(String, String)>, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = HashSet::from([from.to_owned()]);
    while let Some(way) = ways.pop() {
        let last = way.last().unwrap().clone();
        if last == to {
            return Some(way);
        }
        for (_, next) in dependencies.iter().filter(|(from, _)| *from == last) {
            if seen.insert(next.clone()) {
                ways.push(way.iter().cloned().chain([next.clone()]).collect());
            }
        }
    }
    None
}

#[test]
fn modules_of_each_crate_depend_on_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let members: Vec<&str> =
        members.trim_end_matches(']').split(',').map(|member| member.trim().trim_matches('"')).collect();
    assert!(members.contains(&"core") && members.len() > 10, "{members:?}");
    let mut faults = Vec::new();
    for member in members {
        let found = Sources::read(&root.join(member)).dependencies();
        let all: BTreeSet<(String, String)> = found.keys().cloned().collect();
        let allowed: Vec<(String, String)> = ALLOWED
            .iter()
            .filter(|(of, ..)| *of == member)
            .map(|(_, from, to, _)| ((*from).to_owned(), (*to).to_owned()))
            .collect();
        let rest: BTreeSet<_> = all.iter().filter(|one| !allowed.contains(one)).cloned().collect();
        for (from, to) in &rest {
            if let Some(back) = way(&rest, to, from) {
                let place = &found[&(from.clone(), to.clone())];
                faults.push(format!(
                    "{member}: {from} depends on {} ({place})",
                    back.join(", which depends on ")
                ));
            }
        }
        for (from, to) in allowed {
            if !all.contains(&(from.clone(), to.clone())) || way(&rest, &to, &from).is_none() {
                faults.push(format!("{member}: {from} need not be allowed to depend on {to} any more"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn circles_are_seen_through_re_exports_and_tests_are_not() {
    let folder = std::env::temp_dir().join(format!("abide-layers-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = folder.join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod one; mod two; mod three; pub use one::{First, sub::Other as Second};");
    write("one/mod.rs", "#[cfg(test)] mod tests; mod sub; use crate::two::{self, a::B}; // crate::three");
    write("one/sub.rs", "fn f() { super::super::three::g(\"crate::two\"); }");
    write("one/tests.rs", "use crate::nothing;");
    write("two.rs", "use crate::{First}; #[cfg(test)] mod tests { use crate::three; }");
    write("three.rs", "mod inner { fn g() { let x: crate::two::A = super::super::two::a(); } }");
    let found: Vec<(String, String)> = Sources::read(&folder).dependencies().into_keys().collect();
    let expected = [("one", "three"), ("one", "two"), ("three", "two"), ("two", "one")];
    assert_eq!(found, expected.map(|(from, to)| (from.to_owned(), to.to_owned())));
    fs::remove_dir_all(folder).unwrap();
}
