//! Validates a status update: the rules of each field, and the transition table. Does no I/O.
//!
//! An unchanged value is always valid.

use std::time::Duration;

use drydock_machinery::field::{Error, ErrorList, Path};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::conditions::{CANCELED, EVICTED};
use super::interceptor_status_validation::{validate_entries, validate_initial_entries};
use super::interceptors::{AllowedNames, IMPERATIVE_EVICTION, MAX_TARGET_INTERCEPTORS};
use super::limits::{MAX_CONDITION_BYTES, MAX_NAME, MAX_REASON};
use super::transitions::{
    CLOCK_SKEW, gives_turns, index_of, may_advance, next_interceptor, saturating_add, saturating_sub,
    successor,
};
use super::types::{EvictionRequest, Interceptor, PodInfo};
use super::validation::fully_qualified_domain_name;
use drydock_machinery::metav1::validation::validate_conditions;
use drydock_machinery::metav1::{Condition, is_condition_true};
use drydock_machinery::object::json_len;

/// A status update, with everything else that its rules need.
#[derive(Clone, Copy, Debug)]
pub struct StatusUpdate<'a> {
    /// The request after the update. Of both states, only the fields that [`drydock_machinery::strategy::view::decode_status`] decodes are
    /// read.
    pub new: &'a EvictionRequest,
    /// The request before the update.
    pub old: &'a EvictionRequest,
    /// The time of the update.
    pub now: Timestamp,
    /// How long an interceptor may be silent.
    pub heartbeat_deadline: Duration,
    /// The names under k8s.io that interceptors may have.
    pub allowed: &'a AllowedNames,
}

