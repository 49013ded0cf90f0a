//! RFC 6901 pointers, which are written only when a finding needs one.

use std::fmt::Write as _;

/// Longest pointer in bytes; a finding points to the nearest ancestor within it, as names may be as long as a card.
const MAX_POINTER_BYTES: usize = 1_024;

/// A position in a document: a chain of borrowed segments, so that walking a card allocates nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pointer<'a> {
    Root,
    Name(&'a Pointer<'a>, &'a str),
    Index(&'a Pointer<'a>, usize),
    /// A member of a member: for a nested card, which is read as if its members were one level higher.
    Inside(&'a Pointer<'a>, &'a str, &'a str),
}

impl<'a> Pointer<'a> {
    pub(crate) fn name(&'a self, name: &'a str) -> Self {
        Pointer::Name(self, name)
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Pointer::Index(self, index)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    /// Appends the segments; false as soon as one does not fit, which ends the whole pointer.
    fn write(&self, text: &mut String) -> bool {
        match self {
            Pointer::Root => true,
            Pointer::Name(parent, name) => parent.write(text) && segment(text, name),
            Pointer::Index(parent, index) => {
                parent.write(text) && {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "/{index}");
                    true
                }
            }
            Pointer::Inside(parent, outer, name) => {
                parent.write(text) && segment(text, outer) && segment(text, name)
            }
        }
    }
}

/// Appends one escaped segment, unless that makes the pointer too long.
fn segment(text: &mut String, name: &str) -> bool {
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
        let root = Pointer::Root;
        let skills = root.name("a/b~c");
        assert_eq!(skills.index(3).text(), "/a~1b~0c/3");
        assert_eq!(Pointer::Inside(&root, "agent", "url").text(), "/agent/url");
        assert_eq!(root.text(), "");
    }

    #[test]
    fn a_name_too_long_leaves_the_ancestor() {
        let root = Pointer::Root;
        let outer = root.name("outer");
        let fits = "x".repeat(MAX_POINTER_BYTES - "/outer".len());
        let long = "x".repeat(MAX_POINTER_BYTES);
        assert_eq!(outer.name(&fits).text(), format!("/outer/{fits}"));
        assert_eq!(outer.name(&long).index(1).text(), "/outer");
    }
}
