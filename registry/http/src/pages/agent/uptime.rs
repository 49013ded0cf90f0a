//! Uptime of a card over 90 days: a small chart with one bar per day, and a summary sentence.

use a2a_registry_domain::timestamp::{DAY, Timestamp};
use time::OffsetDateTime;

use super::page_extras::DailyFetches;

/// Number of days in the chart, including today.
const CHART_DAYS: i32 = 90;
/// Width of a bar and its gap, in chart units.
const BAR_STEP: i32 = 4;
/// Height of the chart, in chart units.
const CHART_HEIGHT: u64 = 24;
/// Minimum height of a bar, so that a day without success is visible.
const MIN_BAR_HEIGHT: u64 = 5;

pub(crate) struct UptimeView {
    pub sentence: String,
    pub bars: Vec<UptimeBarView>,
}

pub(crate) struct UptimeBarView {
    pub x: i32,
    pub y: u64,
    pub height: u64,
    /// Tone of the bar: `up`, `part` or `down`.
    pub tone: &'static str,
    pub title: String,
}

impl UptimeView {
    /// Uptime over the 90 days that end today; `None` without fetches.
    pub fn new(days: &[DailyFetches], now: Timestamp) -> Option<Self> {
        let today = i32::try_from(now.0.div_euclid(DAY)).unwrap_or(i32::MAX);
        let is_in_chart = |total: &&DailyFetches| {
            let age = today.saturating_sub(total.day);
            (0..CHART_DAYS).contains(&age) && total.fetches > 0
        };
        let days: Vec<&DailyFetches> = days.iter().filter(is_in_chart).collect();
        let fetches: u64 = days.iter().map(|total| total.fetches).sum();
        let good: u64 = days.iter().map(|total| total.successful).sum();
        (fetches > 0).then(|| Self {
            sentence: uptime_sentence(good, fetches, &days),
            bars: days
                .iter()
                .rev()
                .map(|total| uptime_bar_view(total, today))
                .collect(),
        })
    }
}

fn uptime_sentence(good: u64, fetches: u64, days: &[&DailyFetches]) -> String {
    let failed_days = days
        .iter()
        .filter(|total| total.successful < total.fetches)
        .count();
    let all = format!("{good} of {fetches} fetches of the card succeeded in the last 90 days");
    match failed_days {
        0 => format!("{all}."),
        1 => format!("{all}; some failed on 1 day."),
        _ => format!("{all}; some failed on {failed_days} days."),
    }
}

fn uptime_bar_view(total: &DailyFetches, today: i32) -> UptimeBarView {
    let good = total.successful.min(total.fetches);
    let height = (CHART_HEIGHT * good / total.fetches).max(MIN_BAR_HEIGHT);
    let day_start = OffsetDateTime::from(Timestamp(i64::from(total.day).saturating_mul(DAY)));
    UptimeBarView {
        x: (CHART_DAYS - 1 - (today - total.day)) * BAR_STEP,
        y: CHART_HEIGHT - height,
        height,
        tone: match good {
            _ if good == total.fetches => "up",
            0 => "down",
            _ => "part",
        },
        title: format!(
            "{}: {good} of {} fetches succeeded",
            day_start.date(),
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

    fn day(ago: i32, fetches: u64, good: u64) -> DailyFetches {
        DailyFetches {
            day: TODAY - ago,
            fetches,
            successful: good,
        }
    }

    #[test]
    fn ninety_days_are_shown_and_no_more() {
        let days: Vec<DailyFetches> = (-3..200).map(|ago| day(ago, 2, 2)).collect();
        let uptime = UptimeView::new(&days, now()).unwrap();
        assert_eq!(uptime.bars.len(), 90);
        assert_eq!(
            uptime.sentence,
            "180 of 180 fetches of the card succeeded in the last 90 days."
        );
        let (first, last) = (&uptime.bars[0], &uptime.bars[89]);
        assert_eq!((first.x, last.x), (0, 89 * BAR_STEP));
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
        let far = DailyFetches {
            day: i32::MIN,
            fetches: u64::MAX,
            successful: 1,
        };
        assert!(UptimeView::new(&[far], now()).is_none());
    }
}
