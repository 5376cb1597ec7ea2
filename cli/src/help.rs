//! The description of all arguments for the parser, and what a command's help lists.

use clap::{Arg, ArgAction, CommandFactory};

use super::Command;

/// Describes the command to its parser. Wherever an option takes a value, the value may be a negative number. So the
/// option itself refuses a wrong one, in its own words.
pub fn described() -> clap::Command {
    let takes_one = |argument: &Arg| {
        argument.get_long().is_some() && matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
    };
    let negative = move |argument: Arg| {
        if takes_one(&argument) { argument.allow_negative_numbers(true) } else { argument }
    };
    fn all(
        command: clap::Command,
        change: impl Fn(clap::Command, &str) -> clap::Command + Copy,
        path: &str,
    ) -> clap::Command {
        let path = format!("{path}{}", command.get_name());
        let command = change(command, &path);
        command.mut_subcommands(|command| all(command, change, &format!("{path} ")))
    }
    all(Command::command(), |command, path| shortened(command.mut_args(negative), path), "")
}

/// Leaves the options of groups to the long help of a command, and its examples too; the short help names the long one.
fn shortened(command: clap::Command, path: &str) -> clap::Command {
    let is_grouped = |argument: &Arg| argument.get_help_heading().is_some();
    if !command.get_arguments().any(is_grouped) {
        return command;
    }
    let examples = command.get_after_help().cloned().unwrap_or_default();
    let command = command.mut_args(|argument| {
        let is_hidden = is_grouped(&argument);
        argument.hide_short_help(is_hidden)
    });
    command
        .after_long_help(examples)
        .after_help(format!("{path} --help lists all options, in groups, and has examples."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` for the command and all below it, each with its path.
    fn each(command: &clap::Command, path: &str, check: &mut impl FnMut(&clap::Command, &str)) {
        let path = format!("{path} {}", command.get_name());
        check(command, &path);
        command.get_subcommands().for_each(|command| each(command, &path, check));
    }

    #[test]
    fn arguments_are_consistent() {
        described().debug_assert();
    }

    /// The short help has the options of no group alone and is short; the long one has all, in groups.
    #[test]
    fn the_short_help_is_of_the_basic_options() {
        let mut grouped = Vec::new();
        each(&described(), "", &mut |command, path| {
            let mut command = command.clone().term_width(100);
            let [short, long] = [command.render_help().to_string(), command.render_long_help().to_string()];
            let has =
                |help: &str, long: &str| help.split_whitespace().any(|word| word == format!("--{long}"));
            let options = command.get_arguments().filter(|argument| !argument.is_hide_set());
            for (option, heading) in options.filter_map(|o| Some((o.get_long()?, o.get_help_heading()))) {
                assert!(has(&long, option), "{path} --help has no --{option}");
                assert_eq!(has(&short, option), heading.is_none(), "{path} -h and --{option}");
                if let Some(heading) = heading {
                    assert!(long.contains(&format!("\n{heading}:\n")), "{path}: {heading}");
                    grouped.push(path.to_owned());
                }
            }
            if grouped.last().is_some_and(|last| last == path) {
                assert!(short.lines().count() < 60 && short.contains("--help lists all options"), "{short}");
                assert!(long.contains("Examples:") && !long.contains("--help lists all"), "{long}");
            }
        });
        grouped.dedup();
        for command in [" abide run", " abide plan", " abide solve", " abide bench stencils"] {
            assert!(grouped.iter().any(|path| path == command), "{grouped:?}");
        }
        let mut command = described();
        let run = command.find_subcommand_mut("run").unwrap().render_long_help().to_string();
        let groups =
            ["Options", "Output", "Pictures", "Checkpoints", "Devices", "Planning", "Kernels", "Examples"];
        let places = groups.map(|group| run.find(&format!("\n{group}:\n")).expect(group));
        assert!(places.is_sorted(), "{run}");
    }

    /// Help wraps its paragraphs to the terminal's width: none of them is broken before, and no example is so long that it is
    /// wrapped on a hundred columns.
    #[test]
    fn no_sentence_is_broken_by_hand() {
        each(&described(), "", &mut |command, path| {
            let after = command.get_after_long_help().or(command.get_after_help());
            let after = after.map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = after.lines().collect();
            for pair in lines.windows(2) {
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let ends = pair[0].ends_with(['.', ':']);
                assert!(!is_prose(pair[0]) || !is_prose(pair[1]) || ends, "{path}: {pair:?}");
            }
            for line in lines.iter().filter(|line| line.starts_with("  abide ")) {
                assert!(line.chars().count() <= 100, "{path}: {line}");
            }
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.contains('\n') && !help.ends_with(['.', ',', ';']), "{path}: {help}");
                assert!(argument.get_long_help().is_none(), "{path}: a paragraph is cut off in -h: {help}");
            }
        });
    }
}
