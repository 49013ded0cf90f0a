//! An answer as a stream of events (1.0 sections 3.1.2 and 3.5): the task, then what happens to it.

use actix_web::{HttpResponse, web};
use futures::stream;
use serde_json::{Value, json};

use super::operations::{OperationOutcome, Planner};
use super::planner::Piece;

/// The events of an outcome: one message; or the submitted task, its work, its artifacts part by part,
/// and its completion, after which the stream closes.
pub(super) fn events(planner: &Planner, outcome: &OperationOutcome) -> Vec<Value> {
    let (task, pieces) = match outcome {
        OperationOutcome::Message(message) => return vec![json!({"message": message})],
        OperationOutcome::Task { task, pieces } => (task, pieces),
    };
    let (id, context) = (&task["id"], &task["contextId"]);
    let submitted = planner.status("TASK_STATE_SUBMITTED");
    let mut events = vec![
        json!({"task": {"id": id, "contextId": context, "status": submitted}}),
        json!({"statusUpdate": {"taskId": id, "contextId": context, "status": planner.status("TASK_STATE_WORKING")}}),
    ];
    for piece in pieces {
        events.extend(chunks(piece).into_iter().map(|mut update| {
            update["taskId"] = id.clone();
            update["contextId"] = context.clone();
            json!({"artifactUpdate": update})
        }));
    }
    events.push(
        json!({"statusUpdate": {"taskId": id, "contextId": context, "status": task["status"]}}),
    );
    events
}

/// One update a part: the first begins the artifact, the others append to it. A reader puts the texts together as they
/// come, so each further one begins a line.
fn chunks(piece: &Piece) -> Vec<Value> {
    let count = piece.parts.len();
    let parts = piece.parts.iter().enumerate();
    parts
        .map(|(nth, part)| {
            let mut part = part.clone();
            if let (Some(text), true) = (part["text"].as_str(), nth > 0) {
                part["text"] = format!("\n{text}").into();
            }
            json!({
                "artifact": {"artifactId": piece.id, "name": piece.name, "parts": [part]},
                "append": nth > 0,
                "lastChunk": nth + 1 == count,
            })
        })
        .collect()
}

/// Events as `text/event-stream`, one `data` line each. JSON has no line breaks of its own.
pub(super) fn respond(events: Vec<Value>) -> HttpResponse {
    let lines = events
        .into_iter()
        .map(|event| Ok::<_, actix_web::Error>(web::Bytes::from(format!("data: {event}\n\n"))));
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-store"))
        .streaming(stream::iter(lines))
}
