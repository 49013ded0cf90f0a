//! `If-Match`: a change based on one state is not applied to another state (RFC 9110 section 13.1.1).

use serde::Serialize;

use crate::entity_tag::RenderedJson;
use crate::error::{AppError, ErrorKind, Result};

/// The entity tags that the caller accepts for a change; `None` without the header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IfMatch(pub Option<String>);

impl IfMatch {
    /// The number of the policy set that the caller has seen, if the tag is a number; `None` without the header or for
    /// `*`.
    pub fn policy_set_number(&self) -> Result<Option<u64>> {
        let Some(tag) = self.0.as_deref().map(str::trim).filter(|tag| *tag != "*") else {
            return Ok(None);
        };
        let number_text = tag.trim_start_matches("W/").trim_matches('"');
        number_text.parse().map(Some).map_err(|_| {
            AppError::new(
                ErrorKind::Changed,
                "`If-Match` must be the number of a policy set in quotes, as in \"3\". Nothing was changed.",
            )
        })
    }

    /// Compares the part of a resource to be changed with the part that the caller has seen. Of a tag made by
    /// [`RenderedJson::with_part`] only the beginning counts.
    pub fn check_part(&self, current: &impl Serialize) -> Result<()> {
        let Some(header) = &self.0 else {
            return Ok(());
        };
        let part = RenderedJson::render(current)?;
        let mut tags = header
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
        let is_match = |tag: &str| tag == "*" || tag.split('.').next() == Some(part.tag_value());
        tags.any(is_match)
            .then_some(())
            .ok_or_else(precondition_failed_error)
    }

    /// Compares the state that the caller has seen with the current state, read under the lock of the change. The tag
    /// is compared as given although it is weak: it identifies the values, and the encoding of a response does not
    /// matter here.
    pub fn check(&self, current: Option<&impl Serialize>) -> Result<()> {
        let Some(header) = &self.0 else {
            return Ok(());
        };
        let tag = match current {
            Some(present) => RenderedJson::render(present)?.tag,
            None => String::new(),
        };
        let strip_weak = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let mut tags = header.split(',').map(strip_weak);
        if current.is_some() && tags.any(|one| one == "*" || one == strip_weak(&tag)) {
            return Ok(());
        }
        Err(precondition_failed_error())
    }
}

fn precondition_failed_error() -> AppError {
    AppError::new(
        ErrorKind::Changed,
        "`If-Match` does not match: someone else has changed this meanwhile. Nothing was changed; read it again.",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_change_needs_the_state_that_was_seen() {
        let tag = RenderedJson::render(&"a").unwrap().tag;
        let strong = tag.trim_start_matches("W/").to_owned();
        let holds = |wanted: &str, present: Option<&str>| {
            IfMatch(Some(wanted.to_owned()))
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
        assert!(IfMatch(None).check(None::<&str>.as_ref()).is_ok());
    }
}
