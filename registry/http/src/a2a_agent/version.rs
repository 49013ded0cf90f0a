//! The version that a request is of (1.0 section 3.6).

use actix_web::HttpRequest;
use url::form_urlencoded;

use super::fault::{Fault, FaultKind};

const NAME: &str = "A2A-Version";
const QUOTED: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V03,
}

/// The version of a request, if it is served. None, or an empty one, means 0.3; a patch number means nothing.
pub(super) fn version(request: &HttpRequest, serves_v03: bool) -> Result<Version, Fault> {
    let header = request.headers().get(NAME);
    let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let stated = header.filter(|text| !text.is_empty()).or_else(|| {
        let mut query = form_urlencoded::parse(request.query_string().as_bytes());
        let found = query.find(|(name, _)| name.eq_ignore_ascii_case(NAME));
        found.map(|(_, value)| value.trim().to_owned())
    });
    match read(stated.as_deref().unwrap_or_default())? {
        Version::V03 if !serves_v03 => Err(Fault::new(
            FaultKind::Version,
            "Only 1.0 is spoken here: send `A2A-Version: 1.0`.",
        )),
        served => Ok(served),
    }
}

fn read(stated: &str) -> Result<Version, Fault> {
    let mut numbers = stated.splitn(3, '.');
    let (major, minor, patch) = (numbers.next(), numbers.next(), numbers.next());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if patch.is_none_or(is_number) {
        match (major, minor) {
            (Some(""), None) | (Some("0"), Some("3")) => return Ok(Version::V03),
            (Some("1"), Some("0")) => return Ok(Version::V1),
            _ => {}
        }
    }
    let shown: String = stated.chars().take(QUOTED).collect();
    Err(Fault::new(
        FaultKind::Version,
        format!("Version {shown:?} of A2A is not spoken here. Send `{NAME}: 1.0`, or 0.3."),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_major_and_minor() {
        for (stated, expected) in [
            ("", Some(Version::V03)),
            ("0.3", Some(Version::V03)),
            ("0.3.0", Some(Version::V03)),
            ("1.0", Some(Version::V1)),
            ("1.0.1", Some(Version::V1)),
            ("1", None),
            ("1.0.", None),
            ("1.0.x", None),
            ("1.1", None),
            ("0.2", None),
            ("99.0", None),
            ("v1.0", None),
            (" ", None),
        ] {
            assert_eq!(read(stated).ok(), expected, "{stated:?}");
        }
    }
}
