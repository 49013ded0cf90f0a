//! The JSON-RPC 2.0 envelope that all three agents share.

use actix_web::HttpResponse;
use serde_json::{Map, Value, json};

use super::rpc_error::{self, RpcError};

#[derive(Debug)]
pub(super) struct RpcRequest {
    /// Null if the request has none.
    pub id: Value,
    pub method: String,
    /// Empty if the request has none.
    pub params: Map<String, Value>,
}

/// Parses a request. The error has the id for the response. A2A has no batches or positional parameters.
pub(super) fn parse_rpc_request(body: &[u8]) -> Result<RpcRequest, (Value, RpcError)> {
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| (Value::Null, RpcError::invalid_json(&error)))?;
    let Value::Object(mut request) = document else {
        return Err((
            Value::Null,
            invalid_request_error("a request must be one JSON object"),
        ));
    };
    let id = match request.remove("id") {
        Some(id @ (Value::Null | Value::String(_) | Value::Number(_))) => id,
        None => Value::Null,
        Some(_) => {
            return Err((
                Value::Null,
                invalid_request_error("id must be a string or a number"),
            ));
        }
    };
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err((id, invalid_request_error("jsonrpc must be the string 2.0")));
    }
    let Some(Value::String(method)) = request.remove("method") else {
        return Err((id, invalid_request_error("method must be a string")));
    };
    let params = match request.remove("params") {
        Some(Value::Object(params)) => params,
        None => Map::new(),
        Some(_) => return Err((id, RpcError::invalid_params("params must be an object"))),
    };
    Ok(RpcRequest { id, method, params })
}

pub(super) fn success_envelope(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Builds a response with status 200, which JSON-RPC over HTTP uses for errors too.
pub(super) fn json_response(document: &Value) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(document.to_string())
}

/// Builds the response to a failed request; `error` is the error object of the agent's version.
pub(super) fn rpc_error_response(id: &Value, error: &Value) -> HttpResponse {
    json_response(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn invalid_request_error(message: &str) -> RpcError {
    RpcError::new(rpc_error::INVALID_REQUEST, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_request_is_read_with_its_id() {
        let call =
            parse_rpc_request(br#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1}}"#)
                .unwrap();
        assert_eq!((call.id, call.method.as_str()), (json!("x"), "m"));
        assert_eq!(Value::Object(call.params), json!({"a": 1}));
    }

    #[test]
    fn malformed_requests_name_the_code_of_json_rpc() {
        for (body, code, id) in [
            (r#"{"jsonrpc""#, -32700, json!(null)),
            ("", -32700, json!(null)),
            ("[]", -32600, json!(null)),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
                -32600,
                json!(null),
            ),
            (r#"{"id":1,"method":"m"}"#, -32600, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
                -32600,
                json!(null),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"m","params":[1]}"#,
                -32602,
                json!("x"),
            ),
        ] {
            let (seen, fault) = parse_rpc_request(body.as_bytes()).unwrap_err();
            assert_eq!((fault.kind.0, seen), (code, id), "{body}");
        }
    }
}
