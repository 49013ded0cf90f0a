//! OpenAI's embeddings API: the request, and the checks of the response.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::MAX_DIMENSIONS;

/// Maximum size of one vector in a response, in bytes: [`MAX_DIMENSIONS`] numbers of 32 characters, each on its own
/// line.
pub const MAX_VECTOR_BYTES: usize = MAX_DIMENSIONS * 32;

#[derive(Debug, Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Debug, Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f64>,
}

pub fn embedding_request_body(
    model: &str,
    texts: &[String],
    dimensions: Option<usize>,
) -> Result<Vec<u8>, String> {
    let request = EmbeddingRequest {
        model,
        input: texts,
        encoding_format: "float",
        dimensions,
    };
    serde_json::to_vec(&request).map_err(|error| error.to_string())
}

/// Parses the vectors for this many texts: in the order of the texts, of unit length. Each has the model's length, or,
/// while that is unknown, the length of the first. An error may contain text of the endpoint.
pub fn parse_vectors(
    body: &[u8],
    text_count: usize,
    dimensions: Option<usize>,
) -> Result<Vec<Vec<f32>>, String> {
    let response: EmbeddingResponse = serde_json::from_slice(body)
        .map_err(|error| format!("its response does not have the form of embeddings: {error}"))?;
    if response.data.len() != text_count {
        return Err(format!(
            "it responded with {} vectors for {text_count} texts",
            response.data.len()
        ));
    }
    let first_length = response.data.first().map(|item| item.embedding.len());
    let expected_length = dimensions.or(first_length).unwrap_or_default();
    if !(1..=MAX_DIMENSIONS).contains(&expected_length) {
        return Err(format!(
            "its vectors have {expected_length} numbers; 1 to {MAX_DIMENSIONS} are allowed"
        ));
    }
    let mut ordered: Vec<Option<Vec<f32>>> = vec![None; text_count];
    for EmbeddingItem { index, embedding } in response.data {
        if embedding.len() != expected_length {
            return Err(format!(
                "it responded with a vector of {} numbers instead of {expected_length}",
                embedding.len()
            ));
        }
        let entry = ordered.get_mut(index).ok_or_else(|| {
            format!("it responded with a vector for text {index} of {text_count}, counted from 0")
        })?;
        let unit_vector = unit_vector(&embedding).ok_or_else(|| {
            format!("its vector for text {index} has length zero or is not finite")
        })?;
        if entry.replace(unit_vector).is_some() {
            return Err(format!("it responded with text {index} more than once"));
        }
    }
    // The count is right and there are no duplicates, so every text has its vector.
    Ok(ordered.into_iter().flatten().collect())
}

/// Scales a vector to length 1; `None` if its length is zero or not finite. Dividing by the largest component first
/// keeps the squares from overflowing or underflowing.
fn unit_vector(vector: &[f64]) -> Option<Vec<f32>> {
    let largest = vector.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let finite = vector.iter().all(|x| x.is_finite());
    if !finite || largest == 0.0 {
        return None;
    }
    let length = vector
        .iter()
        .map(|x| (x / largest).powi(2))
        .sum::<f64>()
        .sqrt();
    Some(
        vector
            .iter()
            .map(|x| (x / largest / length) as f32)
            .collect(),
    )
}

/// The endpoint's error message, in any of the usual forms: `{"error": {"message": …}}`, `{"error": …}`,
/// `{"message": …}`, `{"detail": …}`, otherwise the whole text. Empty if there is none.
pub fn parse_error_message(body: &[u8]) -> String {
    let text = || String::from_utf8_lossy(body).trim().to_owned();
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return text();
    };
    let message_paths = ["/error/message", "/error", "/message", "/detail"];
    let mut messages = message_paths
        .iter()
        .filter_map(|path| value.pointer(path)?.as_str());
    messages.next().map_or_else(text, str::to_owned)
}

#[cfg(test)]
mod tests {
    //! Accepted responses, and the errors of the others.

    use super::*;

    fn read(body: &str, texts: usize) -> Result<Vec<Vec<f32>>, String> {
        parse_vectors(body.as_bytes(), texts, Some(2))
    }

