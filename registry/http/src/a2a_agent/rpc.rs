//! JSON-RPC 2.0 envelope. Batches and positional parameters are not part of A2A, so both are rejected.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::{A2aError, A2aErrorKind, uncached_response};
use crate::answers::response::JSON_CONTENT_TYPE;

#[derive(Debug)]
pub(super) struct RpcRequest {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// Parses a request. On failure, returns the error and the id for the response, as far as the id could be read.
pub(super) fn parse_rpc_request(body: &[u8]) -> Result<RpcRequest, (Value, A2aError)> {
    let document: Value = serde_json::from_slice(body).map_err(|error| {
        let message = format!("The body is not JSON: {error}.");
        (Value::Null, A2aError::new(A2aErrorKind::NotJson, message))
    })?;
    let invalid = |text: &str| A2aError::new(A2aErrorKind::InvalidRequest, text);
    let Value::Object(mut request) = document else {
        return Err((Value::Null, invalid("A request must be one JSON object.")));
    };
    let id = match request.remove("id") {
        Some(id @ (Value::Null | Value::String(_) | Value::Number(_))) => id,
        None => Value::Null,
        Some(_) => return Err((Value::Null, invalid("`id` must be a string or a number."))),
    };
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err((id, invalid("`jsonrpc` must be the string 2.0.")));
    }
    let Some(Value::String(method)) = request.remove("method") else {
        return Err((id, invalid("`method` must be a string.")));
    };
    let params = match request.remove("params") {
        Some(Value::Object(params)) => params,
        None => Map::new(),
        Some(_) => return Err((id, A2aError::invalid_params("`params` must be an object."))),
    };
    Ok(RpcRequest { id, method, params })
}

/// A JSON-RPC response with a result. `json!` would copy the result.
#[derive(Serialize)]
struct RpcResult<'a, T> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: &'a T,
}

pub(super) fn rpc_result_json(id: &Value, result: &impl Serialize) -> String {
    let response = RpcResult {
        jsonrpc: "2.0",
        id,
        result,
    };
    // Results are JSON values or texts, which always have a JSON form.
    serde_json::to_string(&response).unwrap_or_default()
}

pub(super) fn rpc_result_response(id: &Value, result: &RawValue) -> HttpResponse {
    uncached_response(
        StatusCode::OK,
        JSON_CONTENT_TYPE,
        rpc_result_json(id, &result),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

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
    fn what_is_no_request_has_the_code_of_json_rpc() {
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
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, -32600, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
            (
                r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
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
            assert_eq!(
                (fault.to_json_rpc()["code"].clone(), seen),
                (json!(code), id),
                "{body}"
            );
        }
    }
}
