//! The places the trip planner knows.

/// A city with what a trip to it needs.
#[derive(Debug, PartialEq)]
pub(super) struct City {
    /// Its name.
    pub name: &'static str,
    /// Its airport.
    pub airport: &'static str,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Minutes its winter clock is ahead of UTC.
    pub ahead: i32,
    /// Sights, in an order that makes a walk.
    pub sights: [&'static str; 6],
}

/// Every known city, by name.
pub(super) const CITIES: &[City] = &[
    City {
        name: "Amsterdam",
        airport: "AMS",
        latitude: 52.37,
        longitude: 4.90,
        ahead: 60,
        sights: [
            "Rijksmuseum",
            "Van Gogh Museum",
            "Vondelpark",
            "Jordaan canals",
            "Anne Frank House",
            "NDSM wharf",
        ],
    },
    City {
        name: "Berlin",
        airport: "BER",
        latitude: 52.52,
        longitude: 13.40,
        ahead: 60,
        sights: [
            "Brandenburg Gate",
            "Reichstag dome",
            "Museum Island",
            "Hackescher Markt",
            "East Side Gallery",
            "Tempelhof field",
        ],
    },
    City {
        name: "Cape Town",
        airport: "CPT",
        latitude: -33.92,
        longitude: 18.42,
        ahead: 120,
        sights: [
            "Company's Garden",
            "Bo-Kaap",
            "V&A Waterfront",
            "Table Mountain",
            "Kirstenbosch",
            "Cape Point",
        ],
    },
    City {
        name: "Istanbul",
        airport: "IST",
        latitude: 41.01,
        longitude: 28.98,
        ahead: 180,
        sights: [
            "Hagia Sophia",
            "Basilica Cistern",
            "Topkapi Palace",
            "Grand Bazaar",
            "Galata Tower",
            "Bosphorus ferry",
        ],
    },
    City {
        name: "Lisbon",
        airport: "LIS",
        latitude: 38.72,
        longitude: -9.14,
        ahead: 0,
        sights: [
            "Alfama",
            "Castle of São Jorge",
            "Praça do Comércio",
            "Tram 28",
            "Belém Tower",
            "Jerónimos Monastery",
        ],
    },
    City {
        name: "London",
        airport: "LHR",
        latitude: 51.51,
        longitude: -0.13,
        ahead: 0,
        sights: [
            "British Museum",
            "Covent Garden",
            "Westminster Abbey",
            "South Bank",
            "Borough Market",
            "Greenwich",
        ],
    },
    City {
        name: "New York",
        airport: "JFK",
        latitude: 40.71,
        longitude: -74.01,
        ahead: -300,
        sights: [
            "Central Park",
            "Metropolitan Museum",
            "High Line",
            "Grand Central",
            "Brooklyn Bridge",
            "Staten Island ferry",
        ],
    },
    City {
        name: "Paris",
        airport: "CDG",
        latitude: 48.86,
        longitude: 2.35,
        ahead: 60,
        sights: [
            "Louvre",
            "Sainte-Chapelle",
            "Le Marais",
            "Musée d'Orsay",
            "Eiffel Tower",
            "Montmartre",
        ],
    },
    City {
        name: "Rome",
        airport: "FCO",
        latitude: 41.90,
        longitude: 12.50,
        ahead: 60,
        sights: [
            "Colosseum",
            "Roman Forum",
            "Pantheon",
            "Piazza Navona",
            "Vatican Museums",
            "Trastevere",
        ],
    },
    City {
        name: "Singapore",
        airport: "SIN",
        latitude: 1.35,
        longitude: 103.82,
        ahead: 480,
        sights: [
            "Marina Bay",
            "Gardens by the Bay",
            "Chinatown",
            "Little India",
            "Botanic Gardens",
            "Pulau Ubin",
        ],
    },
    City {
        name: "Sydney",
        airport: "SYD",
        latitude: -33.87,
        longitude: 151.21,
        ahead: 600,
        sights: [
            "Opera House",
            "Royal Botanic Garden",
            "The Rocks",
            "Harbour Bridge",
            "Manly ferry",
            "Bondi to Coogee walk",
        ],
    },
    City {
        name: "Tokyo",
        airport: "HND",
        latitude: 35.68,
        longitude: 139.69,
        ahead: 540,
        sights: [
            "Senso-ji",
            "Ueno Park",
            "Meiji Shrine",
            "Shibuya Crossing",
            "Shinjuku Gyoen",
            "Toyosu Market",
        ],
    },
];

/// The known cities a text names, in the order it names them, each once.
pub(super) fn named_in(text: &str) -> Vec<(usize, &'static City)> {
    let text = text.to_lowercase();
    let mut named: Vec<(usize, &City)> = CITIES
        .iter()
        .filter_map(|city| Some((word_at(&text, &city.name.to_lowercase())?, city)))
        .collect();
    named.sort_by_key(|&(at, _)| at);
    named
}

/// Where `word` stands in `text` on its own, not inside another word.
fn word_at(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let behind = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(char::is_alphanumeric)
    })
}

impl City {
    /// Kilometres along the great circle to another city, on a sphere of 6371 km.
    pub fn distance(&self, other: &Self) -> f64 {
        let (a, b) = (self.latitude.to_radians(), other.latitude.to_radians());
        let across = (other.longitude - self.longitude).to_radians();
        let half = ((b - a) / 2.0).sin().powi(2) + a.cos() * b.cos() * (across / 2.0).sin().powi(2);
        2.0 * 6371.0 * half.sqrt().min(1.0).asin()
    }

    /// The nearest other known city, for a day out.
    pub fn nearest(&self) -> &'static Self {
        CITIES
            .iter()
            .filter(|city| *city != self)
            .min_by(|a, b| self.distance(a).total_cmp(&self.distance(b)))
            .unwrap_or(&CITIES[0])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn city(name: &str) -> &'static City {
        CITIES.iter().find(|city| city.name == name).unwrap()
    }

    #[test]
    fn distances_are_those_of_the_globe() {
        for (from, to, kilometres) in [
            ("Berlin", "Lisbon", 2313.0),
            ("London", "New York", 5570.0),
            ("Sydney", "Tokyo", 7823.0),
        ] {
            let seen = city(from).distance(city(to));
            assert!((seen - kilometres).abs() < 20.0, "{from} {to}: {seen}");
        }
        assert_eq!(city("Paris").nearest().name, "London");
    }

    #[test]
    fn cities_are_found_as_whole_words_in_any_case() {
        let names = |text| {
            named_in(text)
                .into_iter()
                .map(|(_, city)| city.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("to LISBON from new york, then Lisbon"),
            ["Lisbon", "New York"]
        );
        assert_eq!(
            names("an aromertic Parisian in Romedale"),
            Vec::<&str>::new()
        );
    }
}
