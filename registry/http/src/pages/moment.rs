//! Formats times for pages. Templates pass references, so the functions accept references.

use a2a_registry_domain::timestamp::{DAY, HOUR, MINUTE, SECOND, Timestamp};

/// Formats a time to the minute: `2026-01-31 12:00 UTC`.
pub(crate) fn format_to_minute(timestamp: &Timestamp) -> String {
    let exact = timestamp.to_rfc3339();
    match (exact.get(..10), exact.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => exact,
    }
}

/// Formats the day of a time: `2026-01-31`.
pub(crate) fn format_day(timestamp: &Timestamp) -> String {
    let exact = timestamp.to_rfc3339();
    exact.get(..10).unwrap_or(&exact).to_owned()
}

/// Formats a time relative to `now`: `5 minutes ago`, `in 2 hours`.
pub(crate) fn format_relative_time(timestamp: &Timestamp, now: &Timestamp) -> String {
    format_duration(timestamp.0.saturating_sub(now.0), false)
}

/// Formats a time relative to `now` with short units: `5 min ago`, `in 2 h`.
pub(crate) fn short_relative_time(timestamp: &Timestamp, now: &Timestamp) -> String {
    format_duration(timestamp.0.saturating_sub(now.0), true)
}

/// Describes when a token was last used. Only the first use in each hour is recorded, as the start of the hour.
pub(crate) fn last_used_text(used_at: &Timestamp, now: &Timestamp) -> String {
    if now.0.saturating_sub(used_at.0) < HOUR {
        return "in the last hour".to_owned();
    }
    format!("in the hour from {}", format_to_minute(used_at))
}

/// Formats a duration in the largest unit with a value of at least one, with short or full unit names. Past times are
/// rounded down; future times are rounded to the nearest unit, because a period of 30 days should not read 29 days one
/// second later.
fn format_duration(microseconds: i64, is_brief: bool) -> String {
    let mut size = microseconds.saturating_abs();
    if microseconds > 0 {
        for unit in [SECOND, MINUTE, HOUR, DAY] {
            if size >= unit {
                size = size.saturating_add(unit / 2) / unit * unit;
            }
        }
    }
    let (unit, name, short) = match size {
        _ if size >= DAY => (DAY, "day", "d"),
        _ if size >= HOUR => (HOUR, "hour", "h"),
        _ if size >= MINUTE => (MINUTE, "minute", "min"),
        _ if size >= SECOND => (SECOND, "second", "s"),
        _ => return "just now".to_owned(),
    };
    let count = size / unit;
    let plural = if count == 1 { "" } else { "s" };
    let distance = if is_brief {
        format!("{count} {short}")
    } else {
        format!("{count} {name}{plural}")
    };
    if microseconds < 0 {
        format!("{distance} ago")
    } else {
        format!("in {distance}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_by_the_clock_and_by_its_distance() {
        let now = Timestamp(1_767_225_600_000_000);
        let moment = now.plus_micros(-90 * SECOND);
        assert_eq!(format_to_minute(&moment), "2025-12-31 23:58 UTC");
        assert_eq!(format_relative_time(&moment, &now), "1 minute ago");
        assert_eq!(short_relative_time(&moment, &now), "1 min ago");
        assert_eq!(format_day(&moment), "2025-12-31");
        assert_eq!(format_duration(3 * DAY + HOUR, false), "in 3 days");
        assert_eq!(format_duration(-SECOND + 1, true), "just now");
        for (to_come, told) in [
            (30 * DAY - 3 * SECOND, "in 30 days"),
            (30 * DAY - 13 * HOUR, "in 29 days"),
            (DAY - SECOND / 3, "in 1 day"),
            (HOUR + 20 * MINUTE, "in 1 hour"),
            (SECOND / 2, "just now"),
        ] {
            assert_eq!(format_duration(to_come, false), told);
        }
        assert_eq!(format_duration(3 * SECOND - 30 * DAY, false), "29 days ago");
        assert!(format_duration(i64::MAX, false).ends_with(" days"));
        assert!(format_duration(i64::MIN, false).ends_with("days ago"));
    }

    #[test]
    fn the_last_use_of_a_token_is_told_by_the_hour() {
        let hour = Timestamp(1_767_225_600_000_000);
        let told = |later: i64| last_used_text(&hour, &hour.plus_micros(later));
        assert_eq!(told(HOUR - 1), "in the last hour");
        let earlier = "in the hour from 2026-01-01 00:00 UTC";
        assert_eq!(told(HOUR), earlier);
        assert_eq!(told(100 * HOUR), earlier);
    }
}
