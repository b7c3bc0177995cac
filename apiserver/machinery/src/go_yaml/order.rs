//! The order of keys (go-yaml sorter.go): numbers within texts compare by value, and letters sort after all other
//! characters.

use std::cmp::Ordering;

/// Compares two keys.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for at in 0..a.len().min(b.len()) {
        if a[at] != b[at] {
            return differ(&a, &b, at);
        }
    }
    a.len().cmp(&b.len())
}

fn differ(a: &[char], b: &[char], at: usize) -> Ordering {
    match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
        (true, true) => return a[at].cmp(&b[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // After a significant digit, a zero is part of a number and not a leading zero.
    let within = (a[at] == '0' || b[at] == '0')
        && a[..at].iter().rev().take_while(|c| c.is_numeric()).any(|c| *c != '0');
    let start = u64::from(within);
    let (of_a, of_b) = (number(&a[at..], start), number(&b[at..], start));
    of_a.0.cmp(&of_b.0).then(of_a.1.cmp(&of_b.1)).then(a[at].cmp(&b[at]))
}

/// Returns the number that begins here, continued from `start`, and its length.
fn number(text: &[char], start: u64) -> (u64, usize) {
    let digits = text.iter().take_while(|c| c.is_ascii_digit());
    let add = |(value, length): (u64, usize), c: &char| {
        (value.wrapping_mul(10).wrapping_add(u64::from(c.to_digit(10).unwrap_or_default())), length + 1)
    };
    digits.fold((start, 0), add)
}
