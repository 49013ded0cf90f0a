//! Reads and decodes a body within limits.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::time::Instant;

use super::error::{FetchError, classify_request_error};
use super::limits::FetchLimits;
use crate::AttemptOutcome;

/// Number of decoded bytes read at a time.
const DECODE_CHUNK_BYTES: usize = 16 * 1024;

/// Content encoding of a body; only one layer is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentEncoding {
    Identity,
    Gzip,
    Brotli,
}

/// Reads a body of at most `limits.body_bytes` bytes and decodes one layer of encoding, to at most as many bytes
/// again.
///
/// Decoding starts when the body is complete, so that a slow server does not hold a decoder's window.
pub(super) async fn read_body(
    mut response: Response,
    headers: &HeaderMap,
    limits: &FetchLimits,
) -> Result<Vec<u8>, FetchError> {
    let encoding = content_encoding(headers)?;
    let content_length = response.content_length().unwrap_or(0);
    if content_length > limits.body_bytes as u64 {
        return Err(body_too_large_error(limits.body_bytes));
    }
    let started = Instant::now();
    // The announced length is only a claim: no more memory is reserved for it than a usual card needs.
    let mut raw = Vec::with_capacity(
        usize::try_from(content_length)
            .unwrap_or(0)
            .min(DECODE_CHUNK_BYTES),
    );
    loop {
        // Time at which this number of bytes becomes too slow.
        let expected_time = std::time::Duration::from_secs_f64(
            raw.len() as f64 / f64::from(limits.min_rate.max(1)),
        );
        let chunk = tokio::time::timeout_at(
            started + limits.rate_grace + expected_time,
            response.chunk(),
        )
        .await
        .map_err(|_| {
            FetchError::new(
                AttemptOutcome::Timeout,
                &format!(
                    "the body was sent slower than {} bytes a second",
                    limits.min_rate
                ),
            )
        })?
        .map_err(|error| classify_body_error(&error))?;
        let Some(chunk) = chunk else { break };
        if raw.len() + chunk.len() > limits.body_bytes {
            return Err(body_too_large_error(limits.body_bytes));
        }
        raw.extend_from_slice(&chunk);
    }
    decode_body(raw, encoding, limits.body_bytes)
}

/// Classifies a body error: an incomplete body is the server's fault, unlike a server that cannot be reached.
fn classify_body_error(error: &reqwest::Error) -> FetchError {
    let mut failure = classify_request_error(error);
    if failure.outcome == AttemptOutcome::Unreachable {
        failure = FetchError::new(
            AttemptOutcome::BadBody,
            "the body ended before it was complete",
        );
    }
    failure
}

fn body_too_large_error(limit: usize) -> FetchError {
    FetchError::new(
        AttemptOutcome::BadBody,
        &format!("the body is larger than {limit} bytes"),
    )
}

/// Reads the encoding from the header; rejects an unknown encoding and more than one layer.
fn content_encoding(headers: &HeaderMap) -> Result<ContentEncoding, FetchError> {
    let mut outer_encoding = ContentEncoding::Identity;
    let names = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|b| *b == b','))
        .map(|name| name.trim_ascii().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != b"identity");
    for name in names {
        let layer = match name.as_slice() {
            b"gzip" | b"x-gzip" => ContentEncoding::Gzip,
            b"br" => ContentEncoding::Brotli,
            _ => {
                return Err(FetchError::new(
                    AttemptOutcome::BadBody,
                    "the body has a content encoding that the registry did not offer to accept; send gzip, br or none",
                ));
            }
        };
        if outer_encoding != ContentEncoding::Identity {
            return Err(FetchError::new(
                AttemptOutcome::BadBody,
                "the body has more than one content encoding; send at most one",
            ));
        }
        outer_encoding = layer;
    }
    Ok(outer_encoding)
}

fn decode_body(
    raw: Vec<u8>,
    encoding: ContentEncoding,
    limit: usize,
) -> Result<Vec<u8>, FetchError> {
    match encoding {
        ContentEncoding::Identity => Ok(raw),
        ContentEncoding::Gzip => decompress(MultiGzDecoder::new(raw.as_slice()), "gzip", limit),
        ContentEncoding::Brotli if has_large_brotli_window(&raw) => {
            Err(undecodable_body_error("br"))
        }
        ContentEncoding::Brotli => decompress(
            brotli::Decompressor::new(raw.as_slice(), DECODE_CHUNK_BYTES),
            "br",
            limit,
        ),
    }
}

