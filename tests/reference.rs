//! The reference pages of the manual: each is what the program says of itself. `UPDATE_EXPECT=1` rewrites them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::facet::Facet;
use a2a_registry_http::problems::problem_kinds;
use a2a_registry_http::routes::openapi::default_openapi_text;
use serde_json::Value;

use crate::support::program::{Program, assert_exit, registry_command};

/// The sentence that ends what people have written on a page of the reference.
const MARK: &str = "\nThe rest of this page is generated from the program.\n\n";

/// Checks that a page of the reference continues with this text after what people have written.
pub fn assert_generated(page: &str, generated: &str) {
    let path = format!("{}/../docs/reference/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (introduction, _) = text.split_once(MARK).expect(&path);
    let expected = format!("{introduction}{MARK}{}\n", generated.trim());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    let mut lines = expected.lines().zip(text.lines());
    assert!(
        expected == text,
        "docs/reference/{page}.md is not what the program says: check the difference, and run this test with \
         UPDATE_EXPECT=1 to rewrite it. The first difference: {:?}",
        lines.find(|(new, old)| new != old)
    );
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

#[test]
fn problems_are_those_of_the_program() {
    let mut page = String::new();
    for kind in problem_kinds::ALL {
        let (slug, status) = (kind.slug, kind.status.as_u16());
        let explanation = cell(kind.explanation);
        writeln!(
            page,
            "## {slug}\n\n{status}: {}. {explanation}\n",
            kind.title
        )
        .unwrap();
    }
    assert_generated("problems", &page);
}

#[test]
fn findings_are_those_of_the_linter() {
    assert_generated("findings", &a2a_card::rules_as_markdown());
}

#[test]
fn events_are_those_of_the_program() {
    let mut page = "| kind | meaning | cause |\n|---|---|---|\n".to_owned();
    let mut meaning = String::new();
    let mut kinds = BTreeSet::new();
    for line in include_str!("../registry/domain/src/event.rs").lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            meaning.push_str(text);
            continue;
        }
        let kind = line
            .split_once(" = \"")
            .map(|(_, kind)| kind.trim_end_matches("\","));
        if let Some(kind) = kind.and_then(|kind| kind.parse::<EventKind>().ok()) {
            assert!(!meaning.is_empty(), "{kind} has no doc comment");
            let cause = match kind.is_action() {
                true => "action",
                false => "observation",
            };
            writeln!(page, "| `{kind}` | {} | {cause} |", cell(&meaning)).unwrap();
            kinds.insert(kind);
        }
        meaning.clear();
    }
    assert_eq!(kinds.len(), EventKind::ALL.len());
    assert_generated("events", &page);
}

#[test]
fn policy_attributes_are_those_of_the_schema() {
    let mut page = String::new();
    let mut comment = String::new();
    for line in include_str!("../registry/policy/src/schema.cedarschema").lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("//") {
            comment.push_str(text);
            continue;
        }
        let item = line
            .strip_prefix("entity ")
            .or_else(|| line.strip_prefix("action "));
        if let Some(item) = item {
            let name = item
                .split(" in ")
                .next()
                .unwrap()
                .split(" appliesTo")
                .next()
                .unwrap();
            let name = name.trim_end_matches([' ', ';', '{']);
            writeln!(page, "## {name}\n\n{}\n", cell(&comment)).unwrap();
            if line.ends_with('{') {
                page.push_str("| attribute | type | meaning |\n|---|---|---|\n");
            }
        } else if let Some((name, kind)) = line.split_once(": ") {
            let (kind, meaning) = (kind.trim_end_matches(','), cell(&comment));
            assert!(!meaning.is_empty(), "{name} has no comment");
            writeln!(page, "| `{name}` | `{kind}` | {meaning} |").unwrap();
        } else if line == "};" {
            page.push('\n');
        }
        comment.clear();
    }
    assert_generated("policy-attributes", &page);
}

/// The lines that a command prints.
async fn printed_lines(arguments: &[&str]) -> Vec<String> {
    let finished = Program::run(registry_command(arguments)).await;
    assert_exit(&finished, 0, "");
    finished.stdout
}

