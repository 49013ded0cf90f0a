//! Tests of the SARIF logs, against the structure that code hosting services require.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;
use crate::{all_findings, parse_card};

/// Checks what a service checks before it accepts a log: versions, the tool and its rules, and for every result its
/// rule, level, message and one physical location.
fn assert_taken(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .unwrap()
            .ends_with("sarif-2.1.0.json")
    );
    let runs = log["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert!(!driver["name"].as_str().unwrap().is_empty());
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), rules.len());
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(!rule[text]["text"].as_str().unwrap().is_empty(), "{rule}");
        }
        assert!(is_level(&rule["defaultConfiguration"]["level"]), "{rule}");
    }
    let results = runs[0]["results"].as_array().unwrap();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(is_level(&result["level"]), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let locations = result["locations"].as_array().unwrap();
        assert_eq!(locations.len(), 1);
        let physical = &locations[0]["physicalLocation"];
        let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
        assert!(
            uri.is_ascii() && !uri.contains([' ', '\\', '<', '"']),
            "{uri}"
        );
        assert!(physical["region"]["startLine"].as_u64().unwrap() >= 1);
        for logical in locations[0]["logicalLocations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            assert!(
                logical["fullyQualifiedName"]
                    .as_str()
                    .unwrap()
                    .starts_with('/')
            );
        }
    }
}

fn is_level(level: &Value) -> bool {
    ["error", "warning", "note"].contains(&level.as_str().unwrap())
}

fn log_of(document: &str) -> Value {
    let parsed = parse_card(document.as_bytes()).unwrap();
    let findings = all_findings(&parsed, document.as_bytes());
    sarif_log("cards/a b\\c.json", document.as_bytes(), &findings, "1.2.3")
}

#[test]
fn findings_are_results_with_their_places() {
    let document = "{\n  \"name\": \"A\",\n  \"url\": \"http://localhost:1/\",\n  \"skills\": [\n    {\"id\": \"é\", \"name\": true, \"examples\": [\"x\"]}\n  ]\n}\n";
    let log = log_of(document);
    assert_taken(&log);
    assert_eq!(log["runs"][0]["tool"]["driver"]["version"], "1.2.3");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let of = |rule: &str| {
        results
            .iter()
            .find(|result| result["ruleId"] == rule)
            .unwrap()
    };
    let private = of("endpoint.private");
    assert_eq!(private["level"], "warning");
    let place = &private["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "cards/a%20b%5Cc.json");
    assert_eq!(
        place["region"],
        json!({"startLine": 3, "startColumn": 10, "endLine": 3, "endColumn": 31})
    );
    let wrong = of("member.type");
    assert_eq!(wrong["level"], "error");
    let location = &wrong["locations"][0];
    assert_eq!(
        location["physicalLocation"]["region"],
        json!({"startLine": 5, "startColumn": 25, "endLine": 5, "endColumn": 29})
    );
    assert_eq!(
        location["logicalLocations"][0],
        json!({"name": "name", "fullyQualifiedName": "/skills/0/name", "kind": "property"})
    );
    let missing = of("required.0.1");
    assert!(
        missing["locations"][0].get("logicalLocations").is_none(),
        "the whole card"
    );
    assert_eq!(
        of("skill.tags")["locations"][0]["logicalLocations"][0]["kind"],
        "value"
    );
}

#[test]
fn a_card_cannot_write_links_or_arguments_into_messages() {
    let log = log_of(r#"{"name":"A","url":"[click](https://evil.dev) {0} \\"}"#);
    assert_taken(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let result = results
        .iter()
        .find(|result| result["ruleId"] == "endpoint.url")
        .unwrap();
    let text = result["message"]["text"].as_str().unwrap();
    assert!(
        text.contains(r"\[click\](https://evil.dev) {{0}} \\"),
        "{text}"
    );
}

#[test]
fn what_is_no_card_is_one_error() {
    for (document, rule, line) in [
        ("{\n\"name\": \"A\",\n}", "document.not-json", 3),
        ("", "document.not-a-card", 1),
        ("[]", "document.not-a-card", 1),
        ("{\"name\":", "document.not-json", 1),
    ] {
        let log = parse_error_sarif_log(
            "card.json",
            &parse_card(document.as_bytes()).unwrap_err(),
            "1",
        );
        assert_taken(&log);
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0]["ruleId"], rule, "{document}");
        assert_eq!(results[0]["level"], "error");
        let region = &results[0]["locations"][0]["physicalLocation"]["region"];
        assert_eq!(region["startLine"], line, "{document}");
    }
    for document in ["[".repeat(100), " ".repeat(crate::MAX_CARD_BYTES + 1)] {
        let error = parse_card(document.as_bytes()).unwrap_err();
        assert_taken(&parse_error_sarif_log("card.json", &error, "1"));
    }
}

#[test]
fn no_findings_are_an_empty_list_of_results() {
    let log = sarif_log("card.json", b"{}", &[], "1");
    assert_taken(&log);
    assert_eq!(log["runs"][0]["results"], json!([]));
}

#[test]
fn a_rule_of_another_version_keeps_its_name() {
    let document = br#"{"name":"A","url":"http://localhost"}"#;
    let mut findings = all_findings(&parse_card(document).unwrap(), document);
    findings.truncate(1);
    findings[0].rule = "gone.by".to_owned();
    let log = sarif_log("card.json", document, &findings, "1");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "gone.by");
    assert!(result.get("ruleIndex").is_none());
}

#[test]
fn a_card_cannot_steer_whoever_reads_the_log() {
    let steering = [
        "\u{9b}31m",
        "\u{85}",
        "\u{202e}",
        "\u{2066}",
        "\u{1b}[2J",
        "\u{e0041}",
    ];
    let assert_plain = |log: &Value| {
        let written = serde_json::to_string(log).unwrap();
        let hidden = written
            .chars()
            .find(|&one| crate::hidden_characters::is_hidden_character(one) || one.is_control());
        assert_eq!(hidden, None, "{written}");
    };
    for steer in steering {
        let name = format!("a{steer}b");
        let card = json!({
            "name": name, "url": name, "skills": [{"id": 1, &name: name}], "protocolVersion": name,
            "securitySchemes": {&name: {"type": name, "in": name}}, "security": [{&name: name}],
        });
        let log = log_of(&card.to_string());
        assert_taken(&log);
        assert_plain(&log);
        assert!(
            log.to_string().contains("\\u{"),
            "the steering text is told: {log}"
        );
        let refusal = parse_card(format!("{{\"{steer}\": {steer}").as_bytes()).unwrap_err();
        assert_plain(&parse_error_sarif_log(&name, &refusal, "1"));
    }
}
