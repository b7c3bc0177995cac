//! The result of one attack, and whether it did harm.

use std::time::Duration;

use drydock_testkit::finding::Finding;

use crate::attack::Attack;
use crate::bystanders::BystanderResults;
use crate::context::AttackSize;

/// An answer that takes longer is late: judged in the long form alone, on a machine that does nothing else.
const LATE: Duration = Duration::from_secs(30);
/// Reviews beside those that an attack may cause: bursts, and those that bystanders cause.
const REVIEWS_BESIDE: u64 = 400;

/// The result of one attack.
pub struct AttackResult {
    /// Name of the attack.
    pub name: &'static str,
    /// Peak of our API server's resident memory, in MiB.
    pub peak: u64,
    /// Whether our API server ran to the end.
    pub survived: bool,
    /// Panics that our API server logged.
    pub panics: usize,
    /// Reviews that the host answered.
    pub reviews: u64,
    /// How long the attack took.
    pub length: Duration,
    /// What the bystanders got.
    pub bystanders: BystanderResults,
    /// What the attack counted.
    pub summary: String,
    /// The first answer with a fault of ours (500).
    pub fault: Option<String>,
    /// The harm that it did, in words; empty if none.
    pub harm: Vec<String>,
}

impl AttackResult {
    /// Judges by counts, codes and bytes; in the long form by the time of answers too.
    pub fn judge(mut self, attack: &Attack, size: AttackSize, findings: Vec<Finding>) -> AttackResult {
        let (bystanders, mut harm) = (&self.bystanders, Vec::new());
        let count = |who: &str, count: &crate::bystanders::RequestCount| {
            let first = count.first.as_deref().unwrap_or_default();
            (count.failed > 0).then(|| format!("{} of {} {who} failed: {first}", count.failed, count.asked))
        };
        harm.extend((!self.survived).then(|| "our API server died".to_owned()));
        harm.extend(count("probes", &bystanders.probes));
        harm.extend(count("requests of system:masters", &bystanders.system_masters));
        harm.extend(count("requests of another tenant", &bystanders.other_tenant));
        for (who, watched) in [("a watch", &bystanders.watch), ("a gRPC stream", &bystanders.stream)] {
            let first = watched.first.as_deref().unwrap_or_default();
            harm.extend(
                (watched.breaks > 0).then(|| format!("{who} broke {} times: {first}", watched.breaks)),
            );
            // A slow machine is not ready for a while, too.
            let refused = Some(watched.not_ready).filter(|times| size == AttackSize::Long && *times > 0);
            harm.extend(refused.map(|times| format!("{who} was refused {times} times: {first}")));
            harm.extend(watched.missed.map(|beat| format!("{who} never delivered write {beat}")));
        }
        harm.extend(
            (self.panics > 0).then(|| format!("{} panics in the log of our API server", self.panics)),
        );
        harm.extend(bystanders.drain.failure.as_ref().map(|why| format!("the drain: {why}")));
        let most = attack.memory;
        harm.extend((self.peak > most).then(|| format!("{} MiB of memory, more than {most}", self.peak)));
        let allowed = attack.reviews.map(|rate| rate * (self.length.as_secs() + 1) + REVIEWS_BESIDE);
        let exceeded = allowed.filter(|allowed| self.reviews > *allowed);
        harm.extend(exceeded.map(|allowed| format!("{} reviews, more than {allowed}", self.reviews)));
        let slowest = self.slowest().max(bystanders.probes.slowest);
        let is_late = size == AttackSize::Long && slowest > LATE;
        harm.extend(
            is_late.then(|| format!("a bystander was answered after {:.1} s", slowest.as_secs_f64())),
        );
        harm.extend(self.fault.as_ref().map(|fault| format!("answered {fault}")));
        harm.extend(findings.into_iter().filter(|finding| !finding.good).map(|finding| finding.what));
        harm.extend(self.summary.is_empty().then(|| "nothing was attacked".to_owned()));
        self.harm = harm;
        self
    }

    /// The slowest answer to a bystander.
    pub fn slowest(&self) -> Duration {
        self.bystanders.other_tenant.slowest.max(self.bystanders.system_masters.slowest)
    }

