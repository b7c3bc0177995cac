//! Symbols for single values.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

use super::facts::RunFacts;
use crate::run::RunRecord;
use crate::target::{TargetApi, TargetKind};

/// The symbols of one run.
pub struct Symbols<'a> {
    /// Values of the run.
    pub facts: &'a RunFacts,
    /// The run.
    pub record: &'a RunRecord,
    /// The kind.
    pub target: &'a TargetKind,
    /// Where this server has it.
    pub api: TargetApi,
}

impl Symbols<'_> {
    /// Returns the symbol of an object's resourceVersion: its rank.
    pub fn revision(&self, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(revision) if revision > 0 => match self.facts.revisions.iter().position(|r| *r == revision) {
                Some(rank) => format!("<revision {rank}>"),
                None => format!("<revision after {}>", self.covered(revision)),
            },
            _ => text.to_owned(),
        }
    }

    /// Returns the symbol of the resourceVersion of a list, table or bookmark: how many of the objects' versions it
    /// covers.
    pub fn state(&self, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(revision) if revision > 0 => format!("<state with {} revisions>", self.covered(revision)),
            _ => text.to_owned(),
        }
    }

    fn covered(&self, revision: u64) -> usize {
        self.facts.revisions.range(..=revision).count()
    }

    /// Returns the symbol of a time that the server's clock set; None for any other text.
    pub fn time(&self, text: &str) -> Option<String> {
        if text.len() < 20 || !text.ends_with('Z') {
            return None;
        }
        let second = text.parse::<Timestamp>().ok()?.as_second();
        let format = if text.len() > 20 { " with a fraction" } else { "" };
        self.epoch(second).map(|epoch| format!("<time {epoch}{format}>"))
    }

    /// Returns the index of the stretch in which a second lies.
    pub fn epoch(&self, second: i64) -> Option<usize> {
        self.record.epochs.iter().position(|(first, last)| (*first..=*last).contains(&second))
    }

    /// Returns the symbol of a continue token: its version, and the state that it belongs to. The key at which it
    /// continues is not compared, because only the server itself reads it.
    pub fn token(&self, token: &str) -> String {
        let said =
            URL_SAFE_NO_PAD.decode(token).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let Some(said) = said else { return token.to_owned() };
        let revision = match said["rv"].as_i64() {
            Some(revision) if revision > 0 => self.state(&revision.to_string()),
            other => format!("{other:?}"),
        };
        format!("<continue {} at {revision}>", said["v"])
    }
}
