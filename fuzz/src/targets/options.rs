//! The table `run` of model files: the options that it stands for are read as the command reads them.

use abide::text;
use abide_cli::check_arguments;

use super::{ensure, refused};

pub const WORDS: &[&str] = &[
    "axes = 1\n",
    "[fields]\nu = 1\n",
    "[[stages]]\nu = \"u\"\n",
    "[run]\n",
    "[run.param]\n",
    "steps = 3\n",
    "size = \"8x8\"\n",
    "input = [\"u=random:1\", \"point\"]\n",
    "output = \"u.npy\"\n",
    "output = { u = \"u.png\" }\n",
    "frames = \"f%03d.npy\"\n",
    "every = 2\n",
    "every = \"time=0.5\"\n",
    "record = \"r.csv\"\n",
    "record-every = 1\n",
    "probe = \"u@1,2\"\n",
    "checkpoint = \"c.npz\"\n",
    "resume = \"c.npz\"\n",
    "write-config = \"m.toml\"\n",
    "range = \"-1:1\"\n",
    "boundary = \"x-=mirror\"\n",
    "until = \"t >= 1\"\n",
    "param = { k = 0.1 }\n",
    "json = true\n",
    "json = false\n",
    "help = true\n",
    "version = true\n",
    "\"../\"",
    "\"/etc/x\"",
    "\"\\u001b[2J\"",
    "\"\\n\"",
    "\"--\"",
    "\"\"",
    "-1",
    "1e999",
    "nan",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ".",
];

/// Reads the options of a model file.
pub fn run(input: &[u8]) -> Result<(), String> {
    let Ok(input) = std::str::from_utf8(input) else { return Ok(()) };
    let options = match text::options(input, "model.toml") {
        Ok(options) => options,
        Err(error) => return refused(&error),
    };
    for option in &options {
        let name = option.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or(rest));
        let is_word = |name: &str| {
            !name.is_empty()
                && !name.starts_with('-')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        ensure(name.is_some_and(is_word), || format!("`{}` is no option", option.escape_debug()))?;
    }
    if let Ok(model) = text::read(input, "model.toml") {
        ensure(model.options == options, || "a model has other options than its file".to_owned())?;
    }
    let arguments = ["run", "model.toml"].map(str::to_owned).into_iter().chain(options);
    match check_arguments(arguments.map(Into::into)) {
        Ok(()) => Ok(()),
        Err(text) => ensure(!text.trim().is_empty(), || "an error without words".to_owned()),
    }
}
