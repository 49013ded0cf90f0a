//! Form that lints a pasted card before publication, as `POST /v1/cards:lint` does.

use a2a_card::MAX_CARD_BYTES;
use a2a_registry_api::{CardLint, FindingView};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::lint::run_card_lint;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use crate::pages::domains::register::{RegisterPage, to_sentence};
use crate::problems::problem::Problem;
use crate::requests::auth::limit_anonymous_write;
use crate::requests::body::PendingBody;
use crate::requests::forms::read_form;
use crate::requests::visitor::Visitor;

/// Maximum number of bytes of the form: each byte of a card may be escaped.
const MAX_FORM_BYTES: usize = 3 * MAX_CARD_BYTES + 64;
pub(super) const FINDINGS: usize = 100;

#[derive(Deserialize, Default)]
#[serde(default)]
struct LintForm {
    card: String,
}

#[derive(Default)]
pub(crate) struct LintFormView {
    pub card: String,
    /// Reason why the card could not be parsed.
    pub problem: Option<String>,
    pub result: Option<CardLint>,
}

/// Lints the card in the form, and shows the page with the findings.
pub(crate) async fn submit_lint_form(
    context: web::Data<AppContext>,
    visitor: Visitor,
    request: HttpRequest,
    body: PendingBody,
) -> HttpResponse {
    let mut linted = LintFormView::default();
    let status = match lint_pasted_card(&context, &request, body, &mut linted.card).await {
        Ok(result) => {
            linted.result = Some(result);
            StatusCode::OK
        }
        Err(problem) => {
            crate::pages::log_problem(&problem);
            linted.problem = Some(to_sentence(&problem.to_string()));
            problem.kind().status
        }
    };
    let page = RegisterPage::with_lint(&context.config(), &visitor, linted);
    crate::pages::render_page(status, &page)
}

async fn lint_pasted_card(
    context: &AppContext,
    request: &HttpRequest,
    body: PendingBody,
    card: &mut String,
) -> Result<CardLint, Problem> {
    limit_anonymous_write(request, &Caller::default())?;
    let form: LintForm = read_form(request, body, MAX_FORM_BYTES).await?;
    *card = form.card;
    Ok(run_card_lint(context, card.clone().into()).await?)
}

/// Number of findings by severity, such as "2 errors, 1 warning".
pub(super) fn lint_findings_summary(findings: &[FindingView]) -> String {
    let kinds = [
        ("error", "errors"),
        ("warning", "warnings"),
        ("info", "hints"),
    ];
    let counts: Vec<String> = kinds
        .iter()
        .filter_map(|(severity, plural)| {
            let count = findings
                .iter()
                .filter(|one| one.severity == *severity)
                .count();
            match count {
                0 => None,
                1 => Some(format!("1 {}", plural.trim_end_matches('s'))),
                _ => Some(format!("{count} {plural}")),
            }
        })
        .collect();
    if counts.is_empty() {
        "Nothing to fix.".to_owned()
    } else {
        format!("{}.", counts.join(", "))
    }
}
