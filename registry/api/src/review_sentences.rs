//! Sentences about a review: what it decides, and what its agent serves now.

use a2a_registry_domain::review::ReviewKind;

use crate::governance::Review;

impl Review {
    /// What the review decides, as the subject of a sentence.
    pub fn subject_phrase(&self) -> String {
        let what = match (self.kind.known_value(), &self.previous) {
            (Some(ReviewKind::Admission), None) => "the card of",
            (Some(ReviewKind::Admission), Some(_)) => "the changed card of",
            // The card is approved or rejected, not the reports about it.
            (Some(ReviewKind::Report), _) => "the reported card of",
            (Some(ReviewKind::Recertification), _) => "the recertification of",
            (Some(ReviewKind::BreakGlass), _) => "the break-glass approval of",
            (None, _) => "the review of",
        };
        format!("{what} {}", self.name)
    }

    /// The served card, as the end of a sentence; empty if an older registry does not report it.
    pub fn served_clause(&self) -> String {
        let Some(served) = &self.served else {
            return String::new();
        };
        match &served.digest {
            None => "; no card of the agent is served".to_owned(),
            Some(_) if !served.listed => "; the agent's approved card is not listed".to_owned(),
            Some(digest) if *digest == self.digest => "; this card is served".to_owned(),
            Some(digest) if Some(digest) == self.previous.as_ref() => {
                format!("; the card approved before stays listed ({digest})")
            }
            Some(digest) => format!("; another approved card is served ({digest})"),
        }
    }
}
