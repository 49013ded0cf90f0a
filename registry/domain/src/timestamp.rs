//! Timestamps: signed microseconds since 1970 UTC internally, RFC 3339 with `Z` externally.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// A point in time, in microseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

impl Timestamp {
    /// This time plus a number of microseconds; saturates.
    #[must_use]
    pub const fn plus_micros(self, microseconds: i64) -> Self {
        Self(self.0.saturating_add(microseconds))
    }

    /// Whole days since 1970.
    pub fn days_since_epoch(self) -> i32 {
        i32::try_from(self.0.div_euclid(DAY)).unwrap_or(i32::MAX)
    }

    pub const fn to_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// RFC 3339 text with `Z`, as in every response.
    pub fn to_rfc3339(self) -> String {
        OffsetDateTime::from(self)
            .format(&Rfc3339)
            .unwrap_or_else(|_| self.0.to_string())
    }

    /// The day in UTC, as in `2026-01-31`.
    pub fn day_text(self) -> String {
        let mut text = self.to_rfc3339();
        text.truncate(10);
        text
    }

    /// `2026-01-31 12:00:00 UTC`, for people.
    pub fn to_readable(self) -> String {
        let exact = self.to_rfc3339();
        match (exact.get(..10), exact.get(11..19)) {
            (Some(day), Some(second)) => format!("{day} {second} UTC"),
            _ => exact,
        }
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(moment: OffsetDateTime) -> Self {
        let microseconds = moment.unix_timestamp_nanos() / 1000;
        Self(i64::try_from(microseconds).unwrap_or(i64::MAX))
    }
}

impl From<Timestamp> for OffsetDateTime {
    /// Converts a timestamp; times outside the years 0 to 9999, which only a corrupt row can hold, become 1970.
    fn from(moment: Timestamp) -> Self {
        let limit = Duration::days(365 * 2000).whole_microseconds() as i64;
        let bounded = moment.0.clamp(-limit, limit);
        Self::UNIX_EPOCH + Duration::microseconds(bounded)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl std::str::FromStr for Timestamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        OffsetDateTime::parse(text, &Rfc3339)
            .map(Self::from)
            .map_err(|_| "expected an RFC 3339 timestamp such as 2026-01-31T12:00:00Z".to_owned())
    }
}

impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl utoipa::ToSchema for Timestamp {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_rfc_3339_with_z_and_reads_it_back() {
        let moment = Timestamp(1_767_225_600_000_001);
        assert_eq!(moment.to_rfc3339(), "2026-01-01T00:00:00.000001Z");
        let json = serde_json::to_string(&moment).unwrap_or_default();
        assert_eq!(serde_json::from_str::<Timestamp>(&json).ok(), Some(moment));
    }

    #[test]
    fn people_read_a_day_and_a_time() {
        let moment = Timestamp(1_767_225_600_000_001);
        assert_eq!(moment.to_readable(), "2026-01-01 00:00:00 UTC");
        assert_eq!(Timestamp(-1).to_readable(), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn a_corrupt_row_does_not_panic() {
        for value in [i64::MIN, i64::MAX] {
            assert!(!Timestamp(value).to_rfc3339().is_empty());
        }
    }
}