    #[test]
    fn a_question_is_in_the_usual_shape() {
        let texts = ["a \"b\"".to_owned(), "ä".to_owned()];
        let plain = embedding_request_body("small", &texts, None).unwrap();
        assert_eq!(
            String::from_utf8(plain).unwrap(),
            r#"{"model":"small","input":["a \"b\"","ä"],"encoding_format":"float"}"#
        );
        let short = embedding_request_body("small", &texts[1..], Some(256)).unwrap();
        assert_eq!(
            String::from_utf8(short).unwrap(),
            r#"{"model":"small","input":["ä"],"encoding_format":"float","dimensions":256}"#
        );
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts_and_of_unit_length() {
        let body = r#"{"object":"list","model":"x","usage":{"total_tokens":3},"data":[
            {"object":"embedding","index":2,"embedding":[0,-1e-300]},
            {"index":0,"embedding":[3,4]},
            {"index":1,"embedding":[1e300,1e300]}]}"#;
        let half = std::f32::consts::FRAC_1_SQRT_2;
        assert_eq!(
            read(body, 3).unwrap(),
            [[0.6, 0.8], [half, half], [0.0, -1.0]]
        );
        let free = parse_vectors(br#"{"data":[{"index":0,"embedding":[0,0,2]}]}"#, 1, None);
        assert_eq!(free.unwrap(), [[0.0, 0.0, 1.0]]);
    }

    #[test]
    fn odd_answers_are_named() {
        let one =
            |embedding: &str| format!(r#"{{"data":[{{"index":0,"embedding":{embedding}}}]}}"#);
        let two = |index: &str| {
            format!(
                r#"{{"data":[{{"index":0,"embedding":[1,2]}},{{"index":{index},"embedding":[1,2]}}]}}"#
            )
        };
        for (body, texts, word) in [
            (String::new(), 1, "form of embeddings"),
            ("[]".into(), 1, "form of embeddings"),
            ("{}".into(), 1, "`data`"),
            (r#"{"data":null}"#.into(), 1, "null"),
            (r#"{"data":[{"embedding":[1,2]}]}"#.into(), 1, "`index`"),
            (r#"{"data":[{"index":0}]}"#.into(), 1, "`embedding`"),
            (r#"{"data":[]}"#.into(), 1, "0 vectors for 1"),
            (one("[1,2]"), 2, "1 vectors for 2"),
            (two("1"), 1, "2 vectors for 1"),
            (two("0"), 2, "text 0 more than once"),
            (two("2"), 2, "text 2 of 2"),
            (two("-1"), 2, "-1"),
            (two("1.0"), 2, "1.0"),
            (two("\"1\""), 2, "string"),
            (one("[1,NaN]"), 1, "form of embeddings"),
            (one("[1,Infinity]"), 1, "form of embeddings"),
            (one("[1,1e999]"), 1, "out of range"),
            (one("[1,null]"), 1, "null"),
            (one("[1,\"2\"]"), 1, "string"),
            (one("\"AACAPw==\""), 1, "string"),
            (one("[[1,2]]"), 1, "form of embeddings"),
            (one("[]"), 1, "0 numbers"),
            (one("[1]"), 1, "1 numbers instead of 2"),
            (one("[1,2,3]"), 1, "3 numbers instead of 2"),
            (one("[0,-0.0]"), 1, "length zero"),
            (one("[1,2]") + "x", 1, "trailing"),
        ] {
            let error = read(&body, texts).unwrap_err();
            assert!(error.contains(word), "{body}: {error}");
        }
        let many = format!("[{}1]", "1,".repeat(MAX_DIMENSIONS));
        for unknown in [one("[]"), one(&many)] {
            assert!(parse_vectors(unknown.as_bytes(), 1, None).is_err());
        }
    }

    #[test]
    fn complaints_are_found_in_every_usual_shape() {
        for (body, said) in [
            (r#"{"error":{"message":"no","type":"x"}}"#, "no"),
            (r#"{"error":"no"}"#, "no"),
            (r#"{"object":"error","message":"no"}"#, "no"),
            (r#"{"detail":"no"}"#, "no"),
            (r#"{"detail":["no"]}"#, r#"{"detail":["no"]}"#),
            (" no\n", "no"),
            ("", ""),
        ] {
            assert_eq!(parse_error_message(body.as_bytes()), said);
        }
        assert_eq!(parse_error_message(b"\xffno"), "\u{fffd}no");
    }
}
