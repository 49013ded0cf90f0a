//! Flights and days out, computed from the cities' table: the same request always gets the same answer.

use serde_json::{Value, json};

use super::cities::City;
use super::request::Request;

/// Cruising speed in kilometres an hour, and minutes on the ground and in the climb.
const SPEED: f64 = 800.0;
const GROUND: f64 = 30.0;

/// One sample flight.
#[derive(Debug, PartialEq)]
struct Flight {
    number: String,
    /// Minutes after midnight, local time at either end; the arrival counts from the day of departure.
    departs: i32,
    arrives: i32,
    minutes: i32,
    /// Euros for everybody together.
    fare: u32,
}

/// An artifact of the answer: a name and its parts, each of which can be streamed on its own.
pub(super) struct Piece {
    pub id: &'static str,
    pub name: String,
    pub parts: Vec<Value>,
}

/// The answer to a request: flights when two cities are named, a plan when days are.
pub(super) fn plan(request: &Request) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(from) = request.from {
        pieces.push(flights_piece(from, request));
    }
    if let Some(days) = request.days {
        let parts = days_out(request.to, days)
            .iter()
            .map(|text| json!({"text": text}))
            .collect();
        pieces.push(Piece {
            id: "itinerary",
            name: format!("{days} days in {}", request.to.name),
            parts,
        });
    }
    pieces
}

fn flights_piece(from: &City, request: &Request) -> Piece {
    let to = request.to;
    let day = request
        .date
        .map_or_else(|| "any day".to_owned(), |date| date.to_string());
    let travellers = match request.travellers {
        1 => "1 traveller".to_owned(),
        count => format!("{count} travellers"),
    };
    let distance = from.distance(to).round();
    let mut lines = vec![format!(
        "{} ({}) to {} ({}), {distance} km, {day}, {travellers}:",
        from.name, from.airport, to.name, to.airport
    )];
    let flights = flights(from, request);
    for flight in &flights {
        lines.push(format!(
            "{}  {} - {}  {} h {:02} min  {} EUR",
            flight.number,
            clock(flight.departs),
            clock(flight.arrives),
            flight.minutes / 60,
            flight.minutes % 60,
            flight.fare,
        ));
    }
    if let Some(cheapest) = flights.iter().min_by_key(|flight| flight.fare) {
        lines.push(format!(
            "Cheapest: {} at {} EUR.",
            cheapest.number, cheapest.fare
        ));
    }
    lines.push("This is a sample timetable; nothing is booked.".to_owned());
    let data: Vec<Value> = flights
        .iter()
        .map(|flight| {
            json!({
                "flight": flight.number, "from": from.airport, "to": to.airport,
                "departs": clock(flight.departs), "arrives": clock(flight.arrives),
                "minutes": flight.minutes, "fareEur": flight.fare,
            })
        })
        .collect();
    Piece {
        id: "flights",
        name: format!("Flights {} to {}", from.name, to.name),
        parts: vec![
            json!({"text": lines.join("\n")}),
            json!({"data": {"flights": data}, "mediaType": "application/json"}),
        ],
    }
}

/// Three flights of the day. The day and the route shift the timetable, so that days differ.
/// On this globe a flight takes less than 2000 minutes, so the numbers stay small.
fn flights(from: &City, request: &Request) -> Vec<Flight> {
    let to = request.to;
    let distance = from.distance(to);
    let minutes = (GROUND + distance / SPEED * 60.0).round() as i32;
    let letters = from
        .airport
        .bytes()
        .chain(to.airport.bytes())
        .map(u32::from);
    let day = request.date.map_or(0, |date| u32::from(date.ordinal()));
    let seed = letters
        .enumerate()
        .fold(day, |sum, (at, letter)| sum + letter * (at as u32 + 1));
    (0..3_u32)
        .map(|nth| {
            let departs = 360 + (seed % 12 * 15 + nth * 300) as i32;
            let factor = [1.0, 0.85, 1.2][((seed + nth) % 3) as usize];
            let each = ((35.0 + 0.09 * distance) * factor).round() as u32;
            Flight {
                number: format!("SA {}", 100 + (seed + nth * 7) % 800),
                departs,
                arrives: departs + minutes + to.ahead - from.ahead,
                minutes,
                fare: each * request.travellers,
            }
        })
        .collect()
}