impl StatusUpdate<'_> {
    /// Returns all errors, in the order of the fields.
    pub fn validate(&self) -> ErrorList {
        let status = Path::new("status");
        let mut errors = ErrorList::new();
        errors.extend(self.validate_observed_generation(&status.child("observedGeneration")));
        errors.extend(self.validate_conditions(&status.child("conditions")));
        errors.extend(self.validate_targets(&status));
        errors.extend(self.validate_active(&status.child("activeInterceptors")));
        errors.extend(self.validate_processed(&status.child("processedInterceptors")));
        errors.extend(self.validate_interceptors(&status.child("interceptors")));
        errors.extend(self.validate_activation_time(&status.child("activationTime")));
        errors.extend(self.validate_pod_info(&status.child("podInfo")));
        errors.extend(self.validate_earlier_turns(&status.child("earlierTurns")));
        // interceptionDeadline follows a flag of the controller and may change at any time: nothing to validate.
        errors
    }

    fn validate_observed_generation(&self, path: &Path) -> Option<Error> {
        let (new, old) = (self.new.status.observed_generation, self.old.status.observed_generation);
        if new < old {
            return Some(Error::invalid(path.clone(), new, "must not be decremented"));
        }
        let past = new > old && new > self.old.metadata.generation;
        past.then(|| Error::invalid(path.clone(), new, "must not be greater than metadata.generation"))
    }

    fn validate_conditions(&self, path: &Path) -> ErrorList {
        let (new, old) = (&self.new.status.conditions, &self.old.status.conditions);
        let mut errors = validate_conditions(new, old, path);
        for type_ in [CANCELED, EVICTED] {
            if is_condition_true(old, type_) && !is_condition_true(new, type_) {
                errors.push(Error::forbidden(path.key(type_), "the condition is final once it is True"));
            }
        }
        let bytes = if new == old { 0 } else { foreign_bytes(new) };
        if bytes > MAX_CONDITION_BYTES && bytes > foreign_bytes(old) {
            errors.push(Error::too_long(path.clone(), MAX_CONDITION_BYTES));
        }
        if new != old && self.new.is_canceled() && self.new.is_evicted() {
            errors.push(Error::forbidden(path.clone(), "Canceled and Evicted may not both be True"));
        }
        errors
    }

    fn validate_targets(&self, status: &Path) -> ErrorList {
        let path = status.child("targetInterceptors");
        let (new, old) = (&self.new.status.target_interceptors, &self.old.status.target_interceptors);
        if new == old {
            return ErrorList::new();
        }
        if !old.is_empty() {
            return vec![Error::invalid(path, to_value(new), "field is immutable once set")];
        }
        let mut errors = self.validate_names(new, &path);
        if self.new.status.interceptors.is_empty() {
            let detail = "must be set together with status.targetInterceptors";
            errors.push(Error::required(status.child("interceptors"), detail));
        }
        errors
    }

    fn validate_names(&self, targets: &[Interceptor], path: &Path) -> ErrorList {
        if targets.len() > MAX_TARGET_INTERCEPTORS {
            return vec![Error::too_many(path.clone(), targets.len(), MAX_TARGET_INTERCEPTORS)];
        }
        let mut errors = ErrorList::new();
        for (i, target) in targets.iter().enumerate() {
            let path = path.index(i).child("name");
            errors.extend(fully_qualified_domain_name(&path, &target.name));
            if !self.allowed.allows(&target.name) {
                let detail =
                    "names under k8s.io are reserved and this one is not on the list of those allowed";
                errors.push(Error::invalid(path.clone(), target.name.as_str(), detail));
            }
            if targets.iter().take(i).any(|t| t == target) {
                errors.push(Error::duplicate(path, target.name.as_str()));
            }
        }
        errors.extend(validate_last(targets, path));
        errors
    }

    /// Enforces the transition table of `transitions`.
    fn validate_active(&self, path: &Path) -> Option<Error> {
        let (new, old) = (&self.new.status.active_interceptors, &self.old.status.active_interceptors);
        if new == old {
            return None;
        }
        let forbidden = |detail: &str| Some(Error::forbidden(path.clone(), detail));
        match (old.as_slice(), new.as_slice()) {
            (_, [_, _, ..]) => Some(Error::too_many(path.clone(), new.len(), 1)),
            (_, []) if self.new.is_finished() => None,
            (_, []) => forbidden("may be cleared only when the request is Evicted or Canceled"),
            (_, [_]) if self.new.is_finished() || self.old.is_finished() => {
                forbidden("may not change to another interceptor when the request is Evicted or Canceled")
            }
            (_, [_]) if !gives_turns(self.old) => {
                forbidden("may not change to another interceptor when the request is being deleted")
            }
            ([], [name]) => self.validate_next(name, path),
            (_, [name]) => self.validate_next(name, path).or_else(|| self.validate_turn_over(path)),
        }
    }

    fn validate_next(&self, name: &str, path: &Path) -> Option<Error> {
        let mut at_present = self.old.status.clone();
        at_present.target_interceptors.clone_from(&self.new.status.target_interceptors);
        let next = next_interceptor(&at_present);
        if successor(&at_present, saturating_add(self.now, CLOCK_SKEW)) == Some(name) {
            return None;
        }
        let detail = match next {
            Some(next) if next == name => return None,
            Some(next) => format!("must be the next of status.targetInterceptors, which is {next:?}"),
            None => "status.targetInterceptors has no next interceptor".to_owned(),
        };
        Some(Error::invalid(path.index(0), name, detail))
    }

    fn validate_turn_over(&self, path: &Path) -> Option<Error> {
        let over = may_advance(self.old, self.heartbeat_deadline, saturating_add(self.now, CLOCK_SKEW));
        let detail = "the active interceptor has neither a completionTime nor passed its deadline";
        (!over).then(|| Error::forbidden(path.clone(), detail))
    }

    fn validate_processed(&self, path: &Path) -> ErrorList {
        let (new, old) = (&self.new.status.processed_interceptors, &self.old.status.processed_interceptors);
        if new == old {
            return ErrorList::new();
        }
        if !new.starts_with(old) {
            return vec![Error::invalid(path.clone(), to_value(new), "may only be appended to")];
        }
        // Decoding limits the number. This check avoids a quadratic comparison if a caller did not decode.
        if new.len() > MAX_TARGET_INTERCEPTORS {
            return vec![Error::too_many(path.clone(), new.len(), MAX_TARGET_INTERCEPTORS)];
        }
        let mut errors = ErrorList::new();
        for (i, name) in new.iter().enumerate().skip(old.len()) {
            if new.iter().take(i).any(|n| n == name) {
                errors.push(Error::duplicate(path.index(i), name.as_str()));
            } else if !self.was_active(name) {
                let detail = "must have been in status.activeInterceptors before";
                errors.push(Error::invalid(path.index(i), name.as_str(), detail));
            }
        }
        errors
    }

    /// Turns have an order, so all interceptors up to the active one have had a turn.
    fn was_active(&self, name: &str) -> bool {
        let status = &self.old.status;
        let active = self.old.active_interceptor().and_then(|a| index_of(status, a));
        index_of(status, name).is_some_and(|i| active.is_some_and(|a| i <= a))
    }

    fn validate_interceptors(&self, path: &Path) -> ErrorList {
        let (new, old) = (&self.new.status.interceptors, &self.old.status.interceptors);
        if new == old {
            return ErrorList::new();
        }
        if old.is_empty() {
            return validate_initial_entries(new, &self.new.status.target_interceptors, path);
        }
        validate_entries(new, old, self.old.active_interceptor(), self.now, path)
    }

    fn validate_pod_info(&self, path: &Path) -> ErrorList {
        let (new, old) = (&self.new.status.pod_info, &self.old.status.pod_info);
        match new {
            new if new == old => ErrorList::new(),
            _ if old.is_some() => {
                vec![Error::invalid(path.clone(), to_value(new), "field is immutable once set")]
            }
            Some(PodInfo { node_name, pod_type, .. }) => {
                let texts = [("nodeName", node_name, MAX_NAME), ("podType", pod_type, MAX_REASON)];
                let long = texts.into_iter().filter(|(_, text, most)| text.chars().count() > *most);
                long.map(|(field, _, most)| Error::too_long_characters(path.child(field), most)).collect()
            }
            None => ErrorList::new(),
        }
    }

    fn validate_earlier_turns(&self, path: &Path) -> ErrorList {
        let (new, old) = (&self.new.status.earlier_turns, &self.old.status.earlier_turns);
        let Some(turns) = new.as_ref().filter(|_| new != old) else {
            let is_removed = new.is_none() && old.is_some();
            let detail = "field is immutable once set";
            return is_removed
                .then(|| Error::invalid(path.clone(), Value::Null, detail))
                .into_iter()
                .collect();
        };
        if old.is_some() || !self.old.status.target_interceptors.is_empty() {
            return vec![Error::forbidden(path.clone(), "may be set only before the first turn or with it")];
        }
        let named = turns.interceptors.iter().enumerate();
        let mut errors: ErrorList = named
            .flat_map(|(i, name)| fully_qualified_domain_name(&path.child("interceptors").index(i), name))
            .collect();
        if turns.seconds < 0 {
            errors.push(Error::invalid(path.child("seconds"), turns.seconds, "must not be negative"));
        }
        errors
    }

    fn validate_activation_time(&self, path: &Path) -> Option<Error> {
        let (new, old) = (self.new.status.activation_time, self.old.status.activation_time);
        let active = self.new.active_interceptor();
        let taken = active.is_some() && active != self.old.active_interceptor();
        if !taken {
            let detail = "may change only when status.activeInterceptors changes to another interceptor";
            return (new != old).then(|| Error::forbidden(path.clone(), detail));
        }
        match new {
            None => Some(Error::required(path.clone(), "must be set with status.activeInterceptors")),
            Some(t) => (!is_present(t, self.now)).then(|| {
                Error::invalid(path.clone(), drydock_machinery::metav1::time::format_micros(t), NOT_PRESENT)
            }),
        }
    }
}

