//! Recipe Scaler: a 0.3 agent over JSON-RPC that rewrites a list of ingredients for another number of
//! servings, in exact fractions.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::incoming::Incoming;
use super::tasks::Tasks;
use super::v0;

/// Example of a message.
pub(super) const EXAMPLE: &str = "Scale from 4 to 6 servings: 200 g flour, 3 eggs, 1 1/2 tsp salt";

/// Most ingredients that are read.
const INGREDIENTS: usize = 100;

/// The agent's card, for an agent reached at `base` (no slash at its end).
pub(super) fn card(base: &str) -> Value {
    json!({
        "protocolVersion": "0.3.0",
        "name": "Recipe Scaler",
        "description": "Rewrites a recipe's ingredients for another number of servings, with kitchen fractions.",
        "version": "0.9.2",
        "url": format!("{base}/a2a"),
        "preferredTransport": "JSONRPC",
        "provider": {"organization": "Sample Kitchens", "url": "https://kitchens.example.com"},
        "capabilities": {"streaming": false, "pushNotifications": false, "stateTransitionHistory": false},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "scale-recipe",
            "name": "Scale a recipe",
            "description": "Multiplies every quantity of a list of ingredients, from one number of servings to another.",
            "tags": ["cooking", "recipes", "measures"],
            "examples": [EXAMPLE, "Double: 1/2 cup sugar, 2 eggs"],
        }],
    })
}

/// Answers one JSON-RPC message: a completed task with the new list, or a message that asks for one.
pub(super) fn send(incoming: Incoming, tasks: &Tasks, now: OffsetDateTime) -> Value {
    let context = incoming
        .context_id
        .unwrap_or_else(|| tasks.number("recipe-context"));
    let Some(scaled) = scale(&incoming.text) else {
        let text = format!(
            "Name the servings and list the ingredients behind a colon, as in: {EXAMPLE}. \
             Double, triple, halve and x1.5 work as well."
        );
        return v0::message(&tasks.number("recipe-message"), &context, &text);
    };
    let task = json!({
        "kind": "task",
        "id": tasks.number("recipe-task"),
        "contextId": context,
        "status": {"state": "completed", "timestamp": now.format(&Rfc3339).unwrap_or_default()},
        "artifacts": [{
            "artifactId": "ingredients",
            "name": "Ingredients",
            "parts": [{"kind": "text", "text": scaled}],
        }],
    });
    tasks.keep(task.clone());
    task
}

/// A fraction in lowest terms, both parts positive and below 10^12, so that no product overflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fraction {
    over: u64,
    under: u64,
}

const FRACTION_LIMIT: u64 = 1_000_000_000_000;

impl Fraction {
    fn new(over: u128, under: u128) -> Option<Self> {
        let (mut a, mut b) = (over, under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let over = u64::try_from(over.checked_div(a)?).ok()?;
        let under = u64::try_from(under / a).ok()?;
        let fits = (1..FRACTION_LIMIT).contains(&over) && (1..FRACTION_LIMIT).contains(&under);
        fits.then_some(Self { over, under })
    }

    fn times(self, other: Self) -> Option<Self> {
        Self::new(
            u128::from(self.over) * u128::from(other.over),
            u128::from(self.under) * u128::from(other.under),
        )
    }

    fn plus(self, other: Self) -> Option<Self> {
        let (a, b) = (u128::from(self.over), u128::from(self.under));
        let (c, d) = (u128::from(other.over), u128::from(other.under));
        Self::new(a * d + c * b, b * d)
    }
}

impl std::fmt::Display for Fraction {
    /// Kitchen fractions as such, anything finer with two decimals.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.over / self.under, self.over % self.under);
        match (whole, rest) {
            (whole, 0) => write!(f, "{whole}"),
            (0, rest) if self.under <= 8 => write!(f, "{rest}/{}", self.under),
            (whole, rest) if self.under <= 8 => write!(f, "{whole} {rest}/{}", self.under),
            _ => {
                let cents = (u128::from(self.over) * 100).div_ceil(u128::from(self.under));
                write!(f, "{}.{:02}", cents / 100, cents % 100)
            }
        }
    }
}

/// Scales the list after the first colon or line break by the factor before it.
fn scale(text: &str) -> Option<String> {
    let (head, list) = text.split_once([':', '\n'])?;
    let factor = factor(head)?;
    let lines: Vec<String> = list
        .split([',', ';', '\n'])
        .map(|item| item.trim().trim_start_matches(['-', '*', '•']).trim())
        .filter(|item| !item.is_empty())
        .take(INGREDIENTS)
        .map(|item| scaled_item(item, factor))
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(lines.join("\n"))
}

