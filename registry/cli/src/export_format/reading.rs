//! Reader of exported content, which takes a file as a whole or not at all.

use std::io::{BufRead, Read};

use super::super::command_error::CommandError;
use super::{ExportEnd, ExportRecord};

/// Bytes of a line. The longest valid record is a policy, with an escape for each character.
const MAX_LINE_BYTES: u64 = 512 * 1024;
/// Bytes of a file, which is held in memory while it is imported.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Exported content that was read and checked as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedContent {
    pub origin: String,
    /// All lines without the first and the last.
    pub records: Vec<ExportRecord>,
}

impl ExportedContent {
    /// Reads all lines.
    ///
    /// # Errors
    /// With the number of the first line that is too long, not a record, or not where it may be.
    pub fn read(mut input: impl BufRead) -> Result<Self, CommandError> {
        let mut content = Self {
            origin: String::new(),
            records: Vec::new(),
        };
        let mut line = Vec::new();
        let mut number = 0_u64;
        let mut file_bytes = 0_u64;
        loop {
            number += 1;
            let line_error = |reason: String| {
                CommandError::new(format!("line {number}: {reason}; nothing was imported"))
            };
            line.clear();
            let mut limited = input.by_ref().take(MAX_LINE_BYTES + 1);
            let read = limited.read_until(b'\n', &mut line);
            let length = read.map_err(|error| line_error(error.to_string()))? as u64;
            file_bytes += length;
            if length > MAX_LINE_BYTES {
                let reason = format!("it is longer than {MAX_LINE_BYTES} bytes");
                return Err(line_error(reason));
            }
            if file_bytes > MAX_FILE_BYTES {
                let reason = format!("the file is longer than {MAX_FILE_BYTES} bytes; split it");
                return Err(line_error(reason));
            }
            if length == 0 {
                let reason = "the file was cut off: it has no line of the kind `end`";
                return Err(line_error(reason.to_owned()));
            }
            match parse_record(&line).map_err(line_error)? {
                ExportRecord::Header(header) if number == 1 => {
                    header.check().map_err(line_error)?;
                    content.origin = header.origin;
                }
                _ if number == 1 => {
                    return Err(line_error("it is not the header of an export".to_owned()));
                }
                ExportRecord::Header(_) => {
                    return Err(line_error("this is a second header".to_owned()));
                }
                ExportRecord::End(end) => {
                    content.check_end(&end, &mut input).map_err(line_error)?;
                    return Ok(content);
                }
                record => content.records.push(record),
            }
        }
    }

    fn check_end(&self, end: &ExportEnd, rest: &mut impl BufRead) -> Result<(), String> {
        let count = self.records.len() as u64;
        if end.records != count {
            return Err(format!(
                "the file should have {} records and has {count}; export again",
                end.records
            ));
        }
        match rest.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err("there is more after the last record".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn parse_record(line: &[u8]) -> Result<ExportRecord, String> {
    let record: ExportRecord = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    record.check()?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::MAX_URL_BYTES;
    use super::*;

    const HEADER: &str =
        r#"{"kind":"header","format":"a2a-registry-export","version":1,"origin":"http://a"}"#;
    const GROUP: &str = r#"{"kind":"group","name":"team","members":["ann"]}"#;

    fn read(lines: &[&str]) -> Result<ExportedContent, String> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let content = ExportedContent::read(text.as_bytes());
        content.map_err(|error| error.message_without_commands().unwrap())
    }

    fn decision(digest: &str) -> String {
        let subject = r#"{"kind":"decision","domain":"a","source":"https://a/""#;
        let decision = r#""approved":true,"by":"ann","at":"2026-01-31T12:00:00Z","reason":null}"#;
        format!(r#"{subject},"digest":"{digest}",{decision}"#)
    }

    #[test]
    fn a_complete_file_is_read() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let decision = decision(&digest);
        let end = r#"{"kind":"end","records":2}"#;
        let content = read(&[HEADER, GROUP, &decision, end]).unwrap();
        assert_eq!(content.origin, "http://a");
        let written: Vec<String> = content
            .records
            .iter()
            .map(|record| serde_json::to_string(record).unwrap())
            .collect();
        assert_eq!(written, [GROUP, &decision]);
    }

    #[test]
    fn a_hostile_file_is_refused_with_the_number_of_the_line() {
        let end = r#"{"kind":"end","records":1}"#;
        let short_digest = decision("sha256:0a");
        let upper_digest = decision(&format!("sha256:{}", "0A".repeat(32)));
        let url = "x".repeat(MAX_URL_BYTES + 1);
        let long_url = format!(r#"{{"kind":"source","domain":"a","url":"{url}"}}"#);
        let later = HEADER.replace("\"version\":1", "\"version\":2,\"new\":[]");
        for (lines, place, reason) in [
            (&[][..], "line 1: ", "cut off"),
            (&[GROUP, end][..], "line 1: ", "not the header"),
            (&["\u{0}"][..], "line 1: ", "expected value"),
            (&[later.as_str(), end][..], "line 1: ", "version 2"),
            (
                &[HEADER.replace("-export", "").as_str()][..],
                "line 1: ",
                "format is not",
            ),
            (&[HEADER, HEADER][..], "line 2: ", "second header"),
            (&[HEADER, GROUP][..], "line 3: ", "cut off"),
            (&[HEADER, GROUP, GROUP, end][..], "line 4: ", "has 2"),
            (&[HEADER, GROUP, end, GROUP][..], "line 3: ", "more after"),
            (
                &[HEADER, r#"{"kind":"wizard"}"#][..],
                "line 2: ",
                "unknown variant `wizard`",
            ),
            (
                &[HEADER, r#"{"kind":"group","name":7,"members":[]}"#][..],
                "line 2: ",
                "invalid type",
            ),
            (
                &[
                    HEADER,
                    r#"{"kind":"group","name":"t","members":[],"owner":"x"}"#,
                ][..],
                "line 2: ",
                "unknown field `owner`",
            ),
            (
                &[HEADER, r#"{"kind":"group","name":"","members":[]}"#][..],
                "line 2: ",
                "a name has",
            ),
            (&[HEADER, &short_digest][..], "line 2: ", "digest"),
            (&[HEADER, &upper_digest][..], "line 2: ", "digest"),
            (&[HEADER, &long_url][..], "line 2: ", "URL is longer"),
        ] {
            let error = read(lines).unwrap_err();
            assert!(error.starts_with(place), "{error}");
            assert!(error.contains(reason), "{reason}: {error}");
            assert!(error.ends_with("nothing was imported"), "{error}");
        }
    }

    #[test]
    fn a_line_has_a_limit() {
        let frame = r#"{"kind":"policy","id":"a","text":""}"#.len() + 1;
        let policy = |bytes: usize| {
            let text = "x".repeat(bytes - frame);
            format!(r#"{{"kind":"policy","id":"a","text":"{text}"}}"#)
        };
        let end = r#"{"kind":"end","records":1}"#;
        let limit = usize::try_from(MAX_LINE_BYTES).unwrap();
        assert!(read(&[HEADER, &policy(limit), end]).is_ok());
        let error = read(&[HEADER, &policy(limit + 1), end]).unwrap_err();
        assert!(
            error.starts_with("line 2: it is longer than 524288"),
            "{error}"
        );
    }
}
