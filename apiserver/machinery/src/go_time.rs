//! Checks times as Go's time.Parse does for the two layouts of metav1, with its error messages.

use crate::quote::go_quote;

/// The layout of metav1.Time, which also accepts a fraction after the seconds.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// The layout of metav1.MicroTime: six digits of fraction.
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Returns Go's error for a text that is not a time; `None` if it is one.
pub fn refusal(text: &str, micro: bool) -> Option<String> {
    let mut parser = TimeParser { rest: text, micro };
    let out_of_range = match parser.parse() {
        Ok(()) => return None,
        Err(Wrong::Range(what)) => Some(what),
        Err(Wrong::Element(element)) => {
            let layout = if micro { MICROS } else { SECONDS };
            let (text, rest) = (go_quote(text), go_quote(parser.rest));
            return Some(format!(
                "parsing time {text} as \"{layout}\": cannot parse {rest} as \"{element}\""
            ));
        }
    };
    out_of_range.map(|what| format!("parsing time {}: {what} out of range", go_quote(text)))
}

enum Wrong {
    /// The rest of the text does not begin with this element of the layout.
    Element(&'static str),
    /// A number outside its range.
    Range(&'static str),
}

struct TimeParser<'a> {
    rest: &'a str,
    micro: bool,
}

impl TimeParser<'_> {
    fn parse(&mut self) -> Result<(), Wrong> {
        let year = self.number(4, "2006")?;
        self.prefix("-")?;
        let month = self.number(2, "01")?;
        if !(1..=12).contains(&month) {
            return Err(Wrong::Range("month"));
        }
        self.prefix("-")?;
        let day = self.number(2, "02")?;
        self.prefix("T")?;
        self.below(24, "15", "hour")?;
        self.prefix(":")?;
        self.below(60, "04", "minute")?;
        self.prefix(":")?;
        self.below(60, "05", "second")?;
        self.fraction()?;
        self.zone()?;
        if !self.rest.is_empty() {
            return Err(Wrong::Element(""));
        }
        let days = match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if (1..=days).contains(&day) { Ok(()) } else { Err(Wrong::Range("day")) }
    }

    fn number(&mut self, digits: usize, element: &'static str) -> Result<u32, Wrong> {
        let text = self.rest.get(..digits).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let number = text.and_then(|text| text.parse().ok()).ok_or(Wrong::Element(element))?;
        self.rest = &self.rest[digits..];
        Ok(number)
    }

    fn below(&mut self, limit: u32, element: &'static str, what: &'static str) -> Result<(), Wrong> {
        if self.number(2, element)? < limit { Ok(()) } else { Err(Wrong::Range(what)) }
    }

    fn prefix(&mut self, prefix: &'static str) -> Result<(), Wrong> {
        self.rest = self.rest.strip_prefix(prefix).ok_or(Wrong::Element(prefix))?;
        Ok(())
    }

    fn fraction(&mut self) -> Result<(), Wrong> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        if self.micro {
            let after = self.rest.strip_prefix('.').filter(|after| digits(after) >= 6);
            self.rest = &after.ok_or(Wrong::Element(".000000"))?[6..];
        } else if let Some(after) = self.rest.strip_prefix(['.', ',']).filter(|after| digits(after) > 0) {
            self.rest = &after[digits(after)..];
        }
        Ok(())
    }

    fn zone(&mut self) -> Result<(), Wrong> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(());
        }
        let bytes = self.rest.as_bytes();
        let number = |at: usize| -> Option<u32> { self.rest.get(at..at + 2)?.parse().ok() };
        let signed = matches!(bytes.first(), Some(b'+' | b'-')) && bytes.get(3) == Some(&b':');
        match (signed, number(1), number(4)) {
            (true, Some(hours), Some(minutes)) if hours <= 24 && minutes < 60 => {
                self.rest = &self.rest[6..];
                Ok(())
            }
            _ => Err(Wrong::Element("Z07:00")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_by_their_layout() {
        for time in ["2020-01-02T03:04:05Z", "2020-02-29T03:04:05.1+01:00", "2020-01-02T03:04:05.123456789Z"]
        {
            assert_eq!(refusal(time, false), None, "{time}");
        }
        assert_eq!(refusal("2020-01-02T03:04:05.123456-07:30", true), None);
    }

    /// The messages of time.Parse in Go 1.26.
    #[test]
    fn the_words_are_those_of_go() {
        let micro = |text: &str| refusal(text, true).unwrap_or_default();
        let why = "parsing time \"2020-01-02T03:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"";
        assert_eq!(micro("2020-01-02T03:04:05Z"), why);
        assert!(micro("2020-01-02T03:04:05.1234567Z").ends_with("cannot parse \"7Z\" as \"Z07:00\""));
        assert!(micro("2020-01-02 03:04:05Z").ends_with("cannot parse \" 03:04:05Z\" as \"T\""));
        assert!(micro("").ends_with("cannot parse \"\" as \"2006\""));
        let seconds = |text: &str| refusal(text, false).unwrap_or_default();
        assert_eq!(
            seconds("2020-13-02T03:04:05Z"),
            "parsing time \"2020-13-02T03:04:05Z\": month out of range"
        );
        assert_eq!(
            seconds("2023-02-29T03:04:05Z"),
            "parsing time \"2023-02-29T03:04:05Z\": day out of range"
        );
    }
}