/// `from 4 to 6`, `x1.5`, `by 2/3`, or a word.
fn factor(head: &str) -> Option<Fraction> {
    let head = head.to_lowercase();
    let words: Vec<&str> = head
        .split(|c: char| c.is_whitespace() || c == ',')
        .collect();
    for (word, over, under) in [
        ("double", 2, 1),
        ("twice", 2, 1),
        ("triple", 3, 1),
        ("halve", 1, 2),
        ("half", 1, 2),
    ] {
        if words.contains(&word) {
            return Fraction::new(over, under);
        }
    }
    // A number that cannot be read, such as a zero, must not be skipped.
    let numbers: Option<Vec<Fraction>> = words
        .iter()
        .map(|word| word.trim_start_matches(['x', '×']))
        .filter(|word| word.starts_with(|c: char| c.is_numeric()))
        .map(number)
        .collect();
    match numbers?[..] {
        [times] => Some(times),
        [from, to] => to.times(Fraction {
            over: from.under,
            under: from.over,
        }),
        _ => None,
    }
}

/// An ingredient with its quantity multiplied. Without a quantity it stays as it is: salt to taste.
fn scaled_item(item: &str, factor: Fraction) -> String {
    let (first, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
    let Some(whole) = number(first) else {
        return item.to_owned();
    };
    // `1 1/2` is one number in two words.
    let (second, behind) = rest
        .trim_start()
        .split_once(char::is_whitespace)
        .unwrap_or((rest.trim(), ""));
    let mixed = number(second).filter(|part| part.under > 1 && whole.under == 1);
    let (quantity, rest) = match mixed.and_then(|part| whole.plus(part)) {
        Some(sum) => (sum, behind),
        None => (whole, rest),
    };
    match quantity.times(factor) {
        Some(scaled) => format!("{scaled} {}", rest.trim()).trim().to_owned(),
        None => format!("{item} (too fine or too large to scale)"),
    }
}

/// `3`, `1.5`, `2/3`, `½`.
fn number(word: &str) -> Option<Fraction> {
    let short =
        |digits: &str| digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    match word {
        "½" => return Fraction::new(1, 2),
        "¼" => return Fraction::new(1, 4),
        "¾" => return Fraction::new(3, 4),
        "⅓" => return Fraction::new(1, 3),
        "⅔" => return Fraction::new(2, 3),
        _ => {}
    }
    if let Some((over, under)) = word.split_once('/') {
        let whole = short(over) && short(under);
        return Fraction::new(over.parse().ok()?, under.parse().ok()?).filter(|_| whole);
    }
    let (whole, decimals) = word.split_once('.').unwrap_or((word, ""));
    if !short(whole) || !short(decimals) || whole.is_empty() {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(decimals.len()).ok()?);
    Fraction::new(format!("{whole}{decimals}").parse().ok()?, scale)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn quantities_are_multiplied_exactly() {
        assert_eq!(
            scale(EXAMPLE).unwrap(),
            "300 g flour\n4 1/2 eggs\n2 1/4 tsp salt"
        );
        assert_eq!(
            scale("Double: 1/2 cup sugar, ½ lemon; 2 eggs").unwrap(),
            "1 cup sugar\n1 lemon\n4 eggs"
        );
        assert_eq!(
            scale("from 6 to 4\n- 1 kg rice\n- salt to taste").unwrap(),
            "2/3 kg rice\nsalt to taste"
        );
        assert_eq!(scale("x1.5: 1 egg").unwrap(), "1 1/2 egg");
        assert_eq!(
            scale("from 7 to 9: 100 g butter").unwrap(),
            "128 4/7 g butter"
        );
        assert_eq!(scale("from 11 to 3: 1 l milk").unwrap(), "0.28 l milk");
    }

    #[test]
    fn what_is_no_request_to_scale_is_not_guessed_at() {
        for text in [
            "",
            "hello",
            "200 g flour",
            "from 4 to 6:",
            "from 0 to 6: 1 egg",
            "from 4 to 0: 1 egg",
            "1 2 3: 1 egg",
        ] {
            assert_eq!(scale(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_at_the_bound_do_not_overflow() {
        assert_eq!(number("1000000"), None);
        assert_eq!(number("1/0"), None);
        let largest = number("999999").unwrap();
        let answer = scale("by 999999.999999: 999999.999999 g salt").unwrap();
        assert!(answer.contains("too fine or too large"), "{answer}");
        assert_eq!(largest.times(largest).unwrap().to_string(), "999998000001");
        let many = format!("double: {}", "1 egg, ".repeat(INGREDIENTS + 1));
        assert_eq!(scale(&many).unwrap().lines().count(), INGREDIENTS);
    }
}
