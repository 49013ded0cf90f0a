//! `lint`: what is wrong with a card, without a registry.

use std::io::Read;

use a2a_card::{MAX_CARD_BYTES, Severity};
use clap::Args;
use serde::Serialize;
use url::Url;

use super::client;
use super::console::Console;
use super::failure::{Failure, Outcome};
use super::{show, terminal};
use crate::api::FindingView;

/// What `lint` takes.
#[derive(Args, Debug, Clone)]
pub struct LintArgs {
    /// A file, a URL, or `-` for standard input
    #[arg(value_name = "FILE|URL|-")]
    card: String,
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
    let bytes = load(&arguments.card).await?;
    judge(&arguments.card, &bytes, console)
}

async fn load(source: &str) -> Result<Vec<u8>, Failure> {
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
    // One byte more than a card may have, so that the reader of cards can say that it is too large.
    let mut bytes = Vec::new();
    reader
        .take(MAX_CARD_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(bytes)
}

fn judge(source: &str, bytes: &[u8], console: &Console) -> Result<Outcome, Failure> {
    let parsed =
        a2a_card::parse(bytes).map_err(|error| Failure::new(format!("{source}: {error}")))?;
    let findings = a2a_card::all_findings(&parsed, bytes);
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
    let report = Report {
        family: parsed.family.as_str().to_owned(),
        reason: parsed.reason,
        digest: a2a_card::digest(bytes),
        findings: findings.into_iter().map(FindingView::from).collect(),
    };
    if console.json {
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
