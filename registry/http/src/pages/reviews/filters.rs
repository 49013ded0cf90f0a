//! Filters of the review queue in a page's query. Its reviews carry them, so that the next one is of the same queue.

use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::reviews::list::ReviewListFilter;
use a2a_registry_core::reviews::reviewed_card::ReviewedCardFilter;
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use serde::Deserialize;
use uuid::Uuid;

use crate::problems::problem::Problem;
use crate::requests::query;

/// Choices of the state filter, each with its label.
pub(super) const STATES: &[(&str, &str)] = &[
    ("open", "Open"),
    ("approved", "Approved"),
    ("rejected", "Rejected"),
    ("superseded", "Superseded"),
    ("withdrawn", "Withdrawn"),
    ("all", "All"),
];
pub(super) const KINDS: &[(&str, &str)] = &[
    ("", "All"),
    ("admission", "Admission of a card"),
    ("report", "Report of an agent"),
    ("recertification", "Approval that ends"),
    ("break_glass", "Broken glass"),
];
pub(super) const CLASSES: &[(&str, &str)] = &[
    ("", "All"),
    ("first", "First card"),
    ("low", "Low"),
    ("high", "High"),
    ("critical", "Critical"),
];

/// Parameters of the queue. Empty ones, which forms send, count as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReviewListParams {
    pub state: String,
    pub kind: String,
    pub change_class: String,
    pub domain: String,
    pub submitter: String,
    pub provider: String,
    pub tag: String,
    pub auth: String,
    pub endpoint_host: String,
    pub assignee: String,
    pub mine: String,
    /// `all` selects every open review of the page, `matching` every open review that matches.
    pub choose: String,
    /// Id of the review that was decided last, which the page confirms.
    pub done: String,
    pub page_token: String,
}

impl ReviewListParams {
    pub fn from_query(query: &str) -> Result<Self> {
        query::parse_query(query)
            .map_err(|problem: Problem| AppError::invalid("/", problem.to_string()))
    }

    pub fn to_filter(&self) -> Result<ReviewListFilter> {
        let nonempty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let state = match self.state.as_str() {
            "" => Some(ReviewState::Open),
            "all" => None,
            state => {
                let state = state.parse::<ReviewState>();
                Some(state.map_err(|error| AppError::invalid("/state", error))?)
            }
        };
        let kind = nonempty(&self.kind).map(|kind| kind.parse::<ReviewKind>());
        Ok(ReviewListFilter {
            state,
            kind: kind
                .transpose()
                .map_err(|error| AppError::invalid("/kind", error))?,
            change_class: nonempty(&self.change_class)
                .map(|change| change.parse::<ReviewedChange>())
                .transpose()
                .map_err(|error| AppError::invalid("/change_class", error))?
                .into_iter()
                .collect(),
            domain: nonempty(&self.domain),
            submitter: nonempty(&self.submitter),
            assignee: nonempty(&self.assignee),
            mine: !self.mine.is_empty(),
            card: ReviewedCardFilter {
                provider: nonempty(&self.provider),
                tag: nonempty(&self.tag),
                auth: nonempty(&self.auth),
                endpoint_host: nonempty(&self.endpoint_host),
            },
        })
    }

    /// Whether a filter is set that the bar shows only on request.
    pub fn has_further_filters(&self) -> bool {
        let further = [
            &self.submitter,
            &self.provider,
            &self.tag,
            &self.auth,
            &self.endpoint_host,
        ];
        further.iter().any(|value| !value.is_empty()) || !self.mine.is_empty()
    }

    /// Id of the review that was decided last.
    pub fn decided_review(&self) -> Option<Uuid> {
        self.done.parse().ok()
    }

    /// URL of the queue, with further parameters instead of those of the same name.
    pub fn queue_url(&self, replaced: &[(&str, &str)]) -> String {
        with_query("/reviews", &self.encode(&["choose", "done"], replaced))
    }

    /// URL of a review that is opened from this queue.
    pub fn review_url(&self, id: &Uuid, replaced: &[(&str, &str)]) -> String {
        let query = self.encode(&["choose", "done", "page_token"], replaced);
        with_query(&format!("/reviews/{id}"), &query)
    }

    fn encode(&self, left_out: &[&str], replaced: &[(&str, &str)]) -> String {
        let pairs = [
            ("state", self.state.as_str()),
            ("kind", &self.kind),
            ("change_class", &self.change_class),
            ("domain", &self.domain),
            ("submitter", &self.submitter),
            ("provider", &self.provider),
            ("tag", &self.tag),
            ("auth", &self.auth),
            ("endpoint_host", &self.endpoint_host),
            ("assignee", &self.assignee),
            ("mine", &self.mine),
            ("choose", &self.choose),
            ("done", &self.done),
            ("page_token", &self.page_token),
        ];
        let is_replaced = |name: &str| replaced.iter().any(|(other, _)| *other == name);
        let given = pairs.into_iter().filter(|(name, value)| {
            !value.is_empty() && !left_out.contains(name) && !is_replaced(name)
        });
        let further = replaced
            .iter()
            .copied()
            .filter(|(_, value)| !value.is_empty());
        let pairs: Vec<(&str, &str)> = given.chain(further).collect();
        serde_html_form::to_string(pairs).unwrap_or_default()
    }
}

fn with_query(path: &str, query: &str) -> String {
    match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_opened_with_the_filters_of_its_queue() {
        let params = ReviewListParams {
            state: "open".to_owned(),
            provider: "A & B".to_owned(),
            choose: "all".to_owned(),
            done: "x".to_owned(),
            page_token: "t".to_owned(),
            ..ReviewListParams::default()
        };
        let id = Uuid::nil();
        let query = "state=open&provider=A+%26+B";
        assert_eq!(
            params.review_url(&id, &[]),
            format!("/reviews/{id}?{query}")
        );
        let done = params.review_url(&id, &[("done", "y")]);
        assert_eq!(done, format!("/reviews/{id}?{query}&done=y"));
        assert_eq!(
            params.queue_url(&[("page_token", ""), ("choose", "matching")]),
            format!("/reviews?{query}&choose=matching")
        );
        assert_eq!(ReviewListParams::default().queue_url(&[]), "/reviews");
    }
}
