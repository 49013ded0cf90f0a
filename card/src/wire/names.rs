//! Reads names with several spellings: protocol versions, bindings, modes.

use serde_json::Value;

use crate::finding::Findings;
use crate::member::{self, Length, Members};
use crate::pointer::Pointer;
use crate::rules;

/// `Major.Minor` of a version such as `0.3.0`, `v1.0` or `1`; `None` for a text that is not a version.
pub(crate) fn protocol_version(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let mut parts = text.split('.');
    let number = |part: &str| -> Option<u8> {
        let short = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if short { part.parse().ok() } else { None }
    };
    let major = number(parts.next()?)?;
    let minor = match parts.next() {
        Some(part) => {
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            number(&part[..digits])?
        }
        None => 0,
    };
    Some(format!("{major}.{minor}"))
}

pub(super) fn take_version(
    members: &mut Members<'_>,
    name: &'static str,
    out: &mut Findings,
) -> Option<String> {
    let (spot, value) = members.take(name, out)?;
    let parent = members.at();
    let at = spot.below(&parent);
    let text = member::text(value, &at, Length::Line, out).ok()??;
    let version = protocol_version(&text);
    if version.is_none() {
        out.add(&rules::VERSION_UNREADABLE, &at, &text);
    }
    version
}

/// The binding in a text: a core binding in its exact spelling, or the text itself.
pub(super) fn binding(text: &str, at: &Pointer<'_>, out: &mut Findings) -> String {
    let core = match member::folded(text).as_str() {
        "jsonrpc" | "jsonrpc2" | "jsonrpc20" | "jsonrpchttp" | "jsonrpchttps" => "JSONRPC",
        "grpc" => "GRPC",
        "httpjson" | "rest" | "restful" | "httprest" | "resthttp" | "restjson" => "HTTP+JSON",
        _ => {
            if !text.contains("://") && !text.starts_with("urn:") {
                out.add(&rules::BINDING_UNKNOWN, at, text);
            }
            return text.to_owned();
        }
    };
    if text != core {
        out.add(&rules::BINDING_SPELLING, at, text);
    }
    core.to_owned()
}

/// The binding of an interface at that address. "Streamable HTTP" means JSON-RPC over HTTP in A2A, unless the entry or
/// its path says that it is an MCP server.
pub(super) fn binding_at(url: &str, binding: String, is_mcp: bool) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    if member::folded(&binding) != "streamablehttp" {
        binding
    } else if is_mcp {
        "MCP".to_owned()
    } else if path.trim_end_matches('/').ends_with("/mcp") {
        binding
    } else {
        "JSONRPC".to_owned()
    }
}

/// Takes the location of an API key, in lower case; empty if the scheme does not name one. It is `in` in 0.x and
/// `location` in 1.0; cards of every age have either, or `in_` and `In.header` as Python writes them.
pub(super) fn take_location(members: &mut Members<'_>, out: &mut Findings) -> String {
    let at = members.at();
    for name in ["in", "location", "in_"] {
        let Some(text) = members.text(name, Length::Line, out) else {
            continue;
        };
        if name == "in_" || !PLACES.contains(&text.as_str()) {
            out.add(&rules::SCHEME_LOCATION, &at, &text);
        }
        let text = text.to_lowercase();
        let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let place = words.find_map(|word| {
            let singular = word.strip_suffix('s').unwrap_or(word);
            PLACES
                .into_iter()
                .find(|place| [word, singular].contains(place))
        });
        return match place {
            Some(place) => place.to_owned(),
            None => text,
        };
    }
    String::new()
}

const PLACES: [&str; 3] = ["header", "query", "cookie"];

/// Takes the `flows` of an `OAuth` scheme as received; null if they are not an object.
pub(super) fn take_flows(members: &mut Members<'_>, out: &mut Findings) -> Value {
    let Some((spot, flows)) = members.take("flows", out) else {
        return Value::Null;
    };
    if flows.is_object() {
        return flows;
    }
    out.mistyped(
        &spot.below(&members.at()),
        &flows,
        "an object of flows by name",
    );
    Value::Null
}

