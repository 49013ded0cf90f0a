//! `lint`: what is wrong with cards, without a registry.

use std::io::Read;

use a2a_card::{LintContext, MAX_CARD_BYTES};
use a2a_crawler::fetch::card_under;
use a2a_registry_api::FindingView;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::fetch::fetch_card;
use super::{show, terminal};

/// The version that a SARIF log tells of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `lint` takes.
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

/// What `lint --json` prints of each card. Of one that cannot be read it is a problem document with the same `source`.
#[derive(Debug, Serialize)]
struct LintReport {
    /// The file or URL, as it was given.
    source: String,
    /// The wire format the card was read as.
    family: String,
    /// What in its shape decided for that.
    reason: &'static str,
    /// SHA-256 of its bytes.
    digest: String,
    /// What was found, in the card's order.
    findings: Vec<FindingView>,
}

/// Checks cards: done where none has an error, no where one has.
///
/// # Errors
/// Where one cannot be read or is no card; the others are checked all the same.
pub async fn run(arguments: &LintArgs, console: &Console) -> CommandResult {
    if arguments.rules {
        console.lines(&a2a_card::rules_table())?;
        return Ok(CommandOutcome::Done);
    }
    let mut log = None;
    let mut outcome = CommandOutcome::Done;
    let mut unreadable = false;
    for source in &arguments.cards {
        let judged = match load(source).await {
            Ok(loaded) => judge(source, &loaded, arguments.sarif),
            Err(failure) => LintedCard::unread(failure),
        };
        if let Some(judged) = judged.log {
            merge(&mut log, judged);
        }
        match judged.verdict {
            Ok(report) => {
                if report.errors() {
                    outcome = CommandOutcome::No;
                }
                if !arguments.sarif {
                    report.print(console)?;
                }
            }
            Err(failure) => {
                unreadable = true;
                if console.json && !arguments.sarif {
                    console.raw_json(&document(&failure, source))?;
                }
                failure.complain();
            }
        }
    }
    if let Some(log) = log {
        console.json(&log)?;
    }
    if unreadable {
        return Err(Failure::Reported);
    }
    Ok(outcome)
}

/// Puts the results of one log behind those of another, so that several cards are one run.
fn merge(into: &mut Option<Value>, log: Value) {
    let Some(first) = into else {
        *into = Some(log);
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
fn document(failure: &Failure, source: &str) -> Vec<u8> {
    let document = failure.document().unwrap_or_default();
    let mut document: Value = serde_json::from_slice(&document).unwrap_or_default();
    document["source"] = source.into();
    document.to_string().into_bytes()
}

/// A card as it was loaded, not parsed yet.
pub struct LoadedCard {
    /// The whole document, or one byte more than a card may have.
    pub bytes: Vec<u8>,
    /// The URL that brought it.
    url: Option<Url>,
}

/// The bytes of a card: of a file, a URL, the well-known path under a URL that has none itself or, for `-`, standard
/// input.
pub async fn load(source: &str) -> Result<LoadedCard, Failure> {
    if source.contains("://") {
        let url = Url::parse(source)
            .map_err(|error| Failure::new(format!("{source} is not a URL: {error}")))?;
        let (url, bytes) = fetch_card(&url, card_under(&url).as_ref()).await?;
        return Ok(LoadedCard {
            bytes: bytes.to_vec(),
            url: Some(url),
        });
    }
    let failed = |error: std::io::Error| Failure::new(format!("{source} cannot be read: {error}"));
    let reader: Box<dyn Read> = if source == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(source).map_err(failed)?)
    };
    Ok(LoadedCard {
        bytes: read_bounded(reader, MAX_CARD_BYTES).map_err(failed)?,
        url: None,
    })
}

/// Reads to the end, or to one byte more than the limit, so that whoever reads the bytes can say that they
/// are too many.
pub fn read_bounded(reader: impl Read, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What came of one card.
struct LintedCard {
    verdict: Result<LintReport, Failure>,
    /// The same for code hosting services, where they are told.
    log: Option<Value>,
}

impl LintedCard {
    fn unread(failure: Failure) -> Self {
        Self {
            verdict: Err(failure),
            log: None,
        }
    }
}

fn judge(source: &str, loaded: &LoadedCard, sarif: bool) -> LintedCard {
    let bytes = loaded.bytes.as_slice();
    let parsed = match a2a_card::parse(bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            return LintedCard {
                log: sarif.then(|| a2a_card::sarif_of_refusal(source, &error, VERSION)),
                verdict: Err(Failure::new(format!("{source}: {error}"))),
            };
        }
    };
    // A card that was fetched is expected to speak of its own site.
    let context = LintContext {
        card_url: loaded.url.as_ref(),
        ..LintContext::default()
    };
    let findings = a2a_card::all_findings_in(&parsed, bytes, context);
    LintedCard {
        log: sarif.then(|| a2a_card::sarif(source, bytes, &findings, VERSION)),
        verdict: Ok(LintReport {
            source: source.to_owned(),
            family: parsed.family.as_str().to_owned(),
            reason: parsed.reason,
            digest: a2a_card::digest(bytes),
            findings: findings.into_iter().map(FindingView::from).collect(),
        }),
    }
}

impl LintReport {
    fn count(&self, severity: &str) -> usize {
        let findings = self.findings.iter();
        findings
            .filter(|finding| finding.severity == severity)
            .count()
    }

    fn errors(&self) -> bool {
        self.count("error") > 0
    }

    fn print(&self, console: &Console) -> CommandResult {
        console.show(self, || {
            show::print_findings(console, &self.findings)?;
            terminal::note(&format!(
                "{}: read as {} ({}); errors: {}, warnings: {}, notes: {}",
                self.source,
                self.family,
                self.reason,
                self.count("error"),
                self.count("warning"),
                self.count("info")
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

    fn judged(text: &str) -> Result<bool, Failure> {
        let judged = judge("card", &loaded(text.as_bytes()), false);
        judged.verdict.map(|report| report.errors())
    }

    #[test]
    fn the_exit_code_follows_the_worst_finding() {
        assert_eq!(judged(CLEAN), Ok(false));
        let warned = CLEAN.replace("https://", "http://");
        assert_eq!(judged(&warned), Ok(false));
        let wrong = CLEAN.replace("\"version\": \"1.0\",", "");
        assert_eq!(judged(&wrong), Ok(true));
        for no_card in ["", "not json", "[]", "{\"a\": 1}"] {
            assert!(
                matches!(judged(no_card), Err(Failure::Failed(_))),
                "{no_card}"
            );
        }
    }

    #[test]
    fn a_log_is_written_for_every_document_and_several_are_one_run() {
        let wrong = CLEAN.replace("\"version\": \"1.0\",", "");
        let mut all = None;
        for text in [CLEAN, &wrong, "no card"] {
            merge(
                &mut all,
                judge("card", &loaded(text.as_bytes()), true).log.unwrap(),
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
        let card = load(path.to_str().unwrap()).await.unwrap();
        assert_eq!(card.bytes.len(), MAX_CARD_BYTES + 1);
        let Err(Failure::Failed(line)) = judge("card", &card, false).verdict else {
            panic!("accepted");
        };
        assert!(line.contains(&MAX_CARD_BYTES.to_string()), "{line}");
        assert!(load("/no/such/file").await.is_err());
    }
}
