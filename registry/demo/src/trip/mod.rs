//! Trip Planner: a 1.0 agent over JSON-RPC and HTTP+JSON, with streaming.
//!
//! It finds flights between known cities and plans days in them. Distances and flying times are
//! computed; timetable and fares are samples, and every answer about them says so.

mod cities;
mod operations;
mod planner;
mod request;
mod rest;
mod rpc;
mod stream;

use a2a_client::v1;
use actix_web::HttpRequest;
use serde_json::{Value, json};

pub(super) use operations::Planner;
pub(super) use rest::routes as rest_routes;
pub(super) use rpc::answer as answer_rpc;

use super::fault::Fault;

/// Example of a message.
pub(super) const EXAMPLE: &str = "Book a flight from Berlin to Lisbon on 2027-03-14 for 2";

/// The agent's card, for an agent reached at `base` (no slash at its end).
pub(super) fn card(base: &str) -> Value {
    json!({
        "name": "Trip Planner",
        "description": "Finds flights between twelve cities and plans what to see there, day by day.",
        "version": "2.1.0",
        "supportedInterfaces": [
            {"url": format!("{base}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": format!("{base}/rest"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "provider": {"organization": "Sample Travel", "url": "https://travel.example.com"},
        "documentationUrl": "https://travel.example.com/trip-planner",
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {
                "id": "book-flights",
                "name": "Book flights",
                "description": "Finds flights between two cities for a day and a number of travellers, with times and fares.",
                "tags": ["travel", "flights", "booking"],
                "examples": [EXAMPLE],
            },
            {
                "id": "plan-itinerary",
                "name": "Plan an itinerary",
                "description": "Spreads a city's sights over the days of a stay.",
                "tags": ["travel", "itinerary", "sightseeing"],
                "examples": ["Plan three days in Rome"],
                "outputModes": ["text/plain"],
            },
        ],
    })
}

/// Refuses a call of another version than 1.0. A call without the header counts as 0.3; the version may also be in
/// the query (1.0 section 3.6).
fn check_version(request: &HttpRequest) -> Result<(), Fault> {
    let header = request
        .headers()
        .get("A2A-Version")
        .and_then(|value| value.to_str().ok());
    let query = || {
        url::form_urlencoded::parse(request.query_string().as_bytes())
            .find(|(name, _)| name.eq_ignore_ascii_case("A2A-Version"))
            .map(|(_, value)| value.into_owned())
    };
    let asked = header.map(str::to_owned).or_else(query).unwrap_or_default();
    match asked.trim() {
        v1::VERSION => Ok(()),
        other => Err(Fault::version(other)),
    }
}
