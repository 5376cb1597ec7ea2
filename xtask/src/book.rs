//! The documentation: its links, its list of pages, their lengths, their commands and their programs; and the book that
//! mdBook makes of it, where mdBook is installed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use pulldown_cmark::{CodeBlockKind, Event, OffsetIter, Options, Parser, Tag, TagEnd};

use crate::cargo::{TESTS, build, root, succeeds};
use crate::summary::Counts;

/// The most words that a page of `docs` may have, as `wc -w` counts them.
const WORDS: usize = 2500;

/// The list of pages.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The file that runs the pages' programs as documentation tests.
const DOCTESTS: &str = "src/lib.rs";

/// What is checked of a page.
#[derive(Debug, Default)]
struct Page {
    words: usize,
    /// The anchors of its headings, as GitHub makes them.
    anchors: BTreeSet<String>,
    /// Links and images, with their lines.
    links: Vec<(usize, String)>,
    /// Command lines that begin with `abide`, with their lines.
    commands: Vec<(usize, String)>,
    /// Whether it has programs in Rust that documentation tests run.
    has_programs: bool,
}

/// Pages by their paths from the root.
type Pages = BTreeMap<PathBuf, Page>;

/// Checks all pages, and builds the book into target/book where mdBook is installed.
pub fn check(counts: &mut Counts) -> Result<bool> {
    let pages = pages()?;
    let faults = [links(&pages)?, lists(&pages)?, commands(&pages)?].concat();
    faults.iter().for_each(|fault| println!("{fault}"));
    println!("{} pages, {} faults", pages.len(), faults.len());
    if Command::new("mdbook").arg("--version").output().is_err() {
        counts.skipped.push("mdbook: not installed; the book was checked and not built".to_owned());
        return Ok(faults.is_empty());
    }
    Ok(succeeds(Command::new("mdbook").args(["build", "docs"]).current_dir(root()))? && faults.is_empty())
}

/// Reads the pages.
fn pages() -> Result<Pages> {
    let mut found = vec![PathBuf::from("README.md"), PathBuf::from("CHANGELOG.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root().join(&folder));
        for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.into_iter().map(|path| Ok((path.clone(), parse(&text(&path)?)))).collect()
}

/// Reads a file, by its path from the root.
fn text(path: &Path) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {}", path.display()))
}

/// Parses a page.
fn parse(text: &str) -> Page {
    let mut page = Page { words: text.split_whitespace().count(), ..Page::default() };
    let mut seen: HashMap<String, usize> = HashMap::new();
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let mut events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let mut heading: Option<String> = None;
    while let Some((event, range)) = events.next() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let before = seen.entry(slug.clone()).or_default();
                page.anchors.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
                *before += 1;
            }
            Event::Text(words) | Event::Code(words) => {
                heading.iter_mut().for_each(|heading| heading.push_str(&words));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push((line(range.start), dest_url.into_string()));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let block = block(&mut events);
                match &*language {
                    "sh" | "console" => page.commands.extend(in_block(&block, line(range.start) + 1)),
                    language => page.has_programs |= language == "rust" || language == "rust,no_run",
                }
            }
            _ => {}
        }
    }
    page
}

/// Returns the text of the code block that has begun.
fn block(events: &mut OffsetIter<'_>) -> String {
    let text = |event| if let Event::Text(text) = event { Some(text.into_string()) } else { None };
    events.map_while(|(event, _)| text(event)).collect()
}

/// Returns the lines of a block that call the command, each with those that continue it.
fn in_block(block: &str, first: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = block.lines().zip(first..);
    while let Some((line, number)) = lines.next() {
        let line = line.trim_start();
        let mut command = line.strip_prefix("$ ").unwrap_or(line).to_owned();
        while command.ends_with('\\') {
            command.pop();
            command.push_str(lines.next().map_or("", |(line, _)| line));
        }
        if command.starts_with("abide ") {
            found.push((number, command));
        }
    }
    found
}