/// Decodes until the end, or until the first byte beyond `limit`.
fn decompress(decoder: impl Read, name: &str, limit: usize) -> Result<Vec<u8>, FetchError> {
    let mut out = Vec::new();
    let beyond = (limit as u64).saturating_add(1);
    match decoder.take(beyond).read_to_end(&mut out) {
        Ok(_) if out.len() > limit => Err(body_too_large_error(limit)),
        Ok(_) => Ok(out),
        Err(_) => Err(undecodable_body_error(name)),
    }
}

/// Whether a body begins with a window size that `br` does not allow (RFC 7932 section 9.1). The decoder accepts it as
/// an extension of the format with windows of up to a gibibyte, and fills the window before it returns the first byte,
/// so a limit on decoded bytes would come too late.
fn has_large_brotli_window(raw: &[u8]) -> bool {
    raw.first().is_some_and(|first| first & 0x7f == 0x11)
}

fn undecodable_body_error(name: &str) -> FetchError {
    FetchError::new(
        AttemptOutcome::BadBody,
        &format!("the body is not valid {name}, although its Content-Encoding says so"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use reqwest::header::HeaderValue;

    use super::*;

    const LIMIT: usize = 64 * 1024;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorWriter::new(&mut out, 4096, 9, 22)
            .write_all(bytes)
            .unwrap();
        out
    }

    #[test]
    fn a_window_that_brotli_does_not_have_is_refused_before_it_is_made() {
        let mut large = Vec::new();
        let parameters = brotli::enc::BrotliEncoderParams {
            large_window: true,
            lgwin: 30,
            ..Default::default()
        };
        brotli::BrotliCompress(&mut b"{}".as_slice(), &mut large, &parameters).unwrap();
        let refused = decode_body(large, ContentEncoding::Brotli, LIMIT).unwrap_err();
        assert_eq!(refused.outcome, AttemptOutcome::BadBody);
        let usual = decode_body(brotli(b"{}"), ContentEncoding::Brotli, LIMIT);
        assert_eq!(usual.unwrap(), b"{}");
    }

    #[test]
    fn both_encodings_hold_the_bound_to_the_byte() {
        let fits = vec![b'a'; LIMIT];
        let beyond = vec![b'a'; LIMIT + 1];
        for (encoding, encode) in [
            (ContentEncoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>),
            (ContentEncoding::Brotli, brotli),
        ] {
            assert_eq!(decode_body(encode(&fits), encoding, LIMIT).unwrap(), fits);
            let error = decode_body(encode(&beyond), encoding, LIMIT).unwrap_err();
            assert_eq!(error.outcome, AttemptOutcome::BadBody);
            assert!(error.detail.contains("larger"), "{error}");
            for broken in [&b"not compressed at all"[..], &encode(&fits)[..10]] {
                let error = decode_body(broken.to_vec(), encoding, LIMIT).unwrap_err();
                assert_eq!(error.outcome, AttemptOutcome::BadBody);
            }
        }
    }

    #[test]
    fn bombs_stop_at_the_bound() {
        let zeros = vec![0; 64 * 1024 * 1024];
        for (encoding, bomb) in [
            (ContentEncoding::Gzip, gzip(&zeros)),
            (ContentEncoding::Brotli, brotli(&zeros)),
        ] {
            assert!(bomb.len() < 100 * 1024);
            assert!(
                decode_body(bomb, encoding, LIMIT)
                    .unwrap_err()
                    .detail
                    .contains("larger")
            );
        }
    }

    #[test]
    fn one_layer_is_taken_off() {
        let read = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            content_encoding(&headers)
        };
        assert_eq!(read(&[]).unwrap(), ContentEncoding::Identity);
        assert_eq!(read(&["identity"]).unwrap(), ContentEncoding::Identity);
        assert_eq!(read(&["GZIP"]).unwrap(), ContentEncoding::Gzip);
        assert_eq!(read(&["br, identity"]).unwrap(), ContentEncoding::Brotli);
        for refused in [
            &["gzip, gzip"][..],
            &["gzip", "br"],
            &["zstd"],
            &["deflate"],
            &["x"],
        ] {
            assert_eq!(read(refused).unwrap_err().outcome, AttemptOutcome::BadBody);
        }
    }
}