    /// Reviews a second.
    pub fn review_rate(&self) -> f64 {
        self.reviews as f64 / self.length.as_secs_f64().max(0.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::Attack;
    use crate::bystanders::{RequestCount, WatchHealth};

    const ATTACK: Attack = Attack::new("a", "does this", |_| Box::pin(async { Ok(Vec::new()) }));

    fn result() -> AttackResult {
        AttackResult {
            name: "a",
            peak: 100,
            survived: true,
            panics: 0,
            reviews: 10_000,
            length: Duration::from_secs(4),
            bystanders: BystanderResults::default(),
            summary: "200x1".into(),
            fault: None,
            harm: Vec::new(),
        }
    }

    fn harm(result: AttackResult, attack: &Attack) -> Vec<String> {
        result.judge(attack, AttackSize::Short, vec![Finding::new(true, "all is well")]).harm
    }

    #[test]
    fn slow_answers_and_reviews_that_are_not_judged_are_no_harm() {
        let slow = RequestCount { asked: 1, slowest: Duration::from_secs(100), ..RequestCount::default() };
        let bystanders = BystanderResults { probes: slow, ..BystanderResults::default() };
        let result = || AttackResult { bystanders: bystanders.clone(), ..result() };
        assert_eq!(harm(result(), &ATTACK), Vec::<String>::new());
        let long = result().judge(&ATTACK, AttackSize::Long, Vec::new());
        assert_eq!(long.harm, ["a bystander was answered after 100.0 s"]);
    }

    #[test]
    fn a_stream_that_is_refused_for_a_while_is_harm_in_the_long_form() {
        let stream = WatchHealth { not_ready: 2, ..WatchHealth::default() };
        let bystanders = BystanderResults { stream, ..BystanderResults::default() };
        let result = || AttackResult { bystanders: bystanders.clone(), ..result() };
        assert_eq!(harm(result(), &ATTACK), Vec::<String>::new());
        let long = result().judge(&ATTACK, AttackSize::Long, Vec::new());
        assert_eq!(long.harm, ["a gRPC stream was refused 2 times: "]);
    }

    #[test]
    fn each_harm_is_reported() {
        let failed =
            RequestCount { asked: 2, failed: 1, first: Some("429".into()), ..RequestCount::default() };
        let with = |bystanders| AttackResult { bystanders, ..result() };
        let broken_stream = WatchHealth { breaks: 2, ..WatchHealth::default() };
        let broken = WatchHealth { breaks: 1, ..WatchHealth::default() };
        let missed = WatchHealth { missed: Some(3), ..WatchHealth::default() };
        let drain =
            crate::bystanders::SmallDrainResult { failure: Some("late".into()), ..Default::default() };
        let cases = [
            (AttackResult { survived: false, ..result() }, "died"),
            (AttackResult { peak: 4_000, ..result() }, "4000 MiB"),
            (AttackResult { fault: Some("500".into()), ..result() }, "answered 500"),
            (AttackResult { summary: String::new(), ..result() }, "nothing was attacked"),
            (with(BystanderResults { probes: failed.clone(), ..BystanderResults::default() }), "probes"),
            (
                with(BystanderResults { system_masters: failed.clone(), ..BystanderResults::default() }),
                "system:masters",
            ),
            (
                with(BystanderResults { other_tenant: failed, ..BystanderResults::default() }),
                "another tenant",
            ),
            (with(BystanderResults { watch: broken, ..BystanderResults::default() }), "a watch broke"),
            (
                with(BystanderResults { watch: missed, ..BystanderResults::default() }),
                "never delivered write 3",
            ),
            (
                with(BystanderResults { stream: broken_stream, ..BystanderResults::default() }),
                "a gRPC stream broke 2 times",
            ),
            (AttackResult { panics: 1, ..result() }, "1 panics"),
            (with(BystanderResults { drain, ..BystanderResults::default() }), "the drain: late"),
        ];
        for (result, words) in cases {
            let harm = harm(result, &ATTACK);
            assert!(harm.len() == 1 && harm[0].contains(words), "{words}: {harm:?}");
        }
    }

    #[test]
    fn reviews_are_bounded_by_the_second() {
        let strangers = ATTACK.by_strangers();
        assert!(harm(result(), &strangers)[0].contains("10000 reviews, more than 1400"));
        assert!(harm(AttackResult { reviews: 1_400, ..result() }, &strangers).is_empty());
        let tenant = ATTACK.by_new_questions();
        assert!(harm(AttackResult { reviews: 1_400, ..result() }, &tenant)[0].contains("more than 900"));
        let bad = result().judge(&ATTACK, AttackSize::Short, vec![Finding::new(false, "a fact")]);
        assert_eq!(bad.harm, ["a fact"]);
    }
}
