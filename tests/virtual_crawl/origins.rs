//! Origins of a virtual crawl: derived from a seed and a number, so that a million of them take no memory.

use std::net::{IpAddr, Ipv4Addr};

use a2a_crawler::dns::{DnsError, Resolver, TxtLookup};
use a2a_crawler::{
    AttemptOutcome, FetchAttempt, FetchedCard, Freshness, SourceOutcome, SourceResult, SourceTask,
    Validators,
};
use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

/// Behaviours of origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OriginBehaviour {
    /// `ETag` and `max-age=86400`.
    Daily,
    /// `ETag` and `max-age=3600`.
    Hourly,
    /// `ETag`, without freshness.
    Adaptive,
    /// `Last-Modified` and `max-age=86400`.
    Dated,
    /// Neither validator nor freshness.
    Bare,
    /// `no-store` and no validator.
    NoStore,
    /// `ETag`, and another card every three days.
    Changing,
    /// `ETag`; every twentieth fetch times out or ends in 503.
    Flaky,
    /// `ETag`; every tenth fetch ends in 429 with an hour or two of `Retry-After`.
    Throttling,
    /// 404 from the first day on.
    Missing,
    /// Present for some days, then 404, 410 or NXDOMAIN for good.
    Leaving,
    /// An invalid certificate for two days.
    TlsLapse,
    /// 200 with an HTML page.
    Html,
}

impl OriginBehaviour {
    /// All behaviours with their numbers of a thousand origins.
    pub const SHARES: [(Self, u64); 13] = [
        (Self::Daily, 440),
        (Self::Hourly, 120),
        (Self::Adaptive, 150),
        (Self::Dated, 140),
        (Self::Bare, 30),
        (Self::NoStore, 3),
        (Self::Changing, 40),
        (Self::Flaky, 30),
        (Self::Throttling, 10),
        (Self::Missing, 12),
        (Self::Leaving, 10),
        (Self::TlsLapse, 5),
        (Self::Html, 10),
    ];

    const fn max_age(self) -> Option<u32> {
        match self {
            Self::Daily | Self::Dated | Self::Throttling => Some(86_400),
            Self::Hourly => Some(3_600),
            Self::NoStore => Some(0),
            _ => None,
        }
    }

    /// Whether such an origin sends a validator.
    pub const fn validates(self) -> bool {
        !matches!(self, Self::Bare | Self::NoStore)
    }
}

/// All origins.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedOrigins {
    pub seed: u64,
    /// Number of [`OriginBehaviour::Hourly`] origins in a thousand; the rest of their share is
    /// [`OriginBehaviour::Daily`].
    pub hourly: u64,
    pub start: OffsetDateTime,
}

/// A response of an origin.
pub struct SimulatedResponse {
    pub result: SourceOutcome,
    pub took: Duration,
    /// The version of the card behind it, if there is a card.
    pub version: Option<i64>,
    /// The announced `max-age`.
    pub max_age: Option<u32>,
    /// The announced `Retry-After` in seconds.
    pub retry_after: Option<u32>,
}

/// Number of platforms, which host every fifth agent, each in one address block.
const PLATFORMS: u64 = 20;

