//! The request in a link to the page, as in `?model=gray-scott&size=512x512&steps=100&check`.

use percent_encoding::percent_decode_str;

use abide_core::{DType, Error, Execution, Options, Problem, Result, Shape, catalogue};

/// The most cells per side: as many as a canvas shows at a glance.
const LONGEST_SIDE: usize = 4096;

/// The model to run, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// A model of the catalogue that has two axes.
    pub model: String,
    /// The text of a model file of two axes, which runs instead.
    pub formulas: Option<String>,
    /// Rows and columns.
    pub size: [usize; 2],
    /// The schedule.
    pub execution: Execution,
    /// Steps after which to stop; unless given, the run goes on for ever.
    pub steps: Option<u64>,
    /// Whether to check this many steps, each by itself, against the CPU reference.
    pub check: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            model: "gray-scott".to_owned(),
            formulas: None,
            size: [512, 512],
            execution: Execution::Auto,
            steps: None,
            check: false,
        }
    }
}

impl Asked {
    /// Reads the part of a link from the question mark on.
    pub fn parse(query: &str) -> Result<Asked> {
        let mut asked = Asked::default();
        for part in query.trim_start_matches('?').split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let invalid =
                |reason: &str, change: &str| Error::invalid(format!("{name}={value}"), reason, change);
            match name {
                "model" => asked.model = value.to_owned(),
                "formulas" => {
                    let text = percent_decode_str(value).decode_utf8();
                    let text = text.map_err(|_| invalid("no text in UTF-8", "encode it as the page does"))?;
                    asked.formulas = Some(text.into_owned());
                }
                "size" => {
                    let sides = value.split_once('x').and_then(|(rows, columns)| {
                        Some([rows.parse::<usize>().ok()?, columns.parse::<usize>().ok()?])
                    });
                    asked.size = sides
                        .filter(|sides| sides.iter().all(|side| (1..=LONGEST_SIDE).contains(side)))
                        .ok_or_else(|| {
                            invalid("no rows and columns of 1 to 4096", "write it as in size=512x512")
                        })?;
                }
                "execution" => asked.execution = value.parse()?,
                "steps" => {
                    let steps =
                        value.parse().map_err(|_| invalid("no whole number", "write it as in steps=100"))?;
                    asked.steps = Some(steps);
                }
                "check" => asked.check = true,
                _ => {
                    return Err(Error::unknown(
                        "part of the link",
                        name,
                        ["model", "formulas", "size", "execution", "steps", "check"],
                    ));
                }
            }
        }
        Ok(asked)
    }

    /// Returns the options of the plan.
    pub fn options(&self) -> Options {
        Options { execution: self.execution, ..Options::default() }
    }

    /// Returns the problem, with the model's own boundary and parameters, in f32: WebGPU has no other type.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a program whose fields stand on other points than cells, which the page does
    /// not draw, and those of the catalogue, of [`abide_text::read`] and of [`Problem::new`].
    pub fn problem(&self) -> Result<Problem> {
        let program = match &self.formulas {
            Some(text) => abide_text::read(text, "formulas")?.program,
            None => catalogue::find(&self.model)?.program(2)?,
        };
        if !program.is_plain() {
            let reason = format!("the fields of {} stand on cells, faces and nodes", program.name());
            return Err(Error::unsupported("the page", reason, "run it by the command `abide run`"));
        }
        Problem::new(program.into(), Shape::new(&self.size)?, DType::F32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_understood() {
        assert_eq!(Asked::parse("").unwrap(), Asked::default());
        let asked = Asked::parse("?size=127x131&steps=100&check").unwrap();
        assert_eq!(asked, Asked { size: [127, 131], steps: Some(100), check: true, ..Asked::default() });
        assert_eq!(asked.problem().unwrap().shape.extents(), [127, 131]);
        assert_eq!(Asked::parse("?check=1&model=life").unwrap().model, "life");
        assert_eq!(Asked::parse("?execution=stepwise").unwrap().options().execution, Execution::Stepwise);
    }

    #[test]
    fn formulas_come_encoded() {
        let text = "axes = 2\n[fields]\nu = 'random:1'\n[[stages]]\nu = '0.5*(u + u[0,1]) & %'\n";
        let encoded = percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
        let link =
            |text: &dyn std::fmt::Display| Asked::parse(&format!("?size=8x9&formulas={text}")).unwrap();
        assert_eq!(link(&encoded).formulas.as_deref(), Some(text));
        let error = link(&encoded).problem().unwrap_err().to_string();
        assert!(error.contains("formulas, line 5, column 23"), "{error}");
        let right = encoded.to_string().replace("%20%26%20%25", "");
        assert_eq!(link(&right).problem().unwrap().program.fields(), ["u"]);
        assert!(Asked::parse("?formulas=%FF").is_err());
    }

    #[test]
    fn a_link_that_means_nothing_is_an_error() {
        for query in [
            "?size=512",
            "?size=0x3",
            "?size=5x9999",
            "?size=x",
            "?steps=-1",
            "?steps=",
            "?execution=",
            "?colour=red",
        ] {
            assert!(Asked::parse(query).is_err(), "{query}");
        }
        let three = Asked::parse("?model=3d7pt").unwrap();
        assert!(three.problem().is_err());
        assert!(matches!(
            Asked::parse("?model=cloverleaf").unwrap().problem(),
            Err(Error::Unsupported { .. })
        ));
        assert!(Asked::parse("?model=unheard-of").unwrap().problem().is_err());
    }
}
