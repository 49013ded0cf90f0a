//! `lint`: what is wrong with a card, without a registry.

use std::io::Read;

use a2a_card::{LintContext, MAX_CARD_BYTES, Severity};
use clap::Args;
use serde::Serialize;
use url::Url;

use super::client;
use super::console::Console;
use super::failure::{Failure, Outcome};
use super::{show, terminal};
use crate::api::FindingView;

/// The version that a SARIF log tells of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `lint` takes.
#[derive(Args, Debug, Clone)]
pub struct LintArgs {
    /// A file, a URL, or `-` for standard input
    #[arg(value_name = "FILE|URL|-", required_unless_present = "rules")]
    card: Option<String>,
    /// Print the findings as a SARIF 2.1.0 log, for code hosting services
    #[arg(long)]
    sarif: bool,
    /// Print all rules as a Markdown table, and check nothing
    #[arg(long, conflicts_with_all = ["card", "sarif"])]
    rules: bool,
}

/// What `lint --json` prints.
#[derive(Debug, Serialize)]
struct Report {
    /// The wire format the card was read as.
    family: String,
    /// What in its shape decided for that.
    reason: &'static str,
    /// SHA-256 of its bytes.
    digest: String,
    /// What was found, in the card's order.
    findings: Vec<FindingView>,
}

/// Checks a card: done where it has no error, no where it has.
///
/// # Errors
/// Where there is nothing to read, or it is no card.
pub async fn run(arguments: &LintArgs, console: &Console) -> Result<Outcome, Failure> {
    let Some(source) = arguments.card.as_deref() else {
        console.lines(&a2a_card::rules_table())?;
        return Ok(Outcome::Done);
    };
    let bytes = load(source).await?;
    judge(source, &bytes, arguments.sarif, console)
}

/// The bytes of a card: of a file, a URL or, for `-`, standard input.
///
/// # Errors
/// Where they cannot be read.
pub async fn load(source: &str) -> Result<Vec<u8>, Failure> {
    if source.contains("://") {
        let url = Url::parse(source)
            .map_err(|error| Failure::new(format!("{source} is not a URL: {error}")))?;
        return Ok(client::fetch(&url, MAX_CARD_BYTES).await?.to_vec());
    }
    let failed = |error: std::io::Error| Failure::new(format!("{source} cannot be read: {error}"));
    let reader: Box<dyn Read> = if source == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(source).map_err(failed)?)
    };
    read_bounded(reader, MAX_CARD_BYTES).map_err(failed)
}

/// Reads to the end, or to one byte more than the limit, so that whoever reads the bytes can say that they
/// are too many.
///
/// # Errors
/// Where the reader fails.
pub fn read_bounded(reader: impl Read, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn judge(source: &str, bytes: &[u8], sarif: bool, console: &Console) -> Result<Outcome, Failure> {
    let parsed = match a2a_card::parse(bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            if sarif {
                console.json(&a2a_card::sarif_of_refusal(source, &error, VERSION))?;
            }
            return Err(Failure::new(format!("{source}: {error}")));
        }
    };
    // A card that was fetched is expected to speak of its own site.
    let card_url = Url::parse(source).ok().filter(Url::has_host);
    let context = LintContext {
        card_url: card_url.as_ref(),
        ..LintContext::default()
    };
    let findings = a2a_card::all_findings_in(&parsed, bytes, context);
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (errors, warnings, notes) = (
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Info),
    );
    let log = sarif.then(|| a2a_card::sarif(source, bytes, &findings, VERSION));
    let report = Report {
        family: parsed.family.as_str().to_owned(),
        reason: parsed.reason,
        digest: a2a_card::digest(bytes),
        findings: findings.into_iter().map(FindingView::from).collect(),
    };
    if let Some(log) = log {
        console.json(&log)?;
    } else if console.json {
        console.json(&report)?;
    } else {
        show::print_findings(console, &report.findings)?;
        terminal::note(&format!(
            "{source}: read as {} ({}); errors: {errors}, warnings: {warnings}, notes: {notes}",
            report.family, report.reason
        ));
    }
    Ok(if errors > 0 {
        Outcome::No
    } else {
        Outcome::Done
    })
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

    fn judged(text: &str) -> Result<Outcome, Failure> {
        judge(
            "card",
            text.as_bytes(),
            false,
            &Console {
                json: true,
                interactive: false,
            },
        )
    }

    #[test]
    fn the_exit_code_follows_the_worst_finding() {
        assert_eq!(judged(CLEAN), Ok(Outcome::Done));
        let warned = CLEAN.replace("https://", "http://");
        assert_eq!(judged(&warned), Ok(Outcome::Done));
        let wrong = CLEAN.replace("\"version\": \"1.0\",", "");
        assert_eq!(judged(&wrong), Ok(Outcome::No));
        for no_card in ["", "not json", "[]", "{\"a\": 1}"] {
            assert!(
                matches!(judged(no_card), Err(Failure::Failed(_))),
                "{no_card}"
            );
        }
    }

    #[test]
    fn a_log_is_written_for_every_document_and_the_exit_code_stays() {
        let console = Console {
            json: false,
            interactive: false,
        };
        let logged = |text: &str| judge("card", text.as_bytes(), true, &console);
        assert_eq!(logged(CLEAN), Ok(Outcome::Done));
        let wrong = CLEAN.replace("\"version\": \"1.0\",", "");
        assert_eq!(logged(&wrong), Ok(Outcome::No));
        assert!(matches!(logged("no card"), Err(Failure::Failed(_))));
    }

    #[tokio::test]
    async fn a_file_is_read_to_the_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.json");
        std::fs::write(&path, vec![b' '; MAX_CARD_BYTES + 100]).unwrap();
        let bytes = load(path.to_str().unwrap()).await.unwrap();
        assert_eq!(bytes.len(), MAX_CARD_BYTES + 1);
        let Err(Failure::Failed(line)) = judge(
            "card",
            &bytes,
            false,
            &Console {
                json: true,
                interactive: false,
            },
        ) else {
            panic!("accepted");
        };
        assert!(line.contains(&MAX_CARD_BYTES.to_string()), "{line}");
        assert!(load("/no/such/file").await.is_err());
    }
}
