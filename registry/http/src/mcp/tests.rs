//! Tests that need no registry: hosts and origins, arguments, quotes.

#![allow(clippy::unwrap_used)]

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::config::Config;
use a2a_registry_core::error::AppError;
use a2a_registry_core::text::quoted_line;
use a2a_registry_domain::facet::Facet;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::mcp::arguments::{
    AgentArgument, facets_input_schema, normalize_tool_arguments, parse_tool_arguments,
    search_input_schema, search_query_from_arguments,
};
use crate::mcp::endpoint::{allowed_hosts, allowed_origins};
use crate::mcp::tool_result::tool_error_result;

fn config(listen: &str, public_url: &str) -> Config {
    let mut config = Config::default();
    config.server.listen = listen.parse().unwrap();
    config.server.public_url = public_url.to_owned();
    config
}

#[test]
fn own_names_count_where_the_registry_can_be_reached_by_them() {
    let own = ["localhost", "127.0.0.1", "[::1]"];
    for (listen, public_url, expected) in [
        (
            "127.0.0.1:8080",
            "",
            vec!["127.0.0.1", "localhost", "127.0.0.1", "[::1]"],
        ),
        ("0.0.0.0:80", "https://a.example/agents", {
            let mut all = vec!["a.example"];
            all.extend(own);
            all
        }),
        ("[::]:80", "https://a.example", {
            let mut all = vec!["a.example"];
            all.extend(own);
            all
        }),
        ("10.0.0.1:80", "https://a.example:8443", vec!["a.example"]),
    ] {
        assert_eq!(
            allowed_hosts(&config(listen, public_url)),
            expected,
            "{listen}"
        );
    }
}

#[test]
fn origins_are_named_with_their_ports() {
    assert_eq!(
        allowed_origins(&config("10.0.0.1:80", "https://a.example")),
        ["https://a.example:443"]
    );
    assert_eq!(
        allowed_origins(&config("127.0.0.1:8080", "http://a.example:81")),
        [
            "http://a.example:81",
            "http://localhost:8080",
            "http://127.0.0.1:8080",
            "http://[::1]:8080"
        ]
    );
}

/// Search query from these arguments.
fn searched(arguments: &Value) -> Result<SearchQuery, AppError> {
    let arguments = arguments.as_object().cloned();
    search_query_from_arguments(normalize_tool_arguments(arguments, &search_input_schema())?)
}

#[test]
fn a_wrong_argument_is_named() {
    let sentence = |error: &AppError| {
        let result = serde_json::to_value(tool_error_result("get_agent", error)).unwrap();
        assert_eq!(result["isError"], true);
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    for (value, words) in [
        (json!({"tag": ["a", {}]}), "`tag/1`"),
        (json!({"tag": {"a": 1}}), "`tag`"),
        (json!({"page_size": "many"}), "`page_size`"),
        (json!({"page_size": [5]}), "`page_size`"),
        (json!({"page_size": -1}), "`page_size`"),
        (json!({"fitting": "perhaps"}), "`fitting`"),
        (json!({"understand": "perhaps"}), "`understand`"),
        (json!({"colour": "red"}), "unknown field `colour`"),
        (json!({"q": "red"}), "unknown field `q`"),
        (json!({"explain": true}), "unknown field `explain`"),
        (json!({"text": "a\u{0}"}), "U+0000"),
    ] {
        let error = searched(&value).unwrap_err();
        let said = sentence(&error);
        assert!(
            said.contains(words) && said.ends_with('.'),
            "{value}: {said}"
        );
    }
    let error = parse_tool_arguments::<AgentArgument>(JsonObject::new()).unwrap_err();
    assert!(sentence(&error).contains("missing field `agent`"));
    let internal = AppError::internal("the secret reason");
    assert!(!sentence(&internal).contains("secret"));
}

/// Values of the wrong type are accepted if the meaning is clear.
#[test]
fn arguments_are_read_as_models_write_them() {
    let exact = searched(&json!({
        "tag": ["x"], "protocol_version": ["1.0"], "unmanaged": ["true"], "page_size": 5,
        "understand": false, "fitting": true,
    }))
    .unwrap();
    for other in [
        json!({"tag": "x", "protocol_version": "1.0", "unmanaged": "true", "page_size": "5", "understand": "false",
            "fitting": "true"}),
        json!({"tag": "[\"x\"]", "protocol_version": [1.0], "unmanaged": true, "page_size": 5.0, "understand": false,
            "fitting": true}),
        json!({
            "tag": ["x"], "protocol_version": 1.0, "unmanaged": [true], "page_size": " 5 ", "understand": " false ",
            "fitting": "true",
            "text": null, "skill": null,
        }),
    ] {
        assert_eq!(searched(&other).unwrap(), exact, "{other}");
    }
    assert_eq!(searched(&json!({"tag": "[x"})).unwrap().tag, ["[x"]);
    let nul = searched(&json!({"tag": "[\"a\\u0000\"]"})).unwrap_err();
    assert!(nul.public.contains("U+0000"), "{nul:?}");
}

#[test]
fn every_facet_is_an_argument_and_can_be_counted() {
    let schema = facets_input_schema();
    let counted = schema["properties"]["facets"]["description"].as_str();
    for facet in Facet::ALL {
        let value = format!("value of {facet}");
        let query = searched(&json!({facet.as_str(): value})).unwrap();
        assert_eq!(query.filter_values(*facet), [value]);
        assert!(counted.unwrap().contains(&format!("`{facet}`")), "{facet}");
    }
}

#[test]
fn quotes_end_where_they_should() {
    assert_eq!(quoted_line("a \"b\" \\\" c", 40), r#""a \"b\" \\\" c""#);
    assert_eq!(quoted_line("a\nb\u{202e}", 40), "\"a b⟦U+202E⟧\"");
    assert_eq!(quoted_line("abcdef", 3), "\"abc…\"");
}
