//! Cards that origins publish, as text.

use serde_json::json;

/// A card without findings, for an agent with one skill.
pub fn card_json(name: &str, skill: &str) -> String {
    let card = json!({
        "protocolVersion": "0.3.0",
        "name": name,
        "description": format!("{name} is good at {skill}"),
        "url": "https://echo.agents.dev/a2a",
        "version": "1.0.0",
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": skill,
            "name": skill,
            "description": format!("Does {skill}"),
            "tags": [skill],
            "examples": ["please"],
        }],
    });
    // Unusual white space, so that a test fails if the registry serialises the card again.
    format!("{card:#}\n \n")
}

/// A small card with that name.
pub fn minimal_card_json(name: &str) -> String {
    json!({
        "name": name, "description": "d", "version": "1", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [
            {"url": "https://agent.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}],
    })
    .to_string()
}
