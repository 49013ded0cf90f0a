//! Reads a traveller's request from plain text.

use time::{Date, Month};

use super::cities::{self, City};

/// Most days of a plan.
pub(super) const LONGEST: u32 = 14;
/// Most travellers of a booking.
pub(super) const MOST: u32 = 9;

/// A request that the planner can handle.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// Where the flight leaves, when one is asked for.
    pub from: Option<&'static City>,
    /// Where the trip goes.
    pub to: &'static City,
    /// The day of the flight.
    pub date: Option<Date>,
    /// Travellers, 1 to [`MOST`].
    pub travellers: u32,
    /// Days to plan, 1 to [`LONGEST`]; none when only a flight is asked for.
    pub days: Option<u32>,
}

/// Reads a request, or says what is missing.
pub(super) fn read(text: &str) -> Result<Request, String> {
    let lower = text.to_lowercase();
    let (from, to) = route(text, &lower)?;
    let words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | '!' | '?' | ':'))
        .filter(|word| !word.is_empty())
        .collect();
    let date = words.iter().find_map(|word| date(word)).transpose()?;
    let days = match counted(&words, &["day", "days"]) {
        None if words.contains(&"weekend") => Some(2),
        None if words.contains(&"week") => Some(7),
        None if from.is_none() => Some(3),
        days => days,
    };
    let people = [
        "people",
        "persons",
        "person",
        "passengers",
        "passenger",
        "travellers",
        "travelers",
        "adults",
        "seats",
    ];
    let travellers = counted(&words, &people)
        .or_else(|| trailing_for(&words))
        .unwrap_or(1);
    if days.is_some_and(|days| !(1..=LONGEST).contains(&days)) {
        return Err(format!("A plan has 1 to {LONGEST} days."));
    }
    if !(1..=MOST).contains(&travellers) {
        return Err(format!("A booking has 1 to {MOST} travellers."));
    }
    Ok(Request {
        from,
        to,
        date,
        travellers,
        days,
    })
}

/// Where a flight leaves, when one is asked for, and where the trip goes.
fn route(text: &str, lower: &str) -> Result<(Option<&'static City>, &'static City), String> {
    let named = cities::named_in(text);
    match named[..] {
        [] => {
            let names: Vec<&str> = cities::CITIES.iter().map(|city| city.name).collect();
            Err(format!(
                "Name a city to visit, or two to fly between, as in: {}. Known cities: {}.",
                super::EXAMPLE,
                names.join(", ")
            ))
        }
        [(at, city)] if lower[..at].trim_end().ends_with("from") => {
            Err(format!("Where to from {}?", city.name))
        }
        [(_, city)] => Ok((None, city)),
        // `to Lisbon from Berlin` names the destination first.
        [(_, first), (at, second), ..] if lower[..at].trim_end().ends_with("from") => {
            Ok((Some(second), first))
        }
        [(_, first), (_, second), ..] => Ok((Some(first), second)),
    }
}

/// `3 days`, `three days`: the number before one of the words.
fn counted(words: &[&str], units: &[&str]) -> Option<u32> {
    words
        .windows(2)
        .find(|pair| units.contains(&pair[1]))
        .and_then(|pair| number(pair[0]))
}

/// `… for 2` at the end or before a word that is no unit of time.
fn trailing_for(words: &[&str]) -> Option<u32> {
    let at = words.iter().position(|word| *word == "for")?;
    let count = number(words.get(at + 1)?)?;
    let behind = words.get(at + 2);
    behind
        .is_none_or(|word| !word.starts_with("day") && !word.starts_with("week"))
        .then_some(count)
}

fn number(word: &str) -> Option<u32> {
    const WORDS: [&str; 10] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    ];
    let spelt = WORDS
        .iter()
        .position(|known| *known == word)
        .and_then(|at| u32::try_from(at + 1).ok());
    spelt.or_else(|| word.parse().ok())
}

/// A word of the form `2027-03-14`; one of that form that is no day is an error.
fn date(word: &str) -> Option<Result<Date, String>> {
    let mut parts = word.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || parts.next().is_some() {
        return None;
    }
    let (year, month, day) = (
        year.parse().ok()?,
        month.parse::<u8>().ok()?,
        day.parse().ok()?,
    );
    let read = Month::try_from(month)
        .ok()
        .and_then(|month| Date::from_calendar_date(year, month, day).ok());
    Some(read.ok_or_else(|| format!("There is no day {word}.")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_flight_is_read_whichever_end_is_named_first() {
        for text in [
            "Book a flight from Berlin to Lisbon on 2027-03-14 for 2",
            "two passengers to Lisbon from Berlin, 2027-03-14",
            "Berlin - Lisbon 2027-03-14, 2 people",
        ] {
            let request = read(text).unwrap();
            assert_eq!(request.from.unwrap().name, "Berlin", "{text}");
            assert_eq!(
                (request.to.name, request.travellers, request.days),
                ("Lisbon", 2, None),
                "{text}"
            );
            assert_eq!(request.date.unwrap().to_string(), "2027-03-14");
        }
    }

    #[test]
    fn a_plan_is_read_with_its_days() {
        for (text, days) in [
            ("Plan three days in Rome", 3),
            ("Rome for 5 days", 5),
            ("a weekend in Rome", 2),
            ("Rome", 3),
        ] {
            let request = read(text).unwrap();
            assert_eq!(
                (request.from, request.days, request.travellers),
                (None, Some(days), 1),
                "{text}"
            );
        }
        let both = read("Fly from Rome to Paris and plan 4 days for two adults").unwrap();
        assert_eq!((both.days, both.travellers), (Some(4), 2));
    }

    #[test]
    fn what_is_missing_or_out_of_bounds_is_said() {
        for (text, said) in [
            ("hello", "Known cities: Amsterdam"),
            ("a flight from Berlin", "Where to from Berlin?"),
            ("Rome for 15 days", "1 to 14 days"),
            ("Rome for 0 days", "1 to 14 days"),
            ("Berlin to Rome, 10 people", "1 to 9 travellers"),
            ("Berlin to Rome on 2027-02-30", "no day 2027-02-30"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(said), "{text}: {refusal}");
        }
    }
}