/// A table with a user-defined name in each place that takes one.
const NAMED_TABLES: &str = "\
[identity]\nallow_names = [\"login.example\"]\n\
[identity.providers.name]\nissuer = \"https://login.example\"\naudiences = [\"https://registry.example\"]\n\
[identity.providers.name.require]\nclaim = \"groups\"\nvalues = [\"staff\"]\n\
[federation]\nallow_names = [\"other.example\"]\n\
[federation.peers.name]\nurl = \"https://other.example/ard\"\n";

#[tokio::test]
async fn settings_are_those_of_the_printed_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registry.toml");
    std::fs::write(&file, NAMED_TABLES).unwrap();
    let file = file.to_str().unwrap();
    let lines = printed_lines(&["serve", "--print-config=commented", "--config", file]).await;
    let mut page = String::new();
    let (mut comment, mut default, mut has_keys) = (String::new(), None, false);
    for line in lines.iter().map(|line| line.trim()) {
        if let Some(value) = line.strip_prefix("# Default: ") {
            default = Some(value);
        } else if let Some(table) = line.trim_start_matches('#').strip_prefix('[') {
            let about = cell(&comment);
            writeln!(page, "\n## {}\n\n{about}\n", table.trim_end_matches(']')).unwrap();
            has_keys = false;
            comment.clear();
        } else if let Some(value) = default.take() {
            if !has_keys {
                page.push_str("| key | meaning, unit and bounds | default |\n|---|---|---|\n");
                has_keys = true;
            }
            let key = line
                .trim_start_matches(['#', ' '])
                .split(" = ")
                .next()
                .unwrap();
            writeln!(page, "| `{key}` | {} | `{}` |", cell(&comment), cell(value)).unwrap();
            comment.clear();
        } else if let Some(text) = line.strip_prefix('#') {
            comment.push_str(text);
        } else {
            comment.clear();
        }
    }
    assert_generated("configuration", &page);
}

/// The names of the subcommands in a help text.
fn subcommand_names(help: &[String]) -> Vec<String> {
    let listed = help.iter().filter_map(|line| {
        let (name, about) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let is_command = name.starts_with(|letter: char| letter.is_ascii_lowercase());
        (is_command && name.chars().all(is_name) && !about.trim().is_empty())
            .then(|| name.to_owned())
    });
    listed.filter(|name| name != "help").collect()
}

#[tokio::test]
async fn commands_are_those_of_the_help() {
    let mut page = String::new();
    let mut commands = vec![Vec::<String>::new()];
    while let Some(command) = commands.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = printed_lines(&arguments).await;
        let paragraphs = help.join("\n");
        let shown = paragraphs
            .split("\n\n")
            .filter(|paragraph| command.is_empty() || !paragraph.starts_with("Client options:"));
        let shown: Vec<&str> = shown.collect();
        let (level, name) = match command.len() {
            0 => ("##", "a2a-registry".to_owned()),
            1 => ("##", command.join(" ")),
            _ => ("###", command.join(" ")),
        };
        writeln!(
            page,
            "{level} {name}\n\n```text\n{}\n```\n",
            shown.join("\n\n").trim_end()
        )
        .unwrap();
        // The last one is taken next.
        let below = subcommand_names(&help).into_iter().rev();
        commands.extend(below.map(|name| [command.as_slice(), &[name]].concat()));
    }
    assert_generated("command-line", &page);
}

/// What an operation says of its caller.
fn describe_caller(operation: &Value) -> &'static str {
    let stated = operation["security"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let takes_token = stated.iter().any(|one| one.get("token").is_some());
    let is_optional = stated.iter().any(|one| one.get("token").is_none());
    match (takes_token, is_optional || stated.is_empty()) {
        (true, false) => "A token is required.",
        (true, true) => "A token is optional.",
        (false, _) => "Tokens are not read.",
    }
}

/// The last part of a reference to a component.
fn component_name(reference: &Value) -> Option<&str> {
    reference["$ref"].as_str()?.rsplit('/').next()
}

