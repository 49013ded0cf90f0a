//! Bulk registration: as many names in one request as the registry accepts.

use a2a_registry_api::limits::{MAX_BULK_REGISTRATIONS, MAX_REGISTRATIONS_BODY_BYTES};
use a2a_registry_api::{BulkRegistration, OutcomeProblem, Registration, RegistrationOutcome};
use bytes::Bytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::super::client::Client;
use super::super::client_error::{ClientError, ProblemDetails};
use super::super::command_error::{CommandError, CommandOutcome};
use super::super::console::Console;
use super::super::name_parsing::parse_registration;
use super::crawl_results::sources_are_only_recorded;
use super::{RegisterArgs, RegisteredName, RegistrationResults, report_rejected_name};

/// Size of a request without its registrations, in bytes.
const ENVELOPE_BYTES: usize = r#"{"registrations":[]}"#.len();

/// Names for one request.
#[derive(Default)]
struct RegistrationBatch<'a> {
    names: Vec<&'a str>,
    registrations: Vec<Registration>,
    /// Size of the registrations as sent, with a comma for each.
    bytes: usize,
}

/// Registers these names, even if some fail.
pub(super) async fn register_in_batches(
    arguments: &RegisterArgs,
    client: &Client,
    console: &Console,
    names: &[String],
) -> Result<RegistrationResults, CommandError> {
    let mut results = RegistrationResults::default();
    let (batches, wrong) = split_names_into_batches(names, arguments.approve);
    for failure in wrong {
        results.outcome = CommandOutcome::Negative;
        report_rejected_name(console, failure)?;
    }
    let progress = new_progress_bar(batches.iter().map(|batch| batch.names.len()).sum());
    let mut batches = batches.into_iter();
    while let Some(batch) = batches.next() {
        let RegistrationBatch {
            names,
            registrations,
            ..
        } = batch;
        let what = BulkRegistration { registrations };
        let stop_error = match client.register_all(&what).await {
            Ok(reply) if reply.value.outcomes.len() == names.len() => {
                let outcomes = names.iter().zip(reply.value.outcomes);
                progress.suspend(|| {
                    collect_registration_results(&mut results, console, outcomes, arguments.no_wait)
                })?
            }
            Ok(_) => Some(CommandError::new(
                "the registry's response does not cover each registration; check that the registry has the same \
                 version as this program",
            )),
            Err(error) => {
                let failure = CommandError::from(error);
                progress.suspend(|| report_unknown_results(console, &names))?;
                Some(failure)
            }
        };
        progress.inc(names.len() as u64);
        if stop_error.is_some() {
            results.stop_error = stop_error;
            let rest: Vec<&str> = batches.flat_map(|batch| batch.names).collect();
            progress.suspend(|| report_unsent_names(console, &rest))?;
            break;
        }
    }
    progress.finish_and_clear();
    Ok(results)
}

/// Splits names into requests, and returns the names that cannot be sent.
fn split_names_into_batches(
    names: &[String],
    approve: bool,
) -> (Vec<RegistrationBatch<'_>>, Vec<CommandError>) {
    let mut batches = Vec::new();
    let mut unsendable = Vec::new();
    let mut batch = RegistrationBatch::default();
    for name in names {
        let registration = match parse_registration(name, approve) {
            Ok(what) => what,
            Err(failure) => {
                unsendable.push(failure.with_context(name));
                continue;
            }
        };
        let bytes = 1 + serde_json::to_vec(&registration).map_or(0, |json| json.len());
        if ENVELOPE_BYTES + bytes > MAX_REGISTRATIONS_BODY_BYTES {
            let short: String = name.chars().take(100).collect();
            unsendable.push(CommandError::new(format!(
                "{short}…: it is too long for a request"
            )));
            continue;
        }
        let is_full = batch.names.len() == MAX_BULK_REGISTRATIONS
            || ENVELOPE_BYTES + batch.bytes + bytes > MAX_REGISTRATIONS_BODY_BYTES;
        if is_full {
            batches.push(std::mem::take(&mut batch));
        }
        batch.names.push(name);
        batch.registrations.push(registration);
        batch.bytes += bytes;
    }
    if !batch.names.is_empty() {
        batches.push(batch);
    }
    (batches, unsendable)
}

