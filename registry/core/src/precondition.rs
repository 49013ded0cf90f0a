//! `If-Match`: a change that was decided on one state is not made to another one (RFC 9110 section 13.1.1).

use serde::Serialize;

use crate::error::{AppError, ErrorKind, Result};
use crate::memory::agents::RenderedJson;

/// The entity tags that the caller accepts for a change; `None` without the header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Precondition(pub Option<String>);

impl Precondition {
    /// The number that the caller has seen, if the tag is a number; `None` without the header or for `*`.
    pub fn number(&self) -> Result<Option<u64>> {
        let Some(wanted) = self.0.as_deref().map(str::trim).filter(|tag| *tag != "*") else {
            return Ok(None);
        };
        let plain = wanted.trim_start_matches("W/").trim_matches('"');
        plain.parse().map(Some).map_err(|_| {
            AppError::new(
                ErrorKind::Changed,
                "`If-Match` is the number of a policy set in quotes, as in \"3\". Nothing was changed.",
            )
        })
    }

    /// Compares the part of a resource that is to be changed with the part that the caller has seen: of a tag that
    /// [`RenderedJson::with_part`] made, only the beginning counts.
    pub fn check_part(&self, present: &impl Serialize) -> Result<()> {
        let Some(wanted) = &self.0 else {
            return Ok(());
        };
        let part = RenderedJson::of(present)?;
        let mut tags = wanted
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
        let fits = |tag: &str| tag == "*" || tag.split('.').next() == Some(part.bare());
        tags.any(fits).then_some(()).ok_or_else(changed)
    }

    /// Compares what the caller has seen with the present state, read under the lock of the change. The tag is compared
    /// as given, although it is weak: it represents the values, and the encoding of a response does not matter here.
    pub fn check(&self, present: Option<&impl Serialize>) -> Result<()> {
        let Some(wanted) = &self.0 else {
            return Ok(());
        };
        let tag = match present {
            Some(present) => RenderedJson::of(present)?.tag,
            None => String::new(),
        };
        let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let mut tags = wanted.split(',').map(plain);
        if present.is_some() && tags.any(|one| one == "*" || one == plain(&tag)) {
            return Ok(());
        }
        Err(changed())
    }
}

fn changed() -> AppError {
    AppError::new(
        ErrorKind::Changed,
        "This is not what `If-Match` names: somebody has changed it meanwhile. Nothing was changed; read it again.",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_change_needs_the_state_that_was_seen() {
        let tag = RenderedJson::of(&"a").unwrap().tag;
        let strong = tag.trim_start_matches("W/").to_owned();
        let holds = |wanted: &str, present: Option<&str>| {
            Precondition(Some(wanted.to_owned()))
                .check(present.as_ref())
                .is_ok()
        };
        for wanted in [&tag, &strong, "*", &format!("\"b\", {tag}")] {
            assert!(holds(wanted, Some("a")), "{wanted}");
            assert!(!holds(wanted, None), "{wanted}");
        }
        for wanted in [&*tag, "\"b\"", ""] {
            assert!(!holds(wanted, Some("c")), "{wanted}");
        }
        assert!(Precondition(None).check(None::<&str>.as_ref()).is_ok());
    }
}
