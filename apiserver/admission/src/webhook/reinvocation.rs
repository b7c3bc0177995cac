//! Decides which webhooks are called again because a later one changed the object (k8s.io/apiserver
//! pkg/admission/plugin/webhook/mutating/reinvocationcontext.go).

use std::collections::BTreeSet;

/// Webhooks by index.
#[derive(Debug, Default)]
pub struct Reinvocation {
    called: BTreeSet<usize>,
    to_reinvoke: BTreeSet<usize>,
}

impl Reinvocation {
    /// Records the call of a webhook. If it changed the object, those called before it with reinvocation policy
    /// IfNeeded are called again.
    pub fn record_call(&mut self, hook: usize, reinvoked: bool, changed: bool) {
        if changed {
            self.to_reinvoke.append(&mut self.called);
        }
        if reinvoked {
            self.called.insert(hook);
        }
    }

    /// Whether a webhook is called in the second round.
    pub fn must_reinvoke(&self, hook: usize) -> bool {
        self.to_reinvoke.contains(&hook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_before_a_change_that_want_it_are_asked_again() {
        let mut round = Reinvocation::default();
        round.record_call(0, true, true);
        round.record_call(1, false, false);
        assert!(!round.must_reinvoke(0));
        round.record_call(2, true, true);
        assert!(round.must_reinvoke(0) && !round.must_reinvoke(1) && !round.must_reinvoke(2));
        // A change in the second round affects the webhooks that are still to be called.
        round.record_call(0, true, true);
        assert!(round.must_reinvoke(2));
    }
}
