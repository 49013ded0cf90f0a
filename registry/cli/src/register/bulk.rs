//! Many names, as many in one request as the registry takes.

use a2a_registry_api::limits::{MAX_REGISTRATIONS, MAX_REGISTRATIONS_BODY};
use a2a_registry_api::{BulkRegistration, OutcomeProblem, Registration, RegistrationOutcome};
use bytes::Bytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::super::client::Client;
use super::super::console::Console;
use super::super::failure::{CommandOutcome, Failure};
use super::super::refusal::{ClientError, Problem};
use super::super::target::registration;
use super::outcome::are_recorded;
use super::{RegisterArgs, RegisteredName, Registering, refuse};

/// Bytes of a request around its registrations.
const FRAME: usize = r#"{"registrations":[]}"#.len();

/// Names that fit into one request.
#[derive(Default)]
struct Batch<'a> {
    names: Vec<&'a str>,
    registrations: Vec<Registration>,
    /// The registrations as they are sent, with a comma for each.
    bytes: usize,
}

/// Registers these names, whatever becomes of single ones.
pub(super) async fn register_all(
    arguments: &RegisterArgs,
    client: &Client,
    console: &Console,
    names: &[String],
) -> Result<Registering, Failure> {
    let mut done = Registering::default();
    let (batches, wrong) = batches(names, arguments.approve);
    for failure in wrong {
        done.outcome = CommandOutcome::No;
        refuse(console, failure)?;
    }
    let progress = progress(batches.iter().map(|batch| batch.names.len()).sum());
    let mut batches = batches.into_iter();
    while let Some(batch) = batches.next() {
        let Batch {
            names,
            registrations,
            ..
        } = batch;
        let what = BulkRegistration { registrations };
        let failed = match client.register_all(&what).await {
            Ok(reply) if reply.value.outcomes.len() == names.len() => {
                let outcomes = names.iter().zip(reply.value.outcomes);
                progress.suspend(|| take(&mut done, console, outcomes, arguments.no_wait))?
            }
            Ok(_) => Some(Failure::new(
                "the registry has not answered each registration; check that it is of the same version as this program",
            )),
            Err(error) => {
                let failure = Failure::from(error);
                progress.suspend(|| refuse_without_result(console, &names))?;
                Some(failure)
            }
        };
        progress.inc(names.len() as u64);
        if failed.is_some() {
            done.ended = failed;
            let rest: Vec<&str> = batches.flat_map(|batch| batch.names).collect();
            progress.suspend(|| refuse_unsent(console, &rest))?;
            break;
        }
    }
    progress.finish_and_clear();
    Ok(done)
}

/// The requests for these names, and those of them that cannot be sent.
fn batches(names: &[String], approve: bool) -> (Vec<Batch<'_>>, Vec<Failure>) {
    let mut batches = Vec::new();
    let mut wrong = Vec::new();
    let mut batch = Batch::default();
    for name in names {
        let what = match registration(name, approve) {
            Ok(what) => what,
            Err(failure) => {
                wrong.push(failure.about(name));
                continue;
            }
        };
        let bytes = 1 + serde_json::to_vec(&what).map_or(0, |json| json.len());
        if FRAME + bytes > MAX_REGISTRATIONS_BODY {
            let short: String = name.chars().take(100).collect();
            wrong.push(Failure::new(format!(
                "{short}…: it is too long to be sent to a registry"
            )));
            continue;
        }
        let is_full = batch.names.len() == MAX_REGISTRATIONS
            || FRAME + batch.bytes + bytes > MAX_REGISTRATIONS_BODY;
        if is_full {
            batches.push(std::mem::take(&mut batch));
        }
        batch.names.push(name);
        batch.registrations.push(what);
        batch.bytes += bytes;
    }
    if !batch.names.is_empty() {
        batches.push(batch);
    }
    (batches, wrong)
}

/// Takes the results of a request; why no further one is sent, where the registry's database fails.
fn take<'a>(
    done: &mut Registering,
    console: &Console,
    outcomes: impl Iterator<Item = (&'a &'a str, RegistrationOutcome)>,
    no_wait: bool,
) -> Result<Option<Failure>, Failure> {
    let mut failed = None;
    for (name, outcome) in outcomes {
        if let Some(problem) = outcome.problem {
            if problem.status == 503 {
                failed = Some(Failure::new(
                    "the registry's database fails; run the command again later, which registers what is missing",
                ));
            }
            done.outcome = CommandOutcome::No;
            refuse(console, refusal(problem).about(name))?;
            continue;
        }
        let raw = serde_json::to_vec(&outcome).unwrap_or_default();
        let sources: Vec<_> = outcome.sources.iter().collect();
        let one = RegisteredName {
            name: (*name).to_owned(),
            domain: outcome.domain.unwrap_or_default(),
            is_recorded: are_recorded(&sources),
            what: outcome.registration,
            view: None,
            raw: Bytes::from(raw),
        };
        one.announce(console, no_wait)?;
        done.registered.push(one);
    }
    Ok(failed)
}

/// A refusal of one registration, as the registry would have refused it alone.
fn refusal(problem: OutcomeProblem) -> Failure {
    let raw = serde_json::to_vec(&problem).unwrap_or_default();
    Failure::from(ClientError::Refused {
        problem: Box::new(Problem {
            kind: problem.kind,
            status: problem.status,
            detail: problem.detail,
            ..Problem::default()
        }),
        raw: Bytes::from(raw),
        retry_after: None,
    })
}

/// Says of the names of a failed request that nothing is known of them.
fn refuse_without_result(console: &Console, names: &[&str]) -> Result<(), Failure> {
    names.iter().try_for_each(|name| {
        let line = format!("{name}: no result, because the request failed");
        refuse(console, Failure::No(line))
    })
}

/// Says of the names that were not sent any more that they are not registered.
fn refuse_unsent(console: &Console, names: &[&str]) -> Result<(), Failure> {
    names.iter().try_for_each(|name| {
        let line = format!("{name}: not registered, because a request before it failed");
        refuse(console, Failure::No(line))
    })
}

/// How many of the names are sent; drawn on a terminal only.
fn progress(names: usize) -> ProgressBar {
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
        let (batches, wrong) = batches(names, false);
        assert!(wrong.is_empty(), "{wrong:?}");
        for batch in &batches {
            let sent = BulkRegistration {
                registrations: batch.registrations.clone(),
            };
            let sent = serde_json::to_vec(&sent).unwrap();
            assert!(sent.len() <= MAX_REGISTRATIONS_BODY);
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
        assert_eq!(sizes(&names(MAX_REGISTRATIONS)), [MAX_REGISTRATIONS]);
        assert_eq!(sizes(&names(MAX_REGISTRATIONS + 1)), [MAX_REGISTRATIONS, 1]);
    }

    #[test]
    fn a_request_is_no_larger_than_the_registry_reads() {
        let frame = r#"{"domain":""},"#.len();
        let largest = MAX_REGISTRATIONS_BODY - FRAME - frame;
        let names = ["a".repeat(largest), "b".into(), "c".into()];
        assert_eq!(sizes(&names), [1, 2]);
        let (sent, wrong) = {
            let names = ["a".repeat(largest + 1)];
            let (batches, wrong) = batches(&names, false);
            (batches.len(), wrong.len())
        };
        assert_eq!((sent, wrong), (0, 1));
    }
}
