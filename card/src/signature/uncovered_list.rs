//! What falls away while a card is reduced to a signed form.

use crate::pointer::Pointer;

/// At most this many members are listed as not covered.
pub const MAX_UNCOVERED: usize = 1_000;

/// What a member that is not covered is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Concern {
    /// How a caller authenticates.
    Security,
    /// Where the agent is reached.
    Address,
    /// Anything else.
    Other,
}

/// A member, or an element, that does not reach the payload of a form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uncovered {
    /// RFC 6901 pointer to it; what lies below is not listed once more.
    pub pointer: String,
    /// What it is about.
    pub concern: Concern,
    /// Whether it says no more than its absence would, such as `"tenant": ""`.
    pub empty: bool,
}

/// Collects what falls away while a card is reduced to a form.
#[derive(Debug)]
pub(super) struct UncoveredList {
    list: Vec<Uncovered>,
    room: usize,
}

impl UncoveredList {
    /// Collects nothing.
    pub(super) fn none() -> Self {
        UncoveredList {
            list: Vec::new(),
            room: 0,
        }
    }

    /// Collects up to [`MAX_UNCOVERED`].
    pub(super) fn bounded() -> Self {
        UncoveredList {
            list: Vec::new(),
            room: MAX_UNCOVERED,
        }
    }

    /// How much has been collected, for [`UncoveredList::whole`].
    pub(super) fn mark(&self) -> usize {
        self.list.len()
    }

    /// Notes that nothing is left of the member, in place of the parts of it noted since the mark.
    pub(super) fn whole(&mut self, mark: usize, at: &Pointer<'_>, empty: bool) {
        self.list.truncate(mark);
        self.add(at, empty);
    }

    /// Everything collected, in the card's order.
    pub(super) fn into_list(self) -> Vec<Uncovered> {
        self.list
    }

    /// Notes one member.
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

/// What a member is about, told from its place.
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
