//! `lint`: findings about cards, without a registry.

use std::io::Read;

use a2a_card::{LintContext, MAX_CARD_BYTES};
use a2a_crawler::fetch::card_url_under;
use a2a_registry_api::FindingView;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::fetch::fetch_card;
use super::{show, terminal};

/// Version of this program in SARIF logs.
const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Arguments of `lint`.
#[derive(Args, Debug, Clone)]
pub struct LintArgs {
    /// Files, URLs, or `-` for standard input
    #[arg(value_name = "FILE|URL|-", required_unless_present = "rules")]
    cards: Vec<String>,
    /// Print the findings as a SARIF 2.1.0 log, for code hosting services
    #[arg(long)]
    sarif: bool,
    /// Print all rules as a Markdown table, and check nothing
    #[arg(long, conflicts_with_all = ["cards", "sarif"])]
    rules: bool,
}

/// Report of `lint --json` for one card. A card that cannot be read has a problem document with the same `source`
/// instead.
#[derive(Debug, Serialize)]
struct CardLintReport {
    /// File or URL, as given.
    source: String,
    /// The wire format the card was read as.
    family: String,
    /// Reason for reading it as this format, from its shape.
    reason: &'static str,
    /// SHA-256 of the card's bytes.
    digest: String,
    /// Findings, in the order of the card.
    findings: Vec<FindingView>,
}

/// Checks cards: done if none has an error, negative if one has.
///
/// # Errors
/// If one cannot be read or is not a card; the others are checked nevertheless.
pub async fn run_lint(arguments: &LintArgs, console: &Console) -> CommandResult {
    if arguments.rules {
        console.print_lines(&a2a_card::rules_as_markdown())?;
        return Ok(CommandOutcome::Done);
    }
    let mut sarif_log = None;
    let mut outcome = CommandOutcome::Done;
    let mut unreadable = false;
    for source in &arguments.cards {
        let result = match load_card(source).await {
            Ok(loaded) => lint_card(source, &loaded, arguments.sarif),
            Err(failure) => CardLintResult::unreadable(failure),
        };
        if let Some(judged) = result.sarif_log {
            merge_sarif_logs(&mut sarif_log, judged);
        }
        match result.report {
            Ok(report) => {
                if report.has_errors() {
                    outcome = CommandOutcome::Negative;
                }
                if !arguments.sarif {
                    report.print(console)?;
                }
            }
            Err(failure) => {
                unreadable = true;
                if console.json && !arguments.sarif {
                    console.print_raw_json(&unreadable_card_problem(&failure, source))?;
                }
                failure.print();
            }
        }
    }
    if let Some(log) = sarif_log {
        console.print_json(&log)?;
    }
    if unreadable {
        return Err(CommandError::Reported);
    }
    Ok(outcome)
}

/// Appends the results of one log to those of another, so that several cards are one run.
fn merge_sarif_logs(merged: &mut Option<Value>, log: Value) {
    let Some(first) = merged else {
        *merged = Some(log);
        return;
    };
    let results = first.pointer_mut("/runs/0/results");
    if let (Some(Value::Array(all)), Some(Value::Array(more))) =
        (results, log.pointer("/runs/0/results"))
    {
        all.extend(more.iter().cloned());
    }
}

/// The problem document of a card that could not be read.
fn unreadable_card_problem(error: &CommandError, source: &str) -> Vec<u8> {
    let document = error.problem_document().unwrap_or_default();
    let mut document: Value = serde_json::from_slice(&document).unwrap_or_default();
    document["source"] = source.into();
    document.to_string().into_bytes()
}

/// Card that was loaded but not parsed yet.
pub struct LoadedCard {
    /// The whole document, or one byte more than the limit for a card.
    pub bytes: Vec<u8>,
    /// URL that it was loaded from.
    url: Option<Url>,
}

/// Loads the bytes of a card: from a file, a URL, the well-known path under a URL without a path or, for `-`, standard
/// input.
pub async fn load_card(source: &str) -> Result<LoadedCard, CommandError> {
    if source.contains("://") {
        let url = Url::parse(source)
            .map_err(|error| CommandError::new(format!("{source} is not a URL: {error}")))?;
        let (url, bytes) = fetch_card(&url, card_url_under(&url).as_ref()).await?;
        return Ok(LoadedCard {
            bytes: bytes.to_vec(),
            url: Some(url),
        });
    }
    let read_error =
        |error: std::io::Error| CommandError::new(format!("{source} cannot be read: {error}"));
    let reader: Box<dyn Read> = if source == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(source).map_err(read_error)?)
    };
    Ok(LoadedCard {
        bytes: read_one_past_limit(reader, MAX_CARD_BYTES).map_err(read_error)?,
        url: None,
    })
}

