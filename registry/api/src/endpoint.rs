//! Endpoint checks as callers see them: whether agents answer at their own addresses.

use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::limits;

/// Whether the agent answers at its own address, by the last check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointSummary {
    /// `answers`, `needs_credentials`, `not_a2a`, `unclear` (a response that other servers give too),
    /// `does_not_answer`, or `not_checked` where no check is permitted or none was made yet.
    #[schema(value_type = EndpointState)]
    pub state: OpenEnum<EndpointState>,
    /// Day of the last check, in UTC; absent in search and lookup results, because a check with the same result does
    /// not update the search index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Date, example = "2026-11-20")]
    pub checked_on: Option<String>,
}

impl Default for EndpointSummary {
    fn default() -> Self {
        Self {
            state: EndpointState::NotChecked.into(),
            checked_on: None,
        }
    }
}

impl EndpointSummary {
    /// The state in words, with the day of the last check if it is known.
    pub fn text(&self) -> String {
        let state = match self.state.known_value() {
            Some(state) => state.label(),
            None => self.state.as_str(),
        };
        match &self.checked_on {
            Some(day) => format!("{state} (checked on {day})"),
            None => state.to_owned(),
        }
    }
}

/// Whether one agent answers, with details for its owner, curators and auditors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointView {
    /// The last result in one word, and its day.
    #[serde(flatten)]
    pub summary: EndpointSummary,
    /// The last check and its history; absent for other callers, and for an agent without a checked address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<EndpointDetails>,
}

/// The checked address of an agent, with its last result and its history. Agents that name the same address share it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointDetails {
    /// URL of the interface, from the card.
    pub url: String,
    /// Protocol binding in which the agent is asked.
    pub binding: String,
    /// What the last check found, in one sentence; null before the first one.
    pub reason: Option<String>,
    /// Authentication scheme that the server named; null if it named none.
    pub auth_scheme: Option<String>,
    /// HTTP status of the response; null if there was none.
    pub status: Option<u16>,
    /// Time until the response was complete, or until the failure, in milliseconds.
    pub elapsed_ms: Option<u32>,
    /// Time of the last check.
    pub checked_at: Option<Timestamp>,
    /// Time of the last check with an A2A answer.
    pub answered_at: Option<Timestamp>,
    /// Time from which the next check is made.
    pub next_due: Timestamp,
    /// The last result of each of the last 90 days with a check, newest first.
    #[schema(max_items = 90)]
    pub days: Vec<EndpointDayView>,
}

impl EndpointDetails {
    /// On how many of the days with a check the agent answered.
    pub fn history_sentence(&self) -> String {
        let answered = self
            .days
            .iter()
            .filter(|day| day.state == EndpointState::Answers);
        format!(
            "answered on {} of {} days with a check",
            answered.count(),
            self.days.len()
        )
    }
}

/// The last result of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointDayView {
    /// The day, in UTC.
    #[schema(format = Date, example = "2026-11-20")]
    pub day: String,
    /// The result.
    #[schema(value_type = EndpointState)]
    pub state: OpenEnum<EndpointState>,
    /// Duration in milliseconds.
    pub elapsed_ms: u32,
}

/// An admin's vouch that permits checks of the endpoints on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointVouch {
    /// Time at which an admin vouched.
    pub since: Timestamp,
    /// The admin.
    pub by: String,
    /// The admin's reason.
    pub reason: String,
}

/// A request to permit checks of the endpoints on a host, and questions of gateways by their URLs: exactly the scheme,
/// name and port under which the domain is registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEndpointVouch {
    /// Why the registry may ask the agents of this host; stored in the event log.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}
