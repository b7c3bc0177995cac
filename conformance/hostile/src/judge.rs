//! What happened beside one attack, and whether it may.

use std::time::Duration;

use crate::attack::{Attack, Finding};
use crate::others::Fared;

/// Reviews a second that strangers together may cause on the host.
const REVIEWS: u64 = 200;
/// Reviews beside that: bursts, and those that the others cause.
const REVIEWS_BESIDE: u64 = 400;

/// What happened.
pub struct Happened {
    /// Name of the attack.
    pub name: &'static str,
    /// Peak of our API server's resident memory, in MiB.
    pub peak: u64,
    /// Whether our API server ran to the end.
    pub survived: bool,
    /// Reviews that the host answered.
    pub reviews: u64,
    /// Within this.
    pub length: Duration,
    /// How the others fared.
    pub others: Fared,
    /// What the attack counted.
    pub told: String,
    /// The first answer that told of a fault of ours (500).
    pub fault: Option<String>,
    /// What is wrong with it, in words; nothing if it did no harm.
    pub harm: Vec<String>,
}

impl Happened {
    /// Judges: by counts, codes and bytes, never by time.
    pub fn judge(mut self, attack: &Attack, findings: Vec<Finding>) -> Happened {
        let (others, mut harm) = (&self.others, Vec::new());
        let count = |who: &str, count: &crate::others::Count| {
            let first = count.first.as_deref().unwrap_or_default();
            (count.failed > 0).then(|| format!("{} of {} {who} failed: {first}", count.failed, count.asked))
        };
        harm.extend((!self.survived).then(|| "our API server died".to_owned()));
        harm.extend(count("probes", &others.probes));
        harm.extend(count("requests of system:masters", &others.masters));
        harm.extend(count("requests of another tenant", &others.observer));
        let first = others.watch.first.as_deref().unwrap_or_default();
        harm.extend(
            (others.watch.breaks > 0)
                .then(|| format!("a watch broke {} times: {first}", others.watch.breaks)),
        );
        harm.extend(others.watch.missed.map(|beat| format!("a watch was never told of write {beat}")));
        harm.extend(others.drain.failure.as_ref().map(|why| format!("the drain: {why}")));
        let most = attack.memory;
        harm.extend((self.peak > most).then(|| format!("{} MiB of memory, more than {most}", self.peak)));
        let allowed = REVIEWS * (self.length.as_secs() + 1) + REVIEWS_BESIDE;
        let too_many = attack.strangers && self.reviews > allowed;
        harm.extend(too_many.then(|| format!("{} reviews, more than {allowed}", self.reviews)));
        harm.extend(self.fault.as_ref().map(|told| format!("answered {told}")));
        harm.extend(findings.into_iter().filter(|finding| !finding.good).map(|finding| finding.text));
        harm.extend(self.told.is_empty().then(|| "nothing was attacked".to_owned()));
        self.harm = harm;
        self
    }

    /// The slowest of what the others asked.
    pub fn slowest(&self) -> Duration {
        self.others.observer.slowest.max(self.others.masters.slowest)
    }

    /// Reviews a second.
    pub fn review_rate(&self) -> f64 {
        self.reviews as f64 / self.length.as_secs_f64().max(0.001)
    }
}
