//! The protocol version of a request (1.0 section 3.6).

use actix_web::HttpRequest;
use url::form_urlencoded;

use super::error::{A2aError, A2aErrorKind};

const VERSION_HEADER: &str = "A2A-Version";
const MAX_QUOTED_CHARS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolVersion {
    V1,
    V03,
}

/// The protocol version of a request, if it is served. A missing or empty version means 0.3; the patch number is
/// ignored.
pub(super) fn requested_protocol_version(
    request: &HttpRequest,
    serves_v03: bool,
) -> Result<ProtocolVersion, A2aError> {
    let header = request.headers().get(VERSION_HEADER);
    let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let stated = header.filter(|text| !text.is_empty()).or_else(|| {
        let mut query = form_urlencoded::parse(request.query_string().as_bytes());
        let found = query.find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER));
        found.map(|(_, value)| value.trim().to_owned())
    });
    match parse_protocol_version(stated.as_deref().unwrap_or_default())? {
        ProtocolVersion::V03 if !serves_v03 => Err(A2aError::new(
            A2aErrorKind::VersionNotSupported,
            "Only A2A 1.0 is supported: send `A2A-Version: 1.0`.",
        )),
        served => Ok(served),
    }
}

fn parse_protocol_version(requested: &str) -> Result<ProtocolVersion, A2aError> {
    let mut numbers = requested.splitn(3, '.');
    let (major, minor, patch) = (numbers.next(), numbers.next(), numbers.next());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if patch.is_none_or(is_number) {
        match (major, minor) {
            (Some(""), None) | (Some("0"), Some("3")) => return Ok(ProtocolVersion::V03),
            (Some("1"), Some("0")) => return Ok(ProtocolVersion::V1),
            _ => {}
        }
    }
    let quoted_version: String = requested.chars().take(MAX_QUOTED_CHARS).collect();
    Err(A2aError::new(
        A2aErrorKind::VersionNotSupported,
        format!(
            "A2A version {quoted_version:?} is not supported. Send `{VERSION_HEADER}: 1.0` or 0.3."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_major_and_minor() {
        for (stated, expected) in [
            ("", Some(ProtocolVersion::V03)),
            ("0.3", Some(ProtocolVersion::V03)),
            ("0.3.0", Some(ProtocolVersion::V03)),
            ("1.0", Some(ProtocolVersion::V1)),
            ("1.0.1", Some(ProtocolVersion::V1)),
            ("1", None),
            ("1.0.", None),
            ("1.0.x", None),
            ("1.1", None),
            ("0.2", None),
            ("99.0", None),
            ("v1.0", None),
            (" ", None),
        ] {
            assert_eq!(parse_protocol_version(stated).ok(), expected, "{stated:?}");
        }
    }
}
