//! Ledger Converter: a 0.2 agent over JSON-RPC that converts amounts of money.
//!
//! Its card is at the old well-known path only, as with agents of that version. Rates are a fixed table of sample
//! values, and every answer says so.

use serde_json::{Value, json};

use super::incoming::Incoming;
use super::tasks::Tasks;
use super::v0;

/// Example of a message.
pub(super) const EXAMPLE: &str = "Convert 1250.50 USD to EUR and JPY";

/// One millionth, the unit in which amounts and rates are held.
const MICRO: i128 = 1_000_000;

struct Currency {
    code: &'static str,
    /// Its names and signs, lower case.
    names: &'static [&'static str],
    /// Value of one euro, in millionths of a unit.
    rate: i128,
    /// Digits behind the point.
    digits: u32,
}

const CURRENCIES: &[Currency] = &[
    Currency {
        code: "EUR",
        names: &["eur", "euro", "euros", "€"],
        rate: MICRO,
        digits: 2,
    },
    Currency {
        code: "USD",
        names: &["usd", "dollar", "dollars", "$"],
        rate: 1_100_000,
        digits: 2,
    },
    Currency {
        code: "GBP",
        names: &["gbp", "pound", "pounds", "sterling", "£"],
        rate: 850_000,
        digits: 2,
    },
    Currency {
        code: "CHF",
        names: &["chf", "franc", "francs"],
        rate: 950_000,
        digits: 2,
    },
    Currency {
        code: "JPY",
        names: &["jpy", "yen", "¥"],
        rate: 160_000_000,
        digits: 0,
    },
    Currency {
        code: "SEK",
        names: &["sek", "krona", "kronor"],
        rate: 11_250_000,
        digits: 2,
    },
    Currency {
        code: "CAD",
        names: &["cad"],
        rate: 1_500_000,
        digits: 2,
    },
    Currency {
        code: "AUD",
        names: &["aud"],
        rate: 1_650_000,
        digits: 2,
    },
    Currency {
        code: "INR",
        names: &["inr", "rupee", "rupees", "₹"],
        rate: 92_000_000,
        digits: 2,
    },
    Currency {
        code: "BRL",
        names: &["brl", "real", "reais"],
        rate: 6_000_000,
        digits: 2,
    },
];

/// The agent's card, for an agent reached at `base` (no slash at its end).
pub(super) fn card(base: &str) -> Value {
    json!({
        "protocolVersion": "0.2.6",
        "name": "Ledger Converter",
        "description": "Converts amounts of money between ten currencies at fixed sample rates, exact to the cent.",
        "version": "1.4.0",
        "url": format!("{base}/"),
        "preferredTransport": "JSONRPC",
        "provider": {"organization": "Sample Ledgers", "url": "https://ledgers.example.com"},
        "capabilities": {"streaming": false, "pushNotifications": false, "stateTransitionHistory": false},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "convert-currency",
            "name": "Convert currency",
            "description": "Converts an amount from one currency into one or more others.",
            "tags": ["finance", "currency", "conversion"],
            "examples": [EXAMPLE, "How much is 80 pounds in Swiss francs?"],
        }],
    })
}

/// Answers one JSON-RPC message with a message.
pub(super) fn send(incoming: Incoming, tasks: &Tasks) -> Value {
    let context = incoming
        .context_id
        .unwrap_or_else(|| tasks.number("ledger-context"));
    v0::message(
        &tasks.number("ledger-message"),
        &context,
        &convert(&incoming.text),
    )
}

/// Finds an amount and its currencies in the text and converts.
fn convert(text: &str) -> String {
    let mut amount = None;
    let mut found: Vec<&Currency> = Vec::new();
    for token in tokens(text) {
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            amount = amount.or_else(|| read_amount(&token));
        } else if let Some(currency) = currency(&token)
            && !found.iter().any(|known| known.code == currency.code)
        {
            found.push(currency);
        }
    }
    let (Some(amount), Some((from, targets))) = (amount, found.split_first()) else {
        return usage();
    };
    if targets.is_empty() {
        return usage();
    }
    let lines: Vec<String> = targets
        .iter()
        .map(|to| {
            format!(
                "{} {} = {} {} (1 {} = {} {})",
                money(amount, from.digits.max(2)),
                from.code,
                money(exchange(amount, from, to), to.digits),
                to.code,
                from.code,
                money(exchange(MICRO, from, to), 6),
                to.code,
            )
        })
        .collect();
    format!(
        "{}\nRates are fixed sample values, not market data.",
        lines.join("\n")
    )
}

fn usage() -> String {
    let codes: Vec<&str> = CURRENCIES.iter().map(|currency| currency.code).collect();
    format!(
        "Name an amount, its currency and the currencies to convert into, as in: {EXAMPLE}. \
         Known currencies: {}.",
        codes.join(", ")
    )
}

fn currency(word: &str) -> Option<&'static Currency> {
    CURRENCIES
        .iter()
        .find(|currency| currency.names.contains(&word))
}

