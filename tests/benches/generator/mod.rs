//! Agent cards and queries made from a seed: the same seed gives the same bytes on every machine.
//!
//! Words, tags, providers and skill ids follow Zipf's law (the probability of a rank is proportional to 1/rank),
//! because this distribution determines the cost of a search: a few words match a tenth of all cards, most words match
//! a handful.

mod vocabulary;

use serde_json::{Value, json};
use vocabulary::{VOCABULARY, word_of_rank};

/// Number of different tags.
const TAGS: u64 = 500;
/// Number of different skill ids.
const SKILL_IDS: u64 = 3_000;
/// Number of different organisations.
const PROVIDERS: u64 = 5_000;
/// Ranks of query words: without stop words, and without words that hardly any card contains.
const QUERY_RANKS: (u64, u64) = (20, 10_000);

/// A random number generator (`SplitMix64`), fully determined by its seed.
#[derive(Debug, Clone)]
pub struct RandomSource(u64);

impl RandomSource {
    /// The sequence of a seed at an index, independent of those at other indexes.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut draw = Self(seed ^ index.wrapping_mul(0xD605_1F4E_9A5B_7C13));
        draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn unit(&mut self) -> f64 {
        // A double represents 53 bits exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A rank from `low` to below `high`, with a probability proportional to 1/rank.
    pub fn rank(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1) as f64, high.max(2) as f64);
        (low * (high / low).powf(self.unit())) as u64
    }

    fn words(&mut self, count: u64) -> String {
        let words: Vec<_> = (0..count)
            .map(|_| word_of_rank(self.rank(1, VOCABULARY)))
            .collect();
        words.join(" ")
    }

    fn sentence(&mut self, count: u64) -> String {
        let mut text = self.words(count);
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        text.push('.');
        text
    }

    fn tag(&mut self) -> String {
        word_of_rank(self.rank(1, TAGS) * 7)
    }
}

/// Makes cards and queries.
#[derive(Debug, Clone, Copy)]
pub struct CardGenerator {
    seed: u64,
}

impl CardGenerator {
    /// A generator with that seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Card number `index`, as its publisher serves it: protocol version 0.3 or 1.0, one to six skills,
    /// 1 to 4 kB.
    pub fn card(&self, index: u64) -> Vec<u8> {
        let mut draw = RandomSource::new(self.seed, index);
        let name = draw.words(2) + " agent";
        let description = draw.sentence(40);
        let provider = draw.rank(1, PROVIDERS);
        let skills: Vec<Value> = (0..1 + draw.below(6)).map(|_| skill(&mut draw)).collect();
        let streaming = draw.below(2) == 0;
        let endpoint = format!("https://a{index}.agents.test/a2a");
        let provider = json!({
            "organization": format!("{} {}", word_of_rank(provider), ["Labs", "Inc", "GmbH", "Works"][(provider % 4) as usize]),
            "url": format!("https://org{provider}.agents.test"),
        });
        let mut card = json!({
            "name": name,
            "description": description,
            "version": format!("{}.{}.0", draw.below(4), draw.below(10)),
            "provider": provider,
            "capabilities": {"streaming": streaming, "pushNotifications": draw.below(4) == 0},
            "defaultInputModes": modes(&mut draw),
            "defaultOutputModes": modes(&mut draw),
            "skills": skills,
        });
        let binding = ["JSONRPC", "HTTP+JSON", "GRPC"][(draw.rank(1, 4) - 1).min(2) as usize];
        let secured = draw.below(3);
        if draw.below(2) == 0 {
            card["protocolVersion"] = json!("0.3.0");
            card["url"] = json!(endpoint);
            card["preferredTransport"] = json!(binding);
            if secured > 0 {
                card["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
                card["security"] = json!([{"token": []}]);
            }
        } else {
            card["supportedInterfaces"] = json!([{
                "url": endpoint, "protocolBinding": binding, "protocolVersion": "1.0",
            }]);
            if secured > 0 {
                card["securitySchemes"] = json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}});
                card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
            }
        }
        card.to_string().into_bytes()
    }

    /// Query number `index`, with this number of words, as a user would type them.
    pub fn query(&self, index: u64, words: usize) -> String {
        // An index that no card has.
        let mut draw = RandomSource::new(!self.seed, index);
        let (low, high) = QUERY_RANKS;
        let words: Vec<_> = (0..words)
            .map(|_| word_of_rank(draw.rank(low, high)))
            .collect();
        words.join(" ")
    }
}

fn skill(draw: &mut RandomSource) -> Value {
    let tags: Vec<_> = (0..1 + draw.below(4)).map(|_| draw.tag()).collect();
    let examples: Vec<_> = (0..draw.below(3)).map(|_| draw.sentence(8)).collect();
    json!({
        "id": format!("{}-{}", word_of_rank(draw.rank(1, SKILL_IDS)), draw.rank(1, 4)),
        "name": draw.words(2),
        "description": draw.sentence(18),
        "tags": tags,
        "examples": examples,
    })
}

fn modes(draw: &mut RandomSource) -> Vec<&'static str> {
    let all = ["text/plain", "application/json", "image/png", "audio/wav"];
    let count = draw.rank(1, 5) as usize;
    all[..count.min(all.len())].to_vec()
}