/// Only the last target's turn has no deadline: if the last target were another interceptor, the request could wait
/// for it forever.
fn validate_last(targets: &[Interceptor], path: &Path) -> Option<Error> {
    let (at, last) = targets.iter().enumerate().next_back()?;
    let detail = format!("the last one must be {IMPERATIVE_EVICTION:?}");
    let path = path.index(at).child("name");
    (last.name != IMPERATIVE_EVICTION).then(|| Error::invalid(path, last.name.as_str(), detail))
}

/// The error text for a time that should be the present.
pub(super) const NOT_PRESENT: &str = "must be the present time, give or take 10 seconds";

/// Whether `t` is `now`, except for clock skew and for the truncation of metav1.Time to whole seconds.
pub(super) fn is_present(t: Timestamp, now: Timestamp) -> bool {
    drydock_machinery::metav1::time::truncate_to_seconds(saturating_sub(now, CLOCK_SKEW)) <= t
        && t <= saturating_add(now, CLOCK_SKEW)
}

/// Bytes of the conditions that the controller does not set, as JSON.
fn foreign_bytes(conditions: &[Condition]) -> usize {
    let foreign = conditions.iter().filter(|c| ![CANCELED, EVICTED].contains(&c.type_.as_str()));
    foreign.map(json_len).sum()
}

pub(super) fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_of(names: &[&str]) -> Option<String> {
        let targets: Vec<_> = names.iter().map(|name| Interceptor { name: (*name).to_owned() }).collect();
        validate_last(&targets, &Path::new("targets")).map(|error| error.to_string())
    }

    /// Regression: a request whose last target was another interceptor waited for it forever.
    #[test]
    fn target_interceptors_end_with_imperative_eviction() {
        assert_eq!(last_of(&["a.b", IMPERATIVE_EVICTION]), None);
        assert_eq!(last_of(&[]), None);
        let refused =
            "targets[1].name: Invalid value: \"a.b\": the last one must be \"imperative-eviction.k8s.io\"";
        assert_eq!(last_of(&[IMPERATIVE_EVICTION, "a.b"]).as_deref(), Some(refused));
    }
}