/// Takes media types: a list, one text, or an object of booleans.
pub(super) fn take_modes(
    members: &mut Members<'_>,
    name: &'static str,
    out: &mut Findings,
) -> Vec<String> {
    let Some((spot, value)) = members.take(name, out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    let list = match value {
        Value::Array(list) => list,
        Value::String(_) => {
            out.add_value(&rules::MODES_SHAPE, &at, &value);
            vec![value]
        }
        Value::Object(flags) => {
            out.add(&rules::MODES_SHAPE, &at, "an object");
            flags
                .into_iter()
                .filter(|(_, wanted)| wanted.as_bool() == Some(true))
                .map(|(name, _)| Value::String(name))
                .collect()
        }
        other => {
            out.mistyped(&at, &other, "a list of media types");
            members.keep(&spot, other);
            return Vec::new();
        }
    };
    let texts = member::texts(list, &at, Length::Line, out);
    member::unique(
        texts
            .iter()
            .enumerate()
            .map(|(index, text)| mode(text, &at.index(index), out)),
    )
}

/// A media type in lower case; the part names of the protocol are read as the types that they stand for.
fn mode(text: &str, at: &Pointer<'_>, out: &mut Findings) -> String {
    let mode = text.to_lowercase();
    if is_media_type(&mode) {
        return mode;
    }
    out.add(&rules::MODE, at, text);
    let known = match mode.as_str() {
        "text" | "plain" | "txt" => "text/plain",
        "json" | "data" => "application/json",
        "html" => "text/html",
        "markdown" | "md" => "text/markdown",
        "image" => "image/*",
        "audio" => "audio/*",
        "video" => "video/*",
        "file" => "application/octet-stream",
        "pdf" => "application/pdf",
        "csv" => "text/csv",
        "xml" => "application/xml",
        _ => return mode,
    };
    known.to_owned()
}

/// Whether the text is `type/subtype` (RFC 6838 §4.2), perhaps with wildcards or parameters.
pub(crate) fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let restricted = |part: &str| {
        !part.is_empty()
            && part.len() <= 127
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b))
    };
    essence
        .split_once('/')
        .is_some_and(|(kind, subtype)| restricted(kind) && restricted(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_major_and_minor() {
        for (text, version) in [
            ("0.3.0", Some("0.3")),
            (" v1.0 ", Some("1.0")),
            ("1", Some("1.0")),
            ("1.2.17", Some("1.2")),
            ("0.3-rc1", Some("0.3")),
            ("10.12", Some("10.12")),
            ("latest", None),
            ("2024-11-05", None),
            ("2025.1", None),
            ("1.", None),
            ("", None),
            ("1.+2", None),
            ("٣.٠", None),
        ] {
            assert_eq!(protocol_version(text).as_deref(), version, "{text}");
        }
    }

    #[test]
    fn bindings_are_compared_without_case_and_signs() {
        let mut out = Findings::default();
        for (text, name) in [
            ("JSONRPC", "JSONRPC"),
            ("json-rpc", "JSONRPC"),
            ("JSON-RPC 2.0", "JSONRPC"),
            ("jsonrpc-https", "JSONRPC"),
            ("http+json", "HTTP+JSON"),
            ("REST", "HTTP+JSON"),
            ("grpc", "GRPC"),
            ("MCP", "MCP"),
            ("https://example.org/b", "https://example.org/b"),
        ] {
            assert_eq!(binding(text, &Pointer::Root, &mut out), name);
        }
        let rules: Vec<_> = out.into_list().into_iter().map(|f| f.rule).collect();
        assert_eq!(rules.iter().filter(|r| r.ends_with("spelling")).count(), 6);
        assert_eq!(rules.iter().filter(|r| r.ends_with("unknown")).count(), 1);
    }

    #[test]
    fn media_types_are_told_from_words() {
        for good in [
            "text/plain",
            "image/*",
            "*/*",
            "text/plain; charset=utf-8",
            "a/b+c",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["text", "/", "text/", "te xt/plain", "text/pl/ain", ""] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
