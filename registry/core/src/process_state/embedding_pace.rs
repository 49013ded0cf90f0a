//! How fast a model computes the vectors of agents, and how long that will still take.

use std::time::Duration;

use serde::Serialize;

/// The least time from which a pace is estimated.
const MIN_ELAPSED: Duration = Duration::from_secs(1);

/// The units of a time that is left, with their seconds.
const TIME_UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];

/// How fast vectors are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EmbeddingPace {
    pub agents_per_minute: u64,
    /// Estimated time until every agent has its vectors.
    pub seconds_left: u64,
}

impl EmbeddingPace {
    /// The pace of `computed` agents in this time, with `remaining` ones to do; `None` while it is too early to tell.
    pub fn estimate(computed: u64, elapsed: Duration, remaining: u64) -> Option<Self> {
        if computed == 0 || elapsed < MIN_ELAPSED {
            return None;
        }
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Some(Self {
            agents_per_minute: computed.saturating_mul(60_000) / millis,
            seconds_left: (remaining.saturating_mul(millis) / computed).div_ceil(1000),
        })
    }

    /// Such as `1620 a minute, about 5 minutes left`.
    pub fn text(&self) -> String {
        let seconds = self.seconds_left;
        let unit = TIME_UNITS.iter().find(|(length, _)| seconds >= 2 * length);
        let left = match unit {
            Some((length, name)) => format!("{} {name}", seconds.div_ceil(*length)),
            None => format!("{} seconds", seconds.max(2)),
        };
        format!("{} a minute, about {left} left", self.agents_per_minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_was_done() {
        let estimate = |computed, seconds, remaining| {
            EmbeddingPace::estimate(computed, Duration::from_secs(seconds), remaining)
                .map(|pace| pace.text())
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            estimate(270, 10, 8100),
            text("1620 a minute, about 5 minutes left")
        );
        assert_eq!(
            estimate(270, 10, 0),
            text("1620 a minute, about 2 seconds left")
        );
        assert_eq!(
            estimate(270, 10, 1_000_000),
            text("1620 a minute, about 11 hours left")
        );
        assert_eq!(
            estimate(1, 10, 1_000_000),
            text("6 a minute, about 116 days left")
        );
        assert_eq!((estimate(0, 10, 5), estimate(5, 0, 5)), (None, None));
    }
}
