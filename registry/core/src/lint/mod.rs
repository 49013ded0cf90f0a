//! Linting of submitted cards: nothing is fetched and nothing is stored.

use std::sync::Arc;

use a2a_card::{Finding, ParseError, all_findings, bytes_digest, finding_positions, parse_card};
use a2a_registry_api::{CardLint, FindingView};
use bytes::Bytes;

use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};

/// Lints the bytes of a card on one of a bounded number of threads.
pub async fn run_card_lint(context: &AppContext, bytes: Bytes) -> Result<CardLint> {
    let lints = &context.lint_pool;
    let Ok(_place) = lints.pending.try_acquire() else {
        return Err(AppError::unavailable(
            "Too many cards are being linted; try again.",
            1,
        ));
    };
    let permit = Arc::clone(&lints.running).acquire_owned().await;
    let permit = permit
        .map_err(|_| AppError::unavailable("The registry is shutting down. Try again.", 5))?;
    let linted = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        lint_card(&bytes)
    });
    linted
        .await
        .map_err(|error| AppError::internal(format!("linting was aborted: {error}")))?
}

fn lint_card(bytes: &[u8]) -> Result<CardLint> {
    let parsed = parse_card(bytes).map_err(|error| card_parse_error(&error))?;
    let findings = all_findings(&parsed, bytes);
    let positions = finding_positions(bytes, &findings);
    let to_view = |(finding, position): (Finding, Option<a2a_card::TextPosition>)| FindingView {
        line: position.map(|at| at.line),
        column: position.map(|at| at.column),
        ..finding.into()
    };
    Ok(CardLint {
        digest: bytes_digest(bytes),
        name: parsed.card.name,
        wire_family: parsed.family.as_str().to_owned(),
        reason: parsed.reason.to_owned(),
        findings: findings.into_iter().zip(positions).map(to_view).collect(),
    })
}

/// The error for bytes that cannot be read as a card, with what to do.
fn card_parse_error(error: &ParseError) -> AppError {
    let kind = match error {
        ParseError::NotJson { .. } => ErrorKind::NotJson,
        ParseError::NotACard { .. } | ParseError::TooDeep | ParseError::TooLarge { .. } => {
            ErrorKind::NotACard
        }
    };
    let text = format!(
        "The document is rejected: {error}. Expected: {}.",
        error.rule().summary
    );
    AppError {
        members: vec![(String::new(), text.clone())],
        ..AppError::new(kind, text)
    }
}
