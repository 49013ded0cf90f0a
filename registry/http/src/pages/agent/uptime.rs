//! The uptime of a card over 90 days: a small chart of one bar a day, and the same as a sentence.

use a2a_registry_domain::timestamp::{DAY, Timestamp};
use time::OffsetDateTime;

use super::background::DayTotal;

/// Days of the chart, today included.
const DAYS: i32 = 90;
/// Width of a bar and the gap after it, in units of the chart.
const STEP: i32 = 4;
/// In units of the chart.
const HEIGHT: u64 = 24;
/// Height of the smallest bar, so that a day without success is visible.
const LEAST: u64 = 5;

pub(crate) struct UptimeView {
    pub sentence: String,
    pub bars: Vec<BarView>,
}

pub(crate) struct BarView {
    pub x: i32,
    pub y: u64,
    pub height: u64,
    /// `up`, `part` or `down`.
    pub tone: &'static str,
    pub title: String,
}

impl UptimeView {
    /// The uptime over the 90 days that end today; `None` if none has a fetch.
    pub fn new(days: &[DayTotal], now: Timestamp) -> Option<Self> {
        let today = i32::try_from(now.0.div_euclid(DAY)).unwrap_or(i32::MAX);
        let shown = |total: &&DayTotal| {
            let age = today.saturating_sub(total.day);
            (0..DAYS).contains(&age) && total.fetches > 0
        };
        let days: Vec<&DayTotal> = days.iter().filter(shown).collect();
        let fetches: u64 = days.iter().map(|total| total.fetches).sum();
        let good: u64 = days.iter().map(|total| total.good).sum();
        (fetches > 0).then(|| Self {
            sentence: sentence(good, fetches, &days),
            bars: days.iter().rev().map(|total| bar(total, today)).collect(),
        })
    }
}

fn sentence(good: u64, fetches: u64, days: &[&DayTotal]) -> String {
    let failed = days
        .iter()
        .filter(|total| total.good < total.fetches)
        .count();
    let all = format!("{good} of {fetches} fetches of the card succeeded in the last 90 days");
    match failed {
        0 => format!("{all}."),
        1 => format!("{all}; some failed on 1 day."),
        _ => format!("{all}; some failed on {failed} days."),
    }
}

fn bar(total: &DayTotal, today: i32) -> BarView {
    let good = total.good.min(total.fetches);
    let height = (HEIGHT * good / total.fetches).max(LEAST);
    let at = OffsetDateTime::from(Timestamp(i64::from(total.day).saturating_mul(DAY)));
    BarView {
        x: (DAYS - 1 - (today - total.day)) * STEP,
        y: HEIGHT - height,
        height,
        tone: match good {
            _ if good == total.fetches => "up",
            0 => "down",
            _ => "part",
        },
        title: format!(
            "{}: {good} of {} fetches succeeded",
            at.date(),
            total.fetches
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: i32 = 20_454;

    fn now() -> Timestamp {
        Timestamp(i64::from(TODAY) * DAY + DAY / 2)
    }

    fn day(ago: i32, fetches: u64, good: u64) -> DayTotal {
        DayTotal {
            day: TODAY - ago,
            fetches,
            good,
        }
    }

    #[test]
    fn ninety_days_are_shown_and_no_more() {
        let days: Vec<DayTotal> = (-3..200).map(|ago| day(ago, 2, 2)).collect();
        let uptime = UptimeView::new(&days, now()).unwrap();
        assert_eq!(uptime.bars.len(), 90);
        assert_eq!(
            uptime.sentence,
            "180 of 180 fetches of the card succeeded in the last 90 days."
        );
        let (first, last) = (&uptime.bars[0], &uptime.bars[89]);
        assert_eq!((first.x, last.x), (0, 89 * STEP));
        assert!(
            last.title.starts_with("2026-01-01: 2 of 2"),
            "{}",
            last.title
        );
    }

    #[test]
    fn a_day_with_failures_is_told_by_height_and_tone() {
        let days = [day(0, 4, 4), day(1, 4, 2), day(2, 4, 0), day(3, 0, 0)];
        let uptime = UptimeView::new(&days, now()).unwrap();
        let bars: Vec<_> = uptime
            .bars
            .iter()
            .map(|bar| (bar.height, bar.y, bar.tone))
            .collect();
        assert_eq!(bars, [(5, 19, "down"), (12, 12, "part"), (24, 0, "up")]);
        assert!(
            uptime.sentence.ends_with("; some failed on 2 days."),
            "{}",
            uptime.sentence
        );
    }

    #[test]
    fn without_a_fetch_there_is_no_chart() {
        assert!(UptimeView::new(&[], now()).is_none());
        assert!(UptimeView::new(&[day(0, 0, 0), day(90, 5, 5), day(-1, 5, 5)], now()).is_none());
        let far = DayTotal {
            day: i32::MIN,
            fetches: u64::MAX,
            good: 1,
        };
        assert!(UptimeView::new(&[far], now()).is_none());
    }
}
