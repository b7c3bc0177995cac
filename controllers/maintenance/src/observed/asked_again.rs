//! How often a pod was asked for again, because its request was deleted or withdrawn by others: kept in the
//! request that is made anew, so that a restart does not forget it.

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::time::{format_seconds, truncate_to_seconds};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Annotation of a request: [`AskedAgain`] as a JSON object. Anybody who may write the request may write it: it is for
/// people, and decides nothing.
pub(crate) const ASKED_AGAIN_ANNOTATION: &str = "nodemaintenance.k8s.io/asked-again";
/// The count ends here; an annotation with a higher one is ignored.
const MAX_COUNT: u32 = 1_000;
/// Longest value that is read, in bytes.
const MAX_VALUE_BYTES: usize = 128;

/// How often a pod was asked for again, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedAgain {
    /// How many requests for the pod followed the first known one.
    times: u32,
    /// When the first known request was made.
    first_time: Timestamp,
}

impl AskedAgain {
    /// Reads the annotation of a request. None if it is missing or cannot be true.
    pub(crate) fn of(request: &EvictionRequest) -> Option<Self> {
        let value = request.metadata.annotations.get(ASKED_AGAIN_ANNOTATION)?;
        let value: Value = serde_json::from_str(Some(value).filter(|v| v.len() <= MAX_VALUE_BYTES)?).ok()?;
        let times = u32::try_from(value["times"].as_u64()?).ok()?;
        let read = Self { times, first_time: value["firstTime"].as_str()?.parse().ok()? };
        let is_possible = (1..=MAX_COUNT).contains(&read.times)
            && request.metadata.creation_timestamp.is_none_or(|made| read.first_time <= made);
        is_possible.then_some(read)
    }

    /// The annotation of the request that follows a lost one.
    pub(crate) fn after(lost: &EvictionRequest) -> Option<Self> {
        let first = || {
            let made = lost.metadata.creation_timestamp?;
            Some(Self { times: 1, first_time: truncate_to_seconds(made) })
        };
        Self::of(lost).map(Self::once_more).or_else(first)
    }

    pub(crate) fn once_more(self) -> Self {
        Self { times: self.times.saturating_add(1).min(MAX_COUNT), ..self }
    }

    /// The annotation's value.
    pub(crate) fn value(self) -> String {
        json!({ "times": self.times, "firstTime": format_seconds(self.first_time) }).to_string()
    }

    /// As in `asked again 2 times, first at 2026-01-01T12:00:00Z`.
    pub(crate) fn words(self) -> String {
        let times = match self.times {
            1 => "once".to_owned(),
            MAX_COUNT => format!("at least {MAX_COUNT} times"),
            times => format!("{times} times"),
        };
        format!("asked again {times}, first at {}", format_seconds(self.first_time))
    }
}