/// The number in a domain's name. `stock` does the same in SQL.
pub fn number_of(domain: &str) -> u64 {
    let digits = domain.strip_prefix('d').unwrap();
    digits[..digits.find('.').unwrap()].parse().unwrap()
}

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl SimulatedOrigins {
    fn chance(&self, number: u64, about: u64) -> u64 {
        mix(mix(self.seed ^ number.wrapping_mul(31)) ^ about)
    }

    pub fn behaviour(&self, number: u64) -> OriginBehaviour {
        let mut place = self.chance(number, 1) % 1000;
        for (behaviour, share) in OriginBehaviour::SHARES {
            if place < share {
                let daily = behaviour == OriginBehaviour::Hourly && place >= self.hourly;
                return if daily {
                    OriginBehaviour::Daily
                } else {
                    behaviour
                };
            }
            place -= share;
        }
        unreachable!("the shares come to a thousand")
    }

    /// The address of an origin: on a platform, or in a block of its own.
    pub fn address(&self, number: u64) -> IpAddr {
        if number.is_multiple_of(5) {
            let platform = (number / 5) % PLATFORMS;
            return Ipv4Addr::new(198, 41, platform as u8, (number % 250) as u8).into();
        }
        let block = (number as u32) << 8;
        Ipv4Addr::from(0x2000_0000 + block + (self.chance(number, 2) % 250) as u32).into()
    }

    /// The version of an origin's card at a moment: versions change at intervals, at different moments per origin.
    fn version(&self, number: u64, at: OffsetDateTime) -> i64 {
        let days = if self.behaviour(number) == OriginBehaviour::Changing {
            3
        } else {
            60
        };
        let period = days * 86_400;
        let offset = (self.chance(number, 3) % period) as i64;
        ((at - self.start).whole_seconds() + offset) / period as i64
    }

    /// The response of an origin to a request at that moment.
    pub fn respond(
        &self,
        number: u64,
        url: &str,
        task: &SourceTask,
        at: OffsetDateTime,
    ) -> SimulatedResponse {
        let behaviour = self.behaviour(number);
        let dice = self.chance(number, at.unix_timestamp() as u64 | 1 << 63);
        let day = (at - self.start).whole_days();
        let took = Duration::milliseconds(50 + (dice % 450) as i64);
        let failed = |outcome, status| self.failed(number, url, task, at, outcome, status);
        let lapse = (self.chance(number, 4) % 20) as i64;
        match behaviour {
            OriginBehaviour::Missing => return failed(AttemptOutcome::NotFound, Some(404)),
            OriginBehaviour::Html => return failed(AttemptOutcome::NotACard, Some(200)),
            OriginBehaviour::Leaving if day > lapse => {
                return match self.chance(number, 5) % 3 {
                    0 => failed(AttemptOutcome::NotFound, Some(404)),
                    1 => failed(AttemptOutcome::Gone, Some(410)),
                    _ => failed(AttemptOutcome::NoSuchHost, None),
                };
            }
            OriginBehaviour::TlsLapse if (lapse..lapse + 2).contains(&day) => {
                return failed(AttemptOutcome::TlsInvalid, None);
            }
            OriginBehaviour::Flaky if dice.is_multiple_of(20) => {
                return match dice / 20 % 2 {
                    0 => failed(AttemptOutcome::Timeout, None),
                    _ => failed(AttemptOutcome::BadStatus, Some(503)),
                };
            }
            OriginBehaviour::Throttling if dice.is_multiple_of(10) => {
                let mut said = failed(AttemptOutcome::Throttled, Some(429));
                said.retry_after = Some(3_600 + (dice % 3_600) as u32);
                said.result.result = SourceResult::Failed {
                    outcome: AttemptOutcome::Throttled,
                    retry_after: said.retry_after,
                };
                return said;
            }
            // Every origin fails now and then.
            _ if dice % 1_000 == 7 => return failed(AttemptOutcome::Timeout, None),
            _ => {}
        }
        let version = self.version(number, at);
        let text = format!("\"{version}\"");
        let dated = behaviour == OriginBehaviour::Dated;
        let freshness = Freshness {
            validators: behaviour.validates().then(|| Validators {
                url: url.to_owned(),
                etag: (!dated).then(|| text.clone()),
                last_modified: dated.then(|| text.clone()),
            }),
            max_age: behaviour.max_age(),
            vary: None,
        };
        let same = task.validators.as_ref().is_some_and(|sent| {
            sent.url == url && (sent.etag.as_ref().or(sent.last_modified.as_ref())) == Some(&text)
        });
        let (outcome, status, verdict) = if same {
            let verdict = SourceResult::NotModified(freshness);
            (AttemptOutcome::NotModified, 304, verdict)
        } else {
            let bytes = card(number, version);
            let card = FetchedCard {
                url: url.to_owned(),
                parsed: a2a_card::parse_card(&bytes).unwrap(),
                bytes,
                key_sets: Vec::new(),
                over_tls: true,
                with_credential: false,
                freshness,
            };
            (
                AttemptOutcome::Card,
                200,
                SourceResult::Fetched(Box::new(card)),
            )
        };
        let attempt = self.attempt(number, url, at, outcome, Some(status), took);
        SimulatedResponse {
            result: SourceOutcome {
                source_key: task.source_key,
                attempts: vec![attempt],
                result: verdict,
            },
            took,
            version: Some(version),
            max_age: behaviour.max_age(),
            retry_after: None,
        }
    }

    fn failed(
        &self,
        number: u64,
        url: &str,
        task: &SourceTask,
        at: OffsetDateTime,
        outcome: AttemptOutcome,
        status: Option<u16>,
    ) -> SimulatedResponse {
        let took = match outcome {
            AttemptOutcome::Timeout => Duration::seconds(10),
            _ => Duration::milliseconds(200),
        };
        SimulatedResponse {
            result: SourceOutcome {
                source_key: task.source_key,
                attempts: vec![self.attempt(number, url, at, outcome, status, took)],
                result: SourceResult::Failed {
                    outcome,
                    retry_after: None,
                },
            },
            took,
            version: None,
            max_age: None,
            retry_after: None,
        }
    }

    fn attempt(
        &self,
        number: u64,
        url: &str,
        at: OffsetDateTime,
        outcome: AttemptOutcome,
        status: Option<u16>,
        took: Duration,
    ) -> FetchAttempt {
        let met = !matches!(outcome, AttemptOutcome::NoSuchHost);
        FetchAttempt {
            started_at: at,
            url: url.to_owned(),
            outcome,
            status,
            address: met.then(|| self.address(number)),
            detail: "as the simulation says".into(),
            is_conditional: outcome == AttemptOutcome::NotModified,
            elapsed_ms: took.whole_milliseconds() as u32,
        }
    }
}

fn card(number: u64, version: i64) -> Vec<u8> {
    format!(
        r#"{{"protocolVersion":"0.3.0","name":"Agent {number}","description":"Answers questions of kind {number}.","url":"https://d{number}.example.net/a2a","preferredTransport":"JSONRPC","version":"1.0.{version}","capabilities":{{"streaming":true}},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{{"id":"answer","name":"Answer","description":"Answers.","tags":["tests"]}}]}}"#
    )
    .into_bytes()
}

/// Resolves names to the addresses of their origins.
#[async_trait]
impl Resolver for SimulatedOrigins {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError> {
        Ok(vec![self.address(number_of(host))])
    }

    async fn lookup_txt(&self, _: &str) -> TxtLookup {
        TxtLookup::Absent
    }
}