/// Reads to the end, or to one byte more than the limit, so that the caller can tell that the input is too long.
pub fn read_one_past_limit(reader: impl Read, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Result for one card.
struct CardLintResult {
    report: Result<CardLintReport, CommandError>,
    /// SARIF log, if one was requested.
    sarif_log: Option<Value>,
}

impl CardLintResult {
    fn unreadable(error: CommandError) -> Self {
        Self {
            report: Err(error),
            sarif_log: None,
        }
    }
}

fn lint_card(source: &str, card: &LoadedCard, sarif: bool) -> CardLintResult {
    let bytes = card.bytes.as_slice();
    let parsed = match a2a_card::parse_card(bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            return CardLintResult {
                sarif_log: sarif
                    .then(|| a2a_card::parse_error_sarif_log(source, &error, PROGRAM_VERSION)),
                report: Err(CommandError::new(format!("{source}: {error}"))),
            };
        }
    };
    // A fetched card is expected to refer to its own site.
    let context = LintContext {
        card_url: card.url.as_ref(),
        ..LintContext::default()
    };
    let findings = a2a_card::all_findings_with_context(&parsed, bytes, context);
    CardLintResult {
        sarif_log: sarif.then(|| a2a_card::sarif_log(source, bytes, &findings, PROGRAM_VERSION)),
        report: Ok(CardLintReport {
            source: source.to_owned(),
            family: parsed.family.as_str().to_owned(),
            reason: parsed.reason,
            digest: a2a_card::bytes_digest(bytes),
            findings: findings.into_iter().map(FindingView::from).collect(),
        }),
    }
}

impl CardLintReport {
    fn count_findings(&self, severity: &str) -> usize {
        let findings = self.findings.iter();
        findings
            .filter(|finding| finding.severity == severity)
            .count()
    }

    fn has_errors(&self) -> bool {
        self.count_findings("error") > 0
    }

    fn print(&self, console: &Console) -> CommandResult {
        console.print_result(self, || {
            show::print_findings(console, &self.findings)?;
            terminal::eprint_note(&format!(
                "{}: read as {} ({}); errors: {}, warnings: {}, notes: {}",
                self.source,
                self.family,
                self.reason,
                self.count_findings("error"),
                self.count_findings("warning"),
                self.count_findings("info")
            ));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const CLEAN: &str = r#"{
        "name": "Echo", "description": "Repeats", "url": "https://echo.agents.dev/a2a",
        "version": "1.0", "protocolVersion": "0.3.0", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "echo", "name": "Echo", "description": "Repeats", "tags": ["echo"],
                    "examples": ["say it again"]}]
    }"#;

    fn loaded(bytes: &[u8]) -> LoadedCard {
        LoadedCard {
            bytes: bytes.to_vec(),
            url: None,
        }
    }

    fn lint_text(text: &str) -> Result<bool, CommandError> {
        let judged = lint_card("card", &loaded(text.as_bytes()), false);
        judged.report.map(|report| report.has_errors())
    }

    #[test]
    fn the_exit_code_follows_the_worst_finding() {
        assert_eq!(lint_text(CLEAN), Ok(false));
        let warned = CLEAN.replace("https://", "http://");
        assert_eq!(lint_text(&warned), Ok(false));
        let wrong = CLEAN.replace("\"version\": \"1.0\",", "");
        assert_eq!(lint_text(&wrong), Ok(true));
        for no_card in ["", "not json", "[]", "{\"a\": 1}"] {
            assert!(
                matches!(lint_text(no_card), Err(CommandError::Failed(_))),
                "{no_card}"
            );
        }
    }

    #[test]
    fn a_log_is_written_for_every_document_and_several_are_one_run() {
        let wrong = CLEAN.replace("\"version\": \"1.0\",", "");
        let mut all = None;
        for text in [CLEAN, &wrong, "no card"] {
            merge_sarif_logs(
                &mut all,
                lint_card("card", &loaded(text.as_bytes()), true)
                    .sarif_log
                    .unwrap(),
            );
        }
        let all = all.unwrap();
        assert_eq!(all["runs"].as_array().map(Vec::len), Some(1));
        let results = all["runs"][0]["results"].as_array().unwrap();
        let errors = results.iter().filter(|result| result["level"] == "error");
        assert_eq!(errors.count(), 2, "{results:#?}");
    }

    #[tokio::test]
    async fn a_file_is_read_to_the_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.json");
        std::fs::write(&path, vec![b' '; MAX_CARD_BYTES + 100]).unwrap();
        let card = load_card(path.to_str().unwrap()).await.unwrap();
        assert_eq!(card.bytes.len(), MAX_CARD_BYTES + 1);
        let Err(CommandError::Failed(line)) = lint_card("card", &card, false).report else {
            panic!("accepted");
        };
        assert!(line.contains(&MAX_CARD_BYTES.to_string()), "{line}");
        assert!(load_card("/no/such/file").await.is_err());
    }
}