fn describe_operation(method: &str, path: &str, operation: &Value) -> String {
    let text = |value: &Value| cell(value.as_str().unwrap_or_default());
    let summary = text(&operation["summary"]);
    let mut page = format!("### {} {path}\n\n{summary}. ", method.to_uppercase());
    let description = text(&operation["description"]);
    for sentence in [description.as_str(), describe_caller(operation)] {
        if !sentence.is_empty() {
            write!(page, "{sentence} ").unwrap();
        }
    }
    let body = operation["requestBody"]["content"].as_object();
    for (media_type, content) in body.into_iter().flatten() {
        let schema = component_name(&content["schema"]).unwrap_or("any JSON");
        write!(page, "Body: `{schema}` as `{media_type}`. ").unwrap();
    }
    page = page.trim_end().to_owned() + "\n\n";
    let parameters = operation["parameters"].as_array();
    if let Some(parameters) = parameters.filter(|all| !all.is_empty()) {
        page.push_str("| parameter | in | meaning |\n|---|---|---|\n");
        for parameter in parameters {
            let schema = &parameter["schema"];
            let values = [schema, &schema["items"]].map(|schema| schema["enum"].as_array());
            let values = values
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(Value::as_str);
            let values: Vec<String> = values.map(|value| format!("`{value}`")).collect();
            let meaning = match (text(&parameter["description"]), values.is_empty()) {
                (meaning, false) if meaning.is_empty() => format!("One of {}.", values.join(", ")),
                (meaning, _) => meaning,
            };
            let (name, place) = (&parameter["name"], &parameter["in"]);
            writeln!(page, "| `{}` | {} | {meaning} |", text(name), text(place)).unwrap();
        }
        page.push('\n');
    }
    page.push_str("| status | response |\n|---|---|\n");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        // What all operations have in common is told once.
        if component_name(response).is_none() {
            let content = response["content"].as_object().into_iter().flatten();
            let mut schemas = content.filter_map(|(_, content)| component_name(&content["schema"]));
            let schema = schemas.find(|schema| *schema != "Problem");
            let schema = schema
                .map(|schema| format!(" (`{schema}`)"))
                .unwrap_or_default();
            let description = text(&response["description"]);
            writeln!(page, "| {status} | {description}{schema} |").unwrap();
        }
    }
    page + "\n"
}

#[test]
fn http_operations_are_those_of_the_document() {
    let document: Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let mut tags = BTreeMap::<&str, String>::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let tag = operation["tags"][0].as_str().unwrap();
            tags.entry(tag)
                .or_default()
                .push_str(&describe_operation(method, path, operation));
        }
    }
    let page: Vec<String> = tags
        .iter()
        .map(|(tag, text)| format!("## {tag}\n\n{text}"))
        .collect();
    assert_generated("http", &page.concat());
}

#[test]
fn every_filter_is_in_the_manual() {
    let page = include_str!("../docs/find/filters.md");
    for facet in Facet::ALL {
        assert!(page.contains(&format!("`{facet}`")), "{facet}");
    }
}

/// The metrics of scrapes: each with its help, its type and the labels of its samples.
pub fn describe_metrics(scrape: &str) -> String {
    let mut metrics = BTreeMap::<&str, (&str, &str, BTreeSet<&str>)>::new();
    for line in scrape.lines() {
        let line_parts = line
            .strip_prefix("# ")
            .and_then(|line| line.split_once(' '));
        match line_parts.and_then(|(word, rest)| Some((word, rest.split_once(' ')?))) {
            Some(("HELP", (name, help))) => metrics.entry(name).or_default().0 = help,
            Some(("TYPE", (name, kind))) => metrics.entry(name).or_default().1 = kind,
            _ => {
                let Some((sample, labels)) = line.split_once('{') else {
                    continue;
                };
                let described = metrics
                    .iter_mut()
                    .rfind(|(name, _)| sample.starts_with(**name));
                if let Some((_, (_, _, names))) = described {
                    let labels = labels.split('}').next().unwrap_or_default();
                    let labels = labels
                        .split("\",")
                        .filter_map(|label| label.split('=').next());
                    names.extend(labels.filter(|label| *label != "le"));
                }
            }
        }
    }
    let mut page = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for (name, (help, kind, labels)) in metrics {
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let help = help.trim_end_matches('.');
        writeln!(
            page,
            "| `{name}{suffix}` | {kind} | {} | {help} |",
            labels.join(", ")
        )
        .unwrap();
    }
    page
}
