//! Builds cards from instructions: every byte decides something, and any bytes build some card.

use a2a_card::{MAX_CARD_BYTES, MAX_LIST_ELEMENTS};
use serde_json::{Map, Number, Value, json};

/// Names and values that the reader knows, in every generation's spelling.
const WORDS: [&str; 88] = [
    "name",
    "description",
    "version",
    "url",
    "provider",
    "organization",
    "supportedInterfaces",
    "supported_interfaces",
    "protocolBinding",
    "protocol_binding",
    "transport",
    "type",
    "protocol",
    "protocolVersion",
    "protocol_version",
    "tenant",
    "preferredTransport",
    "additionalInterfaces",
    "capabilities",
    "streaming",
    "pushNotifications",
    "push_notifications",
    "extendedAgentCard",
    "stateTransitionHistory",
    "extensions",
    "uri",
    "required",
    "params",
    "tools",
    "skills",
    "id",
    "tags",
    "examples",
    "inputModes",
    "outputModes",
    "defaultInputModes",
    "default_input_modes",
    "defaultOutputModes",
    "securitySchemes",
    "security_schemes",
    "security",
    "securityRequirements",
    "schemes",
    "list",
    "scheme",
    "in",
    "location",
    "bearerFormat",
    "flows",
    "authorizationCode",
    "implicit",
    "tokenUrl",
    "openIdConnectUrl",
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
    "authentication",
    "credentials",
    "supportsAuthenticatedExtendedCard",
    "documentationUrl",
    "iconUrl",
    "signatures",
    "protected",
    "signature",
    "header",
    "agent",
    "identity",
    "agent_name",
    "endpoint",
    "x-own",
    "apiKey",
    "http",
    "oauth2",
    "bearer",
    "JSONRPC",
    "http+json",
    "1.0",
    "0.3.0",
    "true",
    "text",
    "text/plain",
    "https://a.agents.dev/a2a",
    "http://10.0.0.1:80/",
    "grpc.agents.dev:443",
    "eyJhbGciOiJFUzI1NiJ9",
    "{BASE_URL}",
];

/// Cards to start from: one of each generation, and an empty one.
const SEEDS: [&str; 4] = [
    r#"{"name":"A","url":"https://a.agents.dev/","authentication":{"schemes":["bearer"]},"skills":[{"id":"a","name":"A"}]}"#,
    r#"{"name":"A","url":"https://a.agents.dev/","protocolVersion":"0.3.0","preferredTransport":"GRPC","additionalInterfaces":[{"url":"https://b.agents.dev/","transport":"JSONRPC"}],"capabilities":{"streaming":true},"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"K"}},"security":[{"key":[]}],"defaultInputModes":["text"],"skills":[{"id":"a","name":"A","tags":["t"],"security":[{"key":[]}]}]}"#,
    r#"{"name":"A","supportedInterfaces":[{"url":"https://a.agents.dev/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"extensions":[{"uri":"https://a.agents.dev/x"}]},"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"authorizationCode":{"tokenUrl":"https://a.agents.dev/t"}}}}},"securityRequirements":[{"schemes":{"o":{"list":["s"]}}}],"skills":[{"id":"a","name":"A"}],"signatures":[{"protected":"eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ","signature":"AAAA"}]}"#,
    r#"{"name":"A"}"#,
];

/// Depth of the deepest value that an instruction builds.
const MAX_BUILT_DEPTH: usize = 12;

/// Most changes made to a seed.
const MAX_CHANGES: usize = 64;

/// The remaining instructions.
struct Plan<'d> {
    data: &'d [u8],
    /// Bytes of JSON that repetitions may still add.
    room: usize,
}

