//! How long a chip forwards by flows that nobody looks after, as options say it.

use std::time::Duration;

/// A driver gives a sign each second, and the next one when that is answered, or is not within 5 s; what is shorter than
/// this would end for one that is only late.
const SHORTEST_S: u64 = 10;
/// What is longer is a mistake, or `never`: a year.
const LONGEST_S: u64 = 365 * 24 * 3600;

/// Seconds; `None`: it has no end.
///
/// # Errors
/// One line.
pub fn parse(text: &str) -> Result<Option<Duration>, String> {
    match text.parse() {
        _ if text == "never" => Ok(None),
        Ok(0) => Ok(None),
        Ok(s @ SHORTEST_S..=LONGEST_S) => Ok(Some(Duration::from_secs(s))),
        _ => Err(format!(
            "{text} is no deadline: wanted {SHORTEST_S} to {LONGEST_S} seconds, 0 or never"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_or_never() {
        for none in ["0", "never"] {
            assert_eq!(parse(none), Ok(None));
        }
        for s in [10, 300, LONGEST_S] {
            assert_eq!(parse(&s.to_string()), Ok(Some(Duration::from_secs(s))));
        }
        let longer = (LONGEST_S + 1).to_string();
        for bad in ["", "1", "9", "-1", "5s", "Never", "10.5", &longer] {
            let e = parse(bad).unwrap_err();
            assert!(e.contains("is no deadline: wanted 10 to"), "{e}");
        }
    }
}
