//! Normal form of URLs.

use url::Url;

/// Normal form of RFC 3986 section 6.2.2. The parser has done everything except escapes of characters that need none.
pub fn normalize_url(mut url: Url) -> Url {
    let path = normalize_escapes(url.path());
    url.set_path(&path);
    let query = url.query().map(normalize_escapes);
    url.set_query(query.as_deref());
    url
}

/// Decodes percent escapes of unreserved characters, and writes all others in upper case.
fn normalize_escapes(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut normalized = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(percent_position) = rest.find('%') {
        normalized.push_str(&rest[..percent_position]);
        let offset = text.len() - rest.len() + percent_position;
        let code = bytes
            .get(offset + 1..offset + 3)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if code.is_ascii_alphanumeric() || b"-._~".contains(&code) => {
                normalized.push(char::from(code));
                rest = &rest[percent_position + 3..];
            }
            Some(code) => {
                normalized.push_str(&format!("%{code:02X}"));
                rest = &rest[percent_position + 3..];
            }
            None => {
                normalized.push('%');
                rest = &rest[percent_position + 1..];
            }
        }
    }
    normalized.push_str(rest);
    normalized
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn urls_are_normalised_as_rfc_3986_says() {
        let cases = [
            (
                "https://a.example/%7Ebot/card.json",
                "https://a.example/~bot/card.json",
            ),
            ("https://a.example/a%2fb", "https://a.example/a%2Fb"),
            (
                "https://A.example/./x/../card.json",
                "https://a.example/card.json",
            ),
            ("https://a.example/card?x=%41", "https://a.example/card?x=A"),
            ("https://a.example/100%", "https://a.example/100%"),
        ];
        for (given, expected) in cases {
            assert_eq!(normalize_url(Url::parse(given).unwrap()).as_str(), expected);
        }
    }
}
