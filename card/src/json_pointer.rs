//! RFC 6901 pointers, written as text only when a finding needs one.

use std::fmt::Write as _;

/// Maximum length of a pointer in bytes. A finding points to the nearest ancestor within it, because names may be as
/// long as a card.
const MAX_POINTER_BYTES: usize = 1_024;

/// A position in a document: a chain of borrowed segments, so that walking a card allocates nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JsonPointer<'a> {
    Root,
    Name(&'a JsonPointer<'a>, &'a str),
    Index(&'a JsonPointer<'a>, usize),
    /// A member of a member, for a nested card, which is read as if its members were one level higher.
    NestedName(&'a JsonPointer<'a>, &'a str, &'a str),
}

impl<'a> JsonPointer<'a> {
    pub(crate) fn member(&'a self, name: &'a str) -> Self {
        JsonPointer::Name(self, name)
    }

    pub(crate) fn element(&'a self, index: usize) -> Self {
        JsonPointer::Index(self, index)
    }

    pub(crate) fn to_json_pointer(self) -> String {
        let mut text = String::new();
        self.write_segments(&mut text);
        text
    }

    /// Appends the segments; false if one does not fit, which ends the whole pointer.
    fn write_segments(&self, text: &mut String) -> bool {
        match self {
            JsonPointer::Root => true,
            JsonPointer::Name(parent, name) => {
                parent.write_segments(text) && write_pointer_segment(text, name)
            }
            JsonPointer::Index(parent, index) => {
                parent.write_segments(text) && {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "/{index}");
                    true
                }
            }
            JsonPointer::NestedName(parent, outer, name) => {
                parent.write_segments(text)
                    && write_pointer_segment(text, outer)
                    && write_pointer_segment(text, name)
            }
        }
    }
}

/// Appends one escaped segment, unless that makes the pointer too long.
fn write_pointer_segment(text: &mut String, name: &str) -> bool {
    if text.len() + name.len() > MAX_POINTER_BYTES {
        return false;
    }
    text.push('/');
    for character in name.chars() {
        match character {
            '~' => text.push_str("~0"),
            '/' => text.push_str("~1"),
            other => text.push(other),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped() {
        let root = JsonPointer::Root;
        let skills = root.member("a/b~c");
        assert_eq!(skills.element(3).to_json_pointer(), "/a~1b~0c/3");
        assert_eq!(
            JsonPointer::NestedName(&root, "agent", "url").to_json_pointer(),
            "/agent/url"
        );
        assert_eq!(root.to_json_pointer(), "");
    }

    #[test]
    fn a_name_too_long_leaves_the_ancestor() {
        let root = JsonPointer::Root;
        let outer = root.member("outer");
        let fits = "x".repeat(MAX_POINTER_BYTES - "/outer".len());
        let long = "x".repeat(MAX_POINTER_BYTES);
        assert_eq!(
            outer.member(&fits).to_json_pointer(),
            format!("/outer/{fits}")
        );
        assert_eq!(outer.member(&long).element(1).to_json_pointer(), "/outer");
    }
}
