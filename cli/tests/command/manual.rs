//! Scripts for shells, and manual pages.

use std::process::Command;

use super::{Place, words};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

#[test]
fn each_shell_has_a_script_that_knows_commands_and_options() {
    let place = Place::new();
    for shell in SHELLS {
        let script = place.works(&format!("completions {shell}"));
        for word in ["solve", "completions", "preconditioner"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    place.fails("completions tcsh", &["tcsh", "bash"]);
}

#[test]
fn shells_that_are_here_accept_their_scripts() {
    let place = Place::new();
    for shell in ["bash", "fish", "zsh"] {
        let script = place.path(shell);
        std::fs::write(&script, place.works(&format!("completions {shell}"))).unwrap();
        match Command::new(shell).arg("-n").arg(&script).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", words(&output)),
            Err(error) => println!("skipped: {shell}: {error}"),
        }
    }
}

#[test]
fn there_is_a_page_for_each_command() {
    let place = Place::new();
    let printed = place.works("man");
    assert!(printed.contains(".TH abide 1"), "{printed}");
    let wrote = place.works("man --output share/man1");
    let pages: Vec<_> =
        std::fs::read_dir(place.path("share/man1")).unwrap().map(|page| page.unwrap().path()).collect();
    assert!(wrote.contains(&format!("({} pages)", pages.len())), "{wrote}");
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains(".TH abide") && text.contains(".SH NAME"), "{}: {text}", page.display());
    }
    for name in ["abide.1", "abide-run.1", "abide-solve.1", "abide-bench-stencils.1"] {
        assert!(pages.iter().any(|page| page.ends_with(name)), "{name} in {pages:?}");
    }
    std::fs::write(place.path("file"), "").unwrap();
    place.fails("man --output file", &["file"]);
}