impl Plan<'_> {
    /// The next byte; zero when none is left.
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.data.split_first() else {
            return 0;
        };
        self.data = rest;
        usize::from(*first)
    }

    /// One of the known words, or text from the instructions.
    fn word(&mut self) -> String {
        let choice = self.byte();
        if let Some(word) = WORDS.get(choice) {
            return (*word).to_owned();
        }
        let length = choice.saturating_sub(WORDS.len()).min(self.data.len());
        let (text, rest) = self.data.split_at(length);
        self.data = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    /// Any value; deep ones are rare.
    fn value(&mut self, depth: usize) -> Value {
        let choice = self.byte() % 12;
        match choice {
            0 => Value::Null,
            1 => Value::Bool(self.byte().is_multiple_of(2)),
            2 => json!(self.byte()),
            3 => {
                let bits = (0..8).fold(0_u64, |bits, _| (bits << 8) | self.byte() as u64);
                Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
            }
            4..=7 => Value::String(self.word()),
            8 | 9 if depth < MAX_BUILT_DEPTH => {
                let count = self.byte() % 6;
                (0..count).map(|_| self.value(depth + 1)).collect()
            }
            _ if depth < MAX_BUILT_DEPTH => {
                let count = self.byte() % 6;
                let members = (0..count).map(|_| (self.word(), self.value(depth + 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            _ => Value::Null,
        }
    }

    /// Changes something in a value, some levels down.
    fn change(&mut self, value: &mut Value, depth: usize) {
        if depth < MAX_BUILT_DEPTH && !self.byte().is_multiple_of(4) {
            let step = self.byte();
            let inner = match value {
                Value::Array(list) if !list.is_empty() => {
                    let index = step % list.len();
                    list.get_mut(index)
                }
                Value::Object(members) if !members.is_empty() => {
                    let index = step % members.len();
                    members.values_mut().nth(index)
                }
                _ => None,
            };
            if let Some(inner) = inner {
                return self.change(inner, depth + 1);
            }
        }
        match (value, self.byte() % 4) {
            (Value::Object(members), 0) => {
                let last = members.keys().next_back().cloned();
                last.and_then(|name| members.shift_remove(&name));
            }
            (Value::Object(members), _) => {
                members.insert(self.word(), self.value(depth));
            }
            (Value::Array(list), 0) => {
                list.pop();
            }
            (Value::Array(list), 1) => {
                if let Some(last) = list.last().cloned() {
                    let count = self.affordable(&last);
                    list.extend(std::iter::repeat_n(last, count));
                }
            }
            (Value::Array(list), _) => list.push(self.value(depth)),
            (leaf, _) => *leaf = self.value(depth),
        }
    }

    /// How often the value may be repeated: beyond the limit of lists if it is small.
    fn affordable(&mut self, value: &Value) -> usize {
        let size = value.to_string().len() + 1;
        let count = (self.room / size).min(MAX_LIST_ELEMENTS + 1);
        self.room -= count * size;
        count
    }
}

/// The card that the data builds: a seed with changes, written as JSON, with a few bytes overwritten. It is at most
/// [`MAX_CARD_BYTES`] long, and always the same for the same data.
pub fn card(data: &[u8]) -> Vec<u8> {
    let mut plan = Plan {
        data,
        room: MAX_CARD_BYTES / 2,
    };
    let seed = SEEDS.get(plan.byte() % SEEDS.len()).copied();
    let seed = seed.and_then(|seed| serde_json::from_str(seed).ok());
    let mut card: Value = seed.unwrap_or_default();
    let flips = plan.byte() % 8;
    for _ in 0..MAX_CHANGES {
        if plan.data.len() <= 3 * flips {
            break;
        }
        plan.change(&mut card, 0);
    }
    let mut bytes = card.to_string().into_bytes();
    for _ in 0..flips {
        let place = plan.byte() << 8 | plan.byte();
        let index = place % bytes.len().max(1);
        let new = plan.byte();
        if let (Some(byte), Ok(new)) = (bytes.get_mut(index), u8::try_from(new)) {
            *byte = new;
        }
    }
    bytes.truncate(MAX_CARD_BYTES);
    bytes
}

#[cfg(test)]
mod tests {
    use a2a_card::parse_card;

    use super::*;

    #[test]
    fn the_same_instructions_build_the_same_card() {
        let data: Vec<u8> = (0..=255).collect();
        assert_eq!(card(&data), card(&data));
        for seed in 0..4 {
            // No changes and no overwritten bytes.
            assert!(parse_card(&card(&[seed])).is_ok(), "{seed}");
        }
    }

    #[test]
    fn words_and_lists_grow_to_their_bounds_and_no_further() {
        // Change the first seed's list of skills: down to `skills`, repeat its last element.
        let repeat = [0, 0, 1, 3, 0, 1];
        let bytes = card(&repeat);
        let parsed = parse_card(&bytes);
        let skills = parsed.map(|parsed| parsed.card.skills.len());
        assert_eq!(skills, Ok(MAX_LIST_ELEMENTS));
        let ever: Vec<u8> = [0, 0].into_iter().chain([1, 3, 0, 1].repeat(200)).collect();
        assert!(card(&ever).len() <= MAX_CARD_BYTES);
    }
}
