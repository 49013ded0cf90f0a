//! Report of an import: a line for each record that is not the same, with `--json` for every record, and the counts.

use std::collections::BTreeMap;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::super::console::Console;

/// Result for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportResult {
    /// It was missing, and exists now; in a dry run it would be created.
    Created,
    /// It exists like this.
    Same,
    /// It exists in another form, and stays as it is.
    Different,
    /// An imported decision for which others must decide: its review is open.
    Review,
    /// The registry has not fetched the card that it is about.
    Waiting,
    /// The registry refused it.
    Failed,
}

impl ImportResult {
    const ALL: [Self; 6] = [
        Self::Created,
        Self::Same,
        Self::Different,
        Self::Review,
        Self::Waiting,
        Self::Failed,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Same => "same",
            Self::Different => "different",
            Self::Review => "review",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

#[derive(Serialize)]
struct ReportLine<'a> {
    kind: &'a str,
    name: &'a str,
    result: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

pub struct ImportReport<'a> {
    console: &'a Console,
    dry_run: bool,
    progress: ProgressBar,
    counts: BTreeMap<ImportResult, u64>,
}

impl<'a> ImportReport<'a> {
    pub fn new(console: &'a Console, dry_run: bool, record_count: u64) -> Self {
        let progress = ProgressBar::new(record_count);
        // Hidden if standard error is not a terminal.
        progress.set_draw_target(ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("importing {pos} of {len} {wide_bar}") {
            progress.set_style(style);
        }
        progress.tick();
        Self {
            console,
            dry_run,
            progress,
            counts: BTreeMap::new(),
        }
    }

    /// Adds the result for a record. The detail says why, or what to do.
    pub fn add(
        &mut self,
        kind: &str,
        name: &str,
        result: ImportResult,
        detail: &str,
    ) -> Result<(), CommandError> {
        *self.counts.entry(result).or_default() += 1;
        self.progress.inc(1);
        let console = self.console;
        if console.json {
            let line = ReportLine {
                kind,
                name,
                result: result.as_str(),
                detail,
            };
            return self.progress.suspend(|| console.print_json(&line));
        }
        if result == ImportResult::Same {
            return Ok(());
        }
        let verb = match (result, self.dry_run) {
            (ImportResult::Created, true) => "would create",
            _ => result.as_str(),
        };
        let joined = if detail.is_empty() { "" } else { ": " };
        let line = format!("{verb} {kind} {name}{joined}{detail}");
        self.progress.suspend(|| console.print_line(&line))
    }

    /// Adds a record that exists: the same, or with other values of these members.
    pub fn add_comparison(
        &mut self,
        kind: &str,
        name: &str,
        is_same: bool,
        differing_members: &str,
    ) -> Result<(), CommandError> {
        match is_same {
            true => self.add(kind, name, ImportResult::Same, ""),
            false => {
                let detail = format!("{differing_members} differ; it was not changed");
                self.add(kind, name, ImportResult::Different, &detail)
            }
        }
    }

    /// Prints the counts. The outcome is negative if something is left to do, or would be changed by a dry run.
    pub fn finish(self) -> CommandResult {
        self.progress.finish_and_clear();
        let count = |result: ImportResult| self.counts.get(&result).copied().unwrap_or(0);
        let mut document = Map::new();
        document.insert("kind".to_owned(), Value::from("summary"));
        document.insert("dry_run".to_owned(), Value::from(self.dry_run));
        let mut parts = Vec::new();
        for result in ImportResult::ALL {
            let number = count(result);
            document.insert(result.as_str().to_owned(), Value::from(number));
            parts.push(format!("{number} {}", result.as_str()));
        }
        let prefix = match self.dry_run {
            true => "dry run, nothing was changed: ",
            false => "",
        };
        self.console.print_result(&Value::Object(document), || {
            let text = format!("{prefix}{}", parts.join(", "));
            self.console.print_line(&text)
        })?;
        let is_done = ImportResult::ALL.into_iter().all(|result| match result {
            ImportResult::Same => true,
            ImportResult::Created => !self.dry_run || count(result) == 0,
            _ => count(result) == 0,
        });
        Ok(CommandOutcome::done_if(is_done))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_what_is_left_to_do_is_negative() {
        let console = Console::new(true);
        for (dry_run, result, outcome) in [
            (false, ImportResult::Created, CommandOutcome::Done),
            (true, ImportResult::Created, CommandOutcome::Negative),
            (true, ImportResult::Same, CommandOutcome::Done),
            (false, ImportResult::Different, CommandOutcome::Negative),
            (false, ImportResult::Review, CommandOutcome::Negative),
            (false, ImportResult::Waiting, CommandOutcome::Negative),
            (false, ImportResult::Failed, CommandOutcome::Negative),
        ] {
            let mut report = ImportReport::new(&console, dry_run, 1);
            report.add("group", "team", result, "").unwrap();
            assert_eq!(report.finish().unwrap(), outcome, "{result:?}");
        }
    }
}