/// Returns the anchor that GitHub gives a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the path from the root that a page's link leads to; without one, the page itself.
fn target(page: &Path, link: &str) -> PathBuf {
    let mut path = if link.is_empty() { page.to_owned() } else { page.parent().unwrap_or(page).to_owned() };
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// Finds links to files and anchors that are not there.
fn links(pages: &Pages) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (path, page) in pages {
        for (line, link) in page.links.iter().filter(|(_, link)| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = target(path, file);
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            if !root().join(&target).exists() {
                faults.push(format!("{}:{line}: {link}: no such file", path.display()));
            } else if is_page && !anchor.is_empty() {
                let has_it = match pages.get(&target) {
                    Some(page) => page.anchors.contains(anchor),
                    None => parse(&text(&target)?).anchors.contains(anchor),
                };
                if !has_it {
                    faults.push(format!("{}:{line}: {link}: no such heading", path.display()));
                }
            }
        }
    }
    Ok(faults)
}

/// Finds pages that are too long, that the list of pages lacks, and whose programs are not run.
fn lists(pages: &Pages) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let summary = Path::new(SUMMARY);
    let links = pages.get(summary).with_context(|| format!("{SUMMARY} is missing"))?.links.iter();
    let listed: BTreeSet<PathBuf> = links.map(|(_, link)| target(summary, link)).collect();
    let doctests = text(Path::new(DOCTESTS))?;
    for (path, page) in pages.iter().filter(|(path, _)| path.starts_with("docs") && *path != summary) {
        let name = path.display();
        if page.words > WORDS {
            faults.push(format!("{name}: {} words; split it into pages of at most {WORDS}", page.words));
        }
        if !listed.contains(path) {
            faults.push(format!("{name}: not in {SUMMARY}"));
        }
        if page.has_programs && !doctests.contains(&format!("\"../{name}\"")) {
            faults.push(format!("{name}: its programs are not run; add it to `pages!` in {DOCTESTS}"));
        }
    }
    Ok(faults)
}

/// Finds command lines whose options or values the command's parser refuses. Nothing is run: `--help` stands behind each
/// line, and is taken after everything before it was parsed.
fn commands(pages: &Pages) -> Result<Vec<String>> {
    let programs = build(TESTS)?;
    let abide = programs.iter().find(|one| one.kind == "bin" && one.target == "abide" && !one.is_test);
    let abide = abide.context("cargo built no command `abide`")?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let mut faults = Vec::new();
    for (path, page) in pages {
        for (line, typed) in &page.commands {
            let words = shlex::split(typed).unwrap_or_default();
            let is_operator = |word: &String| word.starts_with(['>', '<', '|', ';', '&']);
            let mut words: Vec<String> =
                words.into_iter().skip(1).take_while(|word| !is_operator(word)).collect();
            // `view` hands its arguments on to the window's program, which is not built here.
            if words.first().is_some_and(|verb| verb == "view") {
                continue;
            }
            // Only the reader has the model file.
            if let Some(model) = words.get_mut(1).filter(|word| word.ends_with(".toml")) {
                "gray-scott".clone_into(model);
            }
            let mut command = Command::new(&abide.path);
            let output = command.args(&words).arg("--help").current_dir(folder.path()).output();
            let output = output.with_context(|| format!("cannot start {}", abide.path.display()))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let first = said.lines().next().unwrap_or_default();
                faults.push(format!("{}:{line}: {typed}: {first}", path.display()));
            }
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart() {
        let page = parse(
            "# What `a` is, and why\n## Same\n## Same\n[a](b.md#c) ![d](e.png)\n```sh\n$ abide run heat \\\n--steps 1 # x\ncargo b\n```\n",
        );
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["same", "same-1", "what-a-is-and-why"]);
        assert_eq!(page.links, [(4, "b.md#c".to_owned()), (4, "e.png".to_owned())]);
        assert_eq!(page.commands, [(6, "abide run heat --steps 1 # x".to_owned())]);
        assert_eq!(target(Path::new("docs/a/b.md"), "../c.md"), Path::new("docs/c.md"));
    }
}
