//! The two formats of log lines. In both, each value stays on its line, has a maximum length, and shows the characters
//! that would control a terminal: texts of cards and of other servers end up in the log.

use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{self, Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::terminal::escape_and_truncate;

/// Maximum number of characters of one value in the log.
const MAX_VALUE_CHARS: usize = 2_000;

/// Fields of events and spans for people: the message, then `name=value`.
#[derive(Debug, Clone, Copy)]
pub struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = TextFieldVisitor {
            writer,
            separator: "",
            result: Ok(()),
        };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct TextFieldVisitor<'writer> {
    writer: Writer<'writer>,
    separator: &'static str,
    result: fmt::Result,
}

impl Visit for TextFieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // The line already begins with these members of a record of the crate `log`.
        if self.result.is_err() || field.name().starts_with("log.") {
            return;
        }
        let text = escape_and_truncate(&format!("{value:?}"), MAX_VALUE_CHARS);
        let separator = self.separator;
        self.result = match field.name() {
            "message" => write!(self.writer, "{separator}{text}"),
            name => write!(self.writer, "{separator}{name}={text}"),
        };
        self.separator = " ";
    }
}

/// One flat JSON object per line: fields of the spans are members like those of the event, so that a program finds
/// the request id of every line in the same place.
#[derive(Debug)]
pub struct JsonLine(Format<Json>);

impl JsonLine {
    pub fn new() -> Self {
        let nested = format::json().flatten_event(true).with_current_span(false);
        Self(nested.with_span_list(true))
    }
}

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut nested = String::new();
        self.0
            .format_event(context, Writer::new(&mut nested), event)?;
        let flat = flatten_spans(nested.trim_end());
        writeln!(writer, "{}", a2a_card::terminal_safe_json(&flat))
    }
}

/// Moves the fields of spans into the object, of which a member of the event or of an inner span stays, and cuts long
/// texts.
fn flatten_spans(line: &str) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(line) else {
        return line.to_owned();
    };
    if let Some(Value::Array(spans)) = members.remove("spans") {
        for span in spans.into_iter().rev() {
            let Value::Object(fields) = span else {
                continue;
            };
            // `name` is the span's own.
            for (name, value) in fields.into_iter().filter(|(name, _)| name != "name") {
                members.entry(name).or_insert(value);
            }
        }
    }
    for value in members.values_mut() {
        if let Value::String(text) = value
            && let Some((end, _)) = text.char_indices().nth(MAX_VALUE_CHARS)
        {
            text.truncate(end);
            text.push('…');
        }
    }
    Value::Object(members).to_string()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::format::JsonFields;

    use super::*;

    const HOSTILE: &str = "evil\u{1b}[31m\u{9b}\u{202e}\n2026-01-01 INFO forged";

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Log {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn log_hostile_values() {
        let span = tracing::info_span!(
            "request",
            request_id = "req-1",
            path = HOSTILE,
            actor = "the span",
            token = tracing::field::Empty,
        );
        span.record("token", "a token");
        let _entered = span.enter();
        let _inner = tracing::info_span!("inner", depth = 2).entered();
        let long = "ü".repeat(MAX_VALUE_CHARS);
        tracing::info!(
            target: "audit",
            name = HOSTILE,
            shown = %HOSTILE,
            actor = "the event",
            fits = %long,
            cut = %format!("{long}ü"),
            "{HOSTILE}"
        );
    }

    fn assert_tame(line: &str) {
        let is_hidden = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!line.contains(is_hidden), "{line:?}");
    }

    #[test]
    fn a_text_line_is_one_line_whatever_the_values_are() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(TextFields)
            .finish();
        tracing::subscriber::with_default(subscriber, log_hostile_values);
        let text = log.text();
        let line = text.strip_suffix('\n').unwrap();
        assert_tame(line);
        let long = "ü".repeat(MAX_VALUE_CHARS);
        let cut = format!(" cut={}…", "ü".repeat(MAX_VALUE_CHARS - 1));
        let fits = format!(" fits={long} ");
        for words in [
            "INFO request{request_id=\"req-1\" path=",
            "token=\"a token\"}:inner{depth=2}: audit: evil",
            "actor=\"the event\"",
            "name=\"evil",
            "shown=evil",
            fits.as_str(),
            cut.as_str(),
        ] {
            assert!(line.contains(words), "{words} is missing: {line}");
        }
    }

    #[test]
    fn a_json_line_is_a_flat_object_whatever_the_values_are() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLine::new())
            .finish();
        tracing::subscriber::with_default(subscriber, log_hostile_values);
        let text = log.text();
        let line = text.strip_suffix('\n').unwrap();
        assert_tame(line);
        let line: Value = serde_json::from_str(line).unwrap();
        let long = "ü".repeat(MAX_VALUE_CHARS);
        let cut = format!("{long}…");
        for (member, expected) in [
            ("level", "INFO"),
            ("target", "audit"),
            ("message", HOSTILE),
            ("name", HOSTILE),
            ("shown", HOSTILE),
            ("path", HOSTILE),
            ("request_id", "req-1"),
            ("token", "a token"),
            ("actor", "the event"),
            ("fits", long.as_str()),
            ("cut", cut.as_str()),
        ] {
            assert_eq!(line[member], expected, "{member}: {line}");
        }
        assert_eq!(line["depth"], 2);
        assert!(line["spans"].is_null() && line["timestamp"].is_string());
    }
}
