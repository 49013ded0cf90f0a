//! Collects the members that a signed form does not cover.

use crate::pointer::Pointer;

/// Most members listed as not covered.
pub const MAX_UNCOVERED: usize = 1_000;

/// Subject of a member that is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Concern {
    /// How its callers authenticate.
    Security,
    /// Address of the agent.
    Address,
    /// Anything else in the card.
    Other,
}

/// A member, or an element, that is not in the payload of a form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uncovered {
    /// RFC 6901 pointer to it; members below it are not listed separately.
    pub pointer: String,
    /// The subject that it concerns.
    pub concern: Concern,
    /// Whether it means the same as its absence, such as `"tenant": ""`.
    pub empty: bool,
}

#[derive(Debug)]
pub(super) struct UncoveredList {
    list: Vec<Uncovered>,
    room: usize,
}

impl UncoveredList {
    pub(super) fn none() -> Self {
        UncoveredList {
            list: Vec::new(),
            room: 0,
        }
    }

    /// A list of at most [`MAX_UNCOVERED`] members.
    pub(super) fn bounded() -> Self {
        UncoveredList {
            list: Vec::new(),
            room: MAX_UNCOVERED,
        }
    }

    /// The current length, for [`UncoveredList::whole`].
    pub(super) fn mark(&self) -> usize {
        self.list.len()
    }

    /// Adds a member of which nothing is covered, replacing its parts added since the mark.
    pub(super) fn whole(&mut self, mark: usize, at: &Pointer<'_>, empty: bool) {
        self.list.truncate(mark);
        self.add(at, empty);
    }

    pub(super) fn into_list(self) -> Vec<Uncovered> {
        self.list
    }

    pub(super) fn add(&mut self, at: &Pointer<'_>, empty: bool) {
        if self.list.len() < self.room {
            let pointer = at.text();
            self.list.push(Uncovered {
                concern: concern(&pointer),
                pointer,
                empty,
            });
        }
    }
}

fn concern(pointer: &str) -> Concern {
    let mut names = pointer.split('/').skip(1);
    let name = match (names.next(), names.next(), names.next()) {
        (Some("skills"), Some(_), Some(name)) => name,
        (Some(name), ..) => name,
        (None, ..) => return Concern::Other,
    };
    match name {
        "securitySchemes"
        | "security_schemes"
        | "securityRequirements"
        | "security_requirements"
        | "security"
        | "authentication" => Concern::Security,
        "url"
        | "preferredTransport"
        | "preferred_transport"
        | "additionalInterfaces"
        | "additional_interfaces" => Concern::Address,
        _ => Concern::Other,
    }
}
