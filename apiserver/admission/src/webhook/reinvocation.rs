//! Decides which webhooks are called again because a later one changed the object (k8s.io/apiserver
//! pkg/admission/plugin/webhook/mutating/reinvocationcontext.go).

use std::collections::BTreeSet;

/// Webhooks by index.
#[derive(Debug, Default)]
pub struct Reinvocation {
    asked: BTreeSet<usize>,
    again: BTreeSet<usize>,
}

impl Reinvocation {
    /// Records the call of a webhook. If it changed the object, those called before it with reinvocation policy
    /// IfNeeded are called again.
    pub fn asked(&mut self, hook: usize, reinvoked: bool, changed: bool) {
        if changed {
            self.again.append(&mut self.asked);
        }
        if reinvoked {
            self.asked.insert(hook);
        }
    }

    /// Whether a webhook is called in the second round.
    pub fn wants(&self, hook: usize) -> bool {
        self.again.contains(&hook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_before_a_change_that_want_it_are_asked_again() {
        let mut round = Reinvocation::default();
        round.asked(0, true, true);
        round.asked(1, false, false);
        assert!(!round.wants(0));
        round.asked(2, true, true);
        assert!(round.wants(0) && !round.wants(1) && !round.wants(2));
        // A change in the second round affects the webhooks that are still to be called.
        round.asked(0, true, true);
        assert!(round.wants(2));
    }
}