/// `07:45`, with the days it is off by.
fn clock(minutes: i32) -> String {
    let time = minutes.rem_euclid(1440);
    let text = format!("{:02}:{:02}", time / 60, time % 60);
    match minutes.div_euclid(1440) {
        0 => text,
        days => format!("{text} ({days:+} day)"),
    }
}

/// One line a day: the city's sights spread evenly, and days out once they are used up.
fn days_out(city: &City, days: u32) -> Vec<String> {
    let sights = city.sights.len();
    let days = days as usize;
    // Two sights fill a day; with fewer days there are more of them in each.
    let walking = days.min(sights.div_ceil(2));
    let near = city.nearest();
    (0..days)
        .map(|day| {
            if day < walking {
                let stops = &city.sights[day * sights / walking..(day + 1) * sights / walking];
                return format!("Day {}: {}.", day + 1, stops.join(", then "));
            }
            if day == walking {
                return format!(
                    "Day {}: day trip towards {} ({} km), the nearest city on the list.",
                    day + 1,
                    near.name,
                    city.distance(near).round()
                );
            }
            let again = city.sights[day % sights];
            format!("Day {}: at leisure, with another look at {again}.", day + 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::request;
    use super::*;

    fn text(pieces: &[Piece], nth: usize) -> String {
        let parts = pieces[nth]
            .parts
            .iter()
            .filter_map(|part| part["text"].as_str());
        parts.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_flight_takes_the_time_of_its_distance_and_the_clocks_of_its_ends() {
        let request = request::read("from Berlin to Lisbon on 2027-03-14 for 2").unwrap();
        let flights = flights(request.from.unwrap(), &request);
        assert_eq!(flights.len(), 3);
        for flight in &flights {
            // 2313 km at 800 km/h and half an hour on the ground; Lisbon's clock is an hour behind.
            assert!((203..=205).contains(&flight.minutes), "{flight:?}");
            assert_eq!(flight.arrives - flight.departs, flight.minutes - 60);
            assert_eq!(flight.fare % 2, 0);
        }
        let other_day = request::read("from Berlin to Lisbon on 2027-03-15 for 2").unwrap();
        assert_ne!(super::flights(request.from.unwrap(), &other_day), flights);
    }

    #[test]
    fn every_sight_is_visited_once_before_leisure_begins() {
        for days in 1..=14 {
            let request = request::read(&format!("{days} days in Rome")).unwrap();
            let pieces = plan(&request);
            let lines = text(&pieces, 0);
            assert_eq!(lines.lines().count(), days);
            let walks: String = lines
                .lines()
                .filter(|line| !line.contains("leisure"))
                .collect();
            for sight in request.to.sights {
                assert_eq!(
                    walks.matches(sight).count(),
                    1,
                    "{days} days: {sight} in {lines}"
                );
            }
        }
    }

    #[test]
    fn a_flight_and_a_plan_are_two_pieces() {
        let request = request::read("fly from Sydney to New York and plan 2 days").unwrap();
        let pieces = plan(&request);
        assert_eq!(
            pieces.iter().map(|piece| piece.id).collect::<Vec<_>>(),
            ["flights", "itinerary"]
        );
        assert!(text(&pieces, 0).contains("nothing is booked"));
    }

    #[test]
    fn clocks_wrap_at_midnight() {
        assert_eq!(clock(0), "00:00");
        assert_eq!(clock(1439), "23:59");
        assert_eq!(clock(1441), "00:01 (+1 day)");
        assert_eq!(clock(-1), "23:59 (-1 day)");
    }
}