/// Collects the results of a request. Returns why no further one is sent, if the registry's database fails.
fn collect_registration_results<'a>(
    results: &mut RegistrationResults,
    console: &Console,
    outcomes: impl Iterator<Item = (&'a &'a str, RegistrationOutcome)>,
    no_wait: bool,
) -> Result<Option<CommandError>, CommandError> {
    let mut stop_error = None;
    for (name, outcome) in outcomes {
        if let Some(problem) = outcome.problem {
            if problem.status == 503 {
                stop_error = Some(CommandError::new(
                    "the registry's database fails; run the command again later to register what is missing",
                ));
            }
            results.outcome = CommandOutcome::Negative;
            report_rejected_name(
                console,
                registration_rejection_error(problem).with_context(name),
            )?;
            continue;
        }
        let raw = serde_json::to_vec(&outcome).unwrap_or_default();
        let sources: Vec<_> = outcome.sources.iter().collect();
        let registered_name = RegisteredName {
            name: (*name).to_owned(),
            domain: outcome.domain.unwrap_or_default(),
            is_recorded: sources_are_only_recorded(&sources),
            registration: outcome.registration,
            view: None,
            raw: Bytes::from(raw),
        };
        registered_name.print_registered(console, no_wait)?;
        results.registered.push(registered_name);
    }
    Ok(stop_error)
}

/// Rejection of one registration, as the registry would have rejected it alone.
fn registration_rejection_error(problem: OutcomeProblem) -> CommandError {
    let raw = serde_json::to_vec(&problem).unwrap_or_default();
    CommandError::from(ClientError::Rejected {
        problem: Box::new(ProblemDetails {
            kind: problem.kind,
            status: problem.status,
            detail: problem.detail,
            ..ProblemDetails::default()
        }),
        raw: Bytes::from(raw),
        retry_after: None,
    })
}

/// Reports that the results for the names of a failed request are unknown.
fn report_unknown_results(console: &Console, names: &[&str]) -> Result<(), CommandError> {
    names.iter().try_for_each(|name| {
        let line = format!("{name}: no result, because the request failed");
        report_rejected_name(console, CommandError::Negative(line))
    })
}

/// Reports that the names that were not sent are not registered.
fn report_unsent_names(console: &Console, names: &[&str]) -> Result<(), CommandError> {
    names.iter().try_for_each(|name| {
        let line = format!("{name}: not registered, because an earlier request failed");
        report_rejected_name(console, CommandError::Negative(line))
    })
}

/// Progress bar for sent names; visible on a terminal only.
fn new_progress_bar(names: usize) -> ProgressBar {
    let progress = ProgressBar::new(names as u64);
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("registering {pos} of {len} {wide_bar}") {
        progress.set_style(style);
    }
    progress.tick();
    progress
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(names: &[String]) -> Vec<usize> {
        let (batches, wrong) = split_names_into_batches(names, false);
        assert!(wrong.is_empty(), "{wrong:?}");
        for batch in &batches {
            let sent = BulkRegistration {
                registrations: batch.registrations.clone(),
            };
            let sent = serde_json::to_vec(&sent).unwrap();
            assert!(sent.len() <= MAX_REGISTRATIONS_BODY_BYTES);
        }
        let all = batches.iter().flat_map(|batch| batch.names.iter().copied());
        assert_eq!(
            all.collect::<Vec<_>>(),
            names,
            "all are sent, in their order"
        );
        batches.iter().map(|batch| batch.names.len()).collect()
    }

    #[test]
    fn a_request_holds_as_many_names_as_the_registry_takes() {
        let name = |number: usize| format!("agent{number}.example");
        let names = |count: usize| -> Vec<String> { (0..count).map(name).collect() };
        assert_eq!(sizes(&names(1)), [1]);
        assert_eq!(
            sizes(&names(MAX_BULK_REGISTRATIONS)),
            [MAX_BULK_REGISTRATIONS]
        );
        assert_eq!(
            sizes(&names(MAX_BULK_REGISTRATIONS + 1)),
            [MAX_BULK_REGISTRATIONS, 1]
        );
    }

    #[test]
    fn a_request_is_no_larger_than_the_registry_reads() {
        let frame = r#"{"domain":""},"#.len();
        let largest = MAX_REGISTRATIONS_BODY_BYTES - ENVELOPE_BYTES - frame;
        let names = ["a".repeat(largest), "b".into(), "c".into()];
        assert_eq!(sizes(&names), [1, 2]);
        let (sent, wrong) = {
            let names = ["a".repeat(largest + 1)];
            let (batches, wrong) = split_names_into_batches(&names, false);
            (batches.len(), wrong.len())
        };
        assert_eq!((sent, wrong), (0, 1));
    }
}