/// Numbers, words (lower case) and currency signs, in order.
fn tokens(text: &str) -> Vec<String> {
    #[derive(PartialEq)]
    enum Kind {
        Number,
        Word,
        Sign,
    }
    let mut tokens: Vec<String> = Vec::new();
    let mut last = None;
    for c in text.chars() {
        let kind = match c {
            '0'..='9' => Some(Kind::Number),
            '.' | ',' if last == Some(Kind::Number) => Some(Kind::Number),
            c if c.is_alphabetic() => Some(Kind::Word),
            '€' | '$' | '£' | '¥' | '₹' => Some(Kind::Sign),
            _ => None,
        };
        match (&kind, tokens.last_mut()) {
            (Some(now), Some(token)) if last.as_ref() == Some(now) && *now != Kind::Sign => {
                token.extend(c.to_lowercase());
            }
            (Some(_), _) => tokens.push(c.to_lowercase().collect()),
            (None, _) => {}
        }
        last = kind;
    }
    tokens
}

/// Reads `1250.50`, `1,250.50`, `1.250,50` and `12,5` into millionths. Fifteen digits at most before the
/// point and six behind it, so that no product leaves 128 bits.
fn read_amount(token: &str) -> Option<i128> {
    let token = token.trim_end_matches(['.', ',']);
    let last = token.rfind(['.', ',']);
    let decimal = last.filter(|&at| {
        let separator = &token[at..=at];
        // One kind of separator, once or in groups of three, parts thousands when it is a comma.
        let other_before = token[..at].contains(['.', ',']) && !token[..at].contains(separator);
        let repeated = token[..at].contains(separator);
        other_before || (!repeated && (separator == "." || token.len() - at - 1 != 3))
    });
    let (whole, fraction) = match decimal {
        Some(at) => (&token[..at], &token[at + 1..]),
        None => (token, ""),
    };
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    if whole.len() > 15 || fraction.len() > 6 {
        return None;
    }
    format!("{whole}{fraction:0<6}").parse().ok()
}

fn exchange(amount: i128, from: &Currency, to: &Currency) -> i128 {
    rounded(amount * to.rate, from.rate)
}

/// Division, half away from zero; amounts are never negative.
fn rounded(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor / 2) / divisor
}

/// Millionths with so many digits behind the point.
fn money(micro: i128, digits: u32) -> String {
    let scale = 10_i128.pow(digits.min(6));
    let units = rounded(micro * scale, MICRO);
    let width = digits.min(6) as usize;
    match width {
        0 => units.to_string(),
        _ => format!("{}.{:0width$}", units / scale, units % scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (token, micro) in [
            ("100", Some(100_000_000)),
            ("1250.50", Some(1_250_500_000)),
            ("1,250.50", Some(1_250_500_000)),
            ("1.250,50", Some(1_250_500_000)),
            ("1,250", Some(1_250_000_000)),
            ("1,250,000.", Some(1_250_000_000_000)),
            ("12,5", Some(12_500_000)),
            ("1.125", Some(1_125_000)),
            ("999999999999999", Some(999_999_999_999_999_000_000)),
            ("1000000000000000", None),
            ("0.1234567", None),
        ] {
            assert_eq!(read_amount(token), micro, "{token}");
        }
    }

    #[test]
    fn money_is_converted_through_the_table_and_rounded_at_the_cent() {
        let first = |text: &str| convert(text).lines().next().map(str::to_owned);
        // 1250.50 / 1.10 = 1136.818…; 100 yen are 0.625 euros, rounded up.
        assert_eq!(
            first("Convert 1250.50 USD to EUR").as_deref(),
            Some("1250.50 USD = 1136.82 EUR (1 USD = 0.909091 EUR)")
        );
        assert_eq!(
            first("¥100 in euros?").as_deref(),
            Some("100.00 JPY = 0.63 EUR (1 JPY = 0.006250 EUR)")
        );
        assert_eq!(
            first("how much is 20€ in yen").as_deref(),
            Some("20.00 EUR = 3200 JPY (1 EUR = 160.000000 JPY)")
        );
        assert_eq!(
            first("80gbp into chf, please").as_deref(),
            Some("80.00 GBP = 89.41 CHF (1 GBP = 1.117647 CHF)")
        );
    }

    #[test]
    fn several_targets_give_several_lines_and_a_note() {
        let answer = convert(EXAMPLE);
        let lines: Vec<&str> = answer.lines().collect();
        assert_eq!(lines.len(), 3, "{answer}");
        assert!(lines[1].starts_with("1250.50 USD = 181891 JPY"), "{answer}");
        assert!(lines[2].contains("sample values"), "{answer}");
    }

    #[test]
    fn what_cannot_be_converted_is_explained() {
        for text in [
            "",
            "hello",
            "100 USD",
            "USD to EUR",
            "100 USD to USD",
            "100 doubloons to EUR",
        ] {
            assert!(
                convert(text).contains("Known currencies: EUR, USD"),
                "{text}"
            );
        }
    }
}
