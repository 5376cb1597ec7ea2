//! The tutorial's commands and its model file, one after the other as a reader types them, on fewer cells and steps.

use super::Place;

const PAGE: &str = include_str!("../../../docs/start/tutorial.md");

/// What takes long there, and what stands in its place here.
const SHORTER: [(&str, &str); 5] = [
    ("--steps 5000", "--steps 50"),
    ("--steps 6000", "--steps 50"),
    ("--steps 600 ", "--steps 60 "),
    ("8192x8192", "64x64"),
    ("--backend auto", ""),
];

/// Returns the page's blocks in a language.
fn blocks(language: &str) -> Vec<&str> {
    let fenced = PAGE.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

#[test]
fn every_command_works_and_writes_its_file() {
    let place = Place::new();
    let models = blocks("toml");
    assert_eq!(models.len(), 1);
    std::fs::write(place.path("edges.toml"), models[0]).unwrap();
    let mut commands = 0;
    for line in blocks("sh").into_iter().flat_map(str::lines) {
        let Some(line) = line.strip_prefix("abide ") else { panic!("{line} is no command of Abide") };
        let mut line = SHORTER.iter().fold(line.to_owned(), |line, (long, short)| line.replace(long, short));
        if line.starts_with("run ") {
            line.push_str(" --backend cpu");
        }
        place.works(&line);
        let mut words = line.split_whitespace().skip_while(|word| *word != "--output");
        if let Some(file) = words.nth(1) {
            assert!(place.path(file).exists(), "{line} wrote no {file}");
        }
        commands += 1;
    }
    assert!(commands >= 10, "{commands} commands");
    place.works("run edges.toml --input spots.png --steps 200 --output whole.npy --backend cpu");
    assert_eq!(place.read("edges.npy"), place.read("whole.npy"), "a resumed run has other bits");
}
