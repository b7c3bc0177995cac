//! The Accept header as github.com/munnerz/goautoneg reads it.

/// One clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause<'a> {
    type_: &'a str,
    subtype: &'a str,
    q: f32,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Whether it takes `application/subtype`.
    pub fn matches(&self, subtype: &str) -> bool {
        match self.type_ {
            "*" => self.subtype == "*",
            "application" => self.subtype == "*" || self.subtype == subtype,
            _ => false,
        }
    }

    /// A parameter, empty if absent.
    pub fn param(&self, key: &str) -> &'a str {
        self.params.iter().rev().find(|(k, _)| *k == key).map(|(_, v)| *v).unwrap_or_default()
    }

    /// Whether a parameter is given.
    pub fn has(&self, key: &str) -> bool {
        self.params.iter().any(|(k, _)| *k == key)
    }

    fn rank(&self) -> (bool, bool) {
        (self.type_ == "*", self.subtype == "*")
    }
}

/// The clauses, best first.
pub fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(clause).collect();
    clauses.sort_by(|a, b| b.q.total_cmp(&a.q).then_with(|| a.rank().cmp(&b.rank())));
    clauses
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.trim().split(';');
    let media_type = parts.next()?;
    let (type_, subtype) = match media_type.split_once('/') {
        Some((t, s)) if !s.is_empty() && !s.contains('/') => (t.trim(), s.trim()),
        None if media_type.trim() == "*" => ("*", "*"),
        _ => return None,
    };
    let mut clause = Clause { type_, subtype, q: 1.0, params: Vec::new() };
    for (key, value) in parts.filter_map(|p| p.split_once('=')) {
        match key.trim() {
            "q" => clause.q = value.trim().parse().unwrap_or(0.0),
            key => clause.params.push((key, value.trim())),
        }
    }
    Some(clause)
}
