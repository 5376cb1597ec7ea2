//! The axes of files: those of a domain, and before them the axis of a batch's members.

use std::ops::RangeInclusive;
use std::path::Path;

use abide_core::{Error, Result, Shape};

/// How the axes of a file are to be understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Axes {
    members: Option<usize>,
    dimensions: RangeInclusive<usize>,
}

impl Axes {
    /// All axes are the domain's.
    pub const DOMAIN: Axes = Axes { members: None, dimensions: 1..=3 };

    /// The first axis may be that of a batch of so many members, whose domains have so many axes. A file
    /// without it is for all of them alike.
    pub fn of_batch(members: usize, dimensions: RangeInclusive<usize>) -> Axes {
        Axes { members: Some(members), dimensions }
    }

    /// Returns the number of members, where the first of these extents is theirs, and the domain's shape.
    ///
    /// Where the domain may have as many axes as there are extents or one less, it has two, as a domain has whose
    /// size nobody gives.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where the first extent can only be the members', and is another number; those of
    /// [`Shape::new`].
    pub fn split(&self, extents: &[usize]) -> Result<(Option<usize>, Shape)> {
        let (Some(members), [first, rest @ ..]) = (self.members, extents) else {
            return Ok((None, Shape::new(extents)?));
        };
        let is_domain = self.dimensions.contains(&extents.len());
        if !self.dimensions.contains(&rest.len()) || (is_domain && rest.len() != 2) {
            return Ok((None, Shape::new(extents)?));
        }
        if *first != members {
            return Err(Error::invalid(
                format!("extents {extents:?}"),
                format!("the first is for {first} members, the batch has {members}"),
                "give as many members, or one domain for all of them",
            ));
        }
        let shape = Shape::new(rest)?;
        let bytes = shape.cells().checked_mul(members).and_then(|values| values.checked_mul(16));
        match bytes.filter(|&bytes| bytes <= isize::MAX as usize) {
            Some(_) => Ok((Some(members), shape)),
            None => Err(Error::limit("values of a batch", format!("{extents:?}"), isize::MAX, "give fewer")),
        }
    }
}

/// Returns the error of a file whose axes cannot be understood.
pub(super) fn foreign(path: &Path, error: Error) -> Error {
    match error {
        Error::Invalid { what, reason, change } => Error::file(path, format!("its {what}: {reason}"), change),
        other => {
            Error::file(path, other, "save it with the axes of a domain, and those of the members first")
        }
    }
}

/// Returns the extents in a file of a field of this shape: in a batch, with the members' axis first.
pub fn extents(members: Option<usize>, shape: &Shape) -> Vec<usize> {
    members.into_iter().chain(shape.extents().iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_axis_is_the_members_where_it_can_be() {
        let split = |axes: &Axes, extents: &[usize]| {
            axes.split(extents).map(|(members, shape)| (members, shape.to_string()))
        };
        assert_eq!(split(&Axes::DOMAIN, &[4, 5]), Ok((None, "4x5".to_owned())));
        let flat = Axes::of_batch(4, 2..=2);
        assert_eq!(split(&flat, &[4, 5, 6]), Ok((Some(4), "5x6".to_owned())));
        assert_eq!(split(&flat, &[4, 5]), Ok((None, "4x5".to_owned())));
        let error = split(&flat, &[3, 5, 6]).unwrap_err().to_string();
        assert!(error.contains("for 3 members, the batch has 4"), "{error}");
        let solid = Axes::of_batch(4, 3..=3);
        assert_eq!(split(&solid, &[4, 5, 6, 7]), Ok((Some(4), "5x6x7".to_owned())));
        // Any number of axes: two where there can be two.
        let any = Axes::of_batch(4, 1..=3);
        assert_eq!(split(&any, &[4, 5, 6]), Ok((Some(4), "5x6".to_owned())));
        assert!(split(&any, &[3, 5, 6]).is_err());
        assert_eq!(split(&any, &[4, 4]), Ok((None, "4x4".to_owned())));
        assert_eq!(split(&any, &[4]), Ok((None, "4".to_owned())));
        for bad in [&[][..], &[1, 2, 3, 4, 5], &[4, 0], &[4, 5, 0]] {
            assert!(split(&any, bad).is_err(), "{bad:?}");
        }
    }
}
