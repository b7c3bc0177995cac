//! Validates `status.interceptors`: the initial entries, and what the active interceptor may write into its entry.

use drydock_machinery::field::{Error, ErrorList, Path};
use jiff::Timestamp;

use super::limits::{MAX_NAME, MAX_REASON, is_printable};
use super::status_validation::{NOT_PRESENT, is_present, to_value};
use super::transitions::{CLOCK_SKEW, MIN_HEARTBEAT_INTERVAL, saturating_add, saturating_sub};
use super::types::{Blocked, Interceptor, InterceptorStatus};
use drydock_machinery::metav1::time::{format_seconds, truncate_to_seconds};

/// Maximum number of characters of an interceptor's message.
pub const MAX_MESSAGE: usize = 4000;

/// Validates the initial entries: one for each target, with an empty message and no other fields.
pub(super) fn validate_initial_entries(
    new: &[InterceptorStatus],
    targets: &[Interceptor],
    path: &Path,
) -> ErrorList {
    if targets.is_empty() {
        let detail = "must be set together with status.interceptors";
        return vec![Error::required(Path::new("status").child("targetInterceptors"), detail)];
    }
    let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
    if let Some(error) = validate_same_names(new, &names, path) {
        return vec![error];
    }
    let mut errors = ErrorList::new();
    for (i, entry) in new.iter().enumerate() {
        let blank = InterceptorStatus { name: entry.name.clone(), ..Default::default() };
        if *entry != blank {
            let detail = "must be initialised with a name and an empty message only";
            errors.push(Error::invalid(path.index(i), to_value(entry), detail));
        }
    }
    errors
}

/// Validates changed entries: only the entry of the active interceptor may change.
pub(super) fn validate_entries(
    new: &[InterceptorStatus],
    old: &[InterceptorStatus],
    active: Option<&str>,
    now: Timestamp,
    path: &Path,
) -> ErrorList {
    let names: Vec<&str> = old.iter().map(|o| o.name.as_str()).collect();
    if let Some(error) = validate_same_names(new, &names, path) {
        return vec![error];
    }
    let mut errors = ErrorList::new();
    for (i, entry) in new.iter().enumerate() {
        let Some(before) = old.iter().find(|o| o.name == entry.name) else { continue };
        if before == entry {
            continue;
        }
        if active == Some(entry.name.as_str()) {
            errors.extend(EntryUpdate { new: entry, old: before, now, path: path.index(i) }.validate());
        } else {
            let detail = "only the entry of the interceptor in status.activeInterceptors may change";
            errors.push(Error::forbidden(path.index(i), detail));
        }
    }
    errors
}

fn validate_same_names(new: &[InterceptorStatus], names: &[&str], path: &Path) -> Option<Error> {
    let mut given: Vec<&str> = new.iter().map(|n| n.name.as_str()).collect();
    let mut wanted = names.to_vec();
    given.sort_unstable();
    wanted.sort_unstable();
    let detail = "must have one entry for each of status.targetInterceptors and no other";
    (given != wanted).then(|| Error::invalid(path.clone(), to_value(&given), detail))
}

/// An interceptor's change of its entry.
struct EntryUpdate<'a> {
    new: &'a InterceptorStatus,
    old: &'a InterceptorStatus,
    now: Timestamp,
    path: Path,
}

impl EntryUpdate<'_> {
    fn validate(&self) -> ErrorList {
        let mut errors = self.validate_heartbeat();
        errors.extend(self.validate_expected_finish());
        let start = self.path.child("startTime");
        errors.extend(self.validate_once(self.new.start_time, self.old.start_time, start));
        let completion = self.path.child("completionTime");
        errors.extend(self.validate_once(self.new.completion_time, self.old.completion_time, completion));
        if self.new.message != self.old.message && self.new.message.chars().count() > MAX_MESSAGE {
            errors.push(Error::too_long_characters(self.path.child("message"), MAX_MESSAGE));
        }
        errors.extend(self.validate_blocked(
            "blocked",
            self.new.blocked.as_deref(),
            self.old.blocked.as_deref(),
        ));
        let last = (self.new.last_blocked.as_deref(), self.old.last_blocked.as_deref());
        errors.extend(self.validate_blocked("lastBlocked", last.0, last.1));
        errors
    }

    fn validate_blocked(&self, field: &str, new: Option<&Blocked>, old: Option<&Blocked>) -> ErrorList {
        let (path, mut errors) = (self.path.child(field), ErrorList::new());
        let Some(new) = new.filter(|new| old != Some(*new)) else { return errors };
        if new.reason.is_empty() {
            errors.push(Error::required(path.child("reason"), ""));
        }
        let texts = [
            ("reason", &new.reason, MAX_REASON),
            ("name", &new.name, MAX_NAME),
            ("state", &new.state, MAX_REASON),
        ];
        let long = texts.into_iter().filter(|(_, text, most)| text.chars().count() > *most);
        errors.extend(long.map(|(field, _, most)| Error::too_long_characters(path.child(field), most)));
        errors.extend(validate_words(new, &path));
        if new.since_time.is_some_and(|since| since > saturating_add(self.now, CLOCK_SKEW)) {
            let since = path.child("sinceTime");
            errors.push(Error::invalid(since, shown(new.since_time), "must not be in the future"));
        }
        errors
    }

    /// Validates startTime or completionTime: it may be set once, to the present time.
    fn validate_once(&self, new: Option<Timestamp>, old: Option<Timestamp>, path: Path) -> Option<Error> {
        match (old, new) {
            _ if old == new => None,
            (Some(_), _) => Some(Error::invalid(path, shown(new), "field is immutable once set")),
            (None, Some(t)) if !is_present(t, self.now) => {
                Some(Error::invalid(path, shown(new), NOT_PRESENT))
            }
            (None, _) => None,
        }
    }

    fn validate_heartbeat(&self) -> ErrorList {
        let path = self.path.child("heartbeatTime");
        let (new, old) = (self.new.heartbeat_time, self.old.heartbeat_time);
        let start = self.new.start_time;
        if new.is_none() && old.is_some() {
            return vec![Error::required(path, "may not be removed once set")];
        }
        if new.is_none() && start.is_some() {
            return vec![Error::required(path, "must be set together with startTime")];
        }
        let (Some(beat), true) = (new, new != old) else { return ErrorList::new() };
        let mut errors = ErrorList::new();
        if start.is_none() {
            let detail = "must be set together with the first heartbeatTime";
            errors.push(Error::required(self.path.child("startTime"), detail));
        }
        errors.extend(self.heartbeat_order(beat).map(|detail| Error::invalid(path, shown(new), detail)));
        errors
    }

    fn heartbeat_order(&self, beat: Timestamp) -> Option<&'static str> {
        if beat > saturating_add(self.now, CLOCK_SKEW) {
            return Some("must not be in the future");
        }
        if let Some(before) = self.old.heartbeat_time {
            if beat < before {
                return Some("must not be decremented");
            }
            if beat < saturating_add(before, MIN_HEARTBEAT_INTERVAL) {
                return Some("must be at least 60 seconds after the last one");
            }
        }
        self.new.start_time.is_some_and(|start| beat < start).then_some("must not be before startTime")
    }

    fn validate_expected_finish(&self) -> Option<Error> {
        let (new, old) = (self.new.expected_finish_time, self.old.expected_finish_time);
        let past = new.is_some_and(|t| t < truncate_to_seconds(saturating_sub(self.now, CLOCK_SKEW)));
        let path = self.path.child("expectedFinishTime");
        (new != old && past).then(|| Error::invalid(path, shown(new), "must not be in the past"))
    }
}

/// Validates the characters of the words in `blocked`, which people print on their terminals: a terminal would run an escape
/// sequence of a tenant.
fn validate_words<'a>(blocked: &'a Blocked, path: &'a Path) -> impl Iterator<Item = Error> + 'a {
    let in_camel_case = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let words = [("reason", &blocked.reason), ("state", &blocked.state)];
    let odd = words.into_iter().filter(move |(_, word)| !word.is_empty() && !in_camel_case(word));
    let odd = odd.map(|(field, word)| Error::invalid(path.child(field), word.as_str(), NO_WORD));
    let name = Some(blocked.name.as_str()).filter(|name| !name.chars().all(is_printable));
    odd.chain(name.map(|name| Error::invalid(path.child("name"), name, NOT_PRINTABLE)))
}

const NO_WORD: &str = "must consist of alphanumeric characters, and must start with an alphabetic character (e.g. 'ShortNow', \
    regex used for validation is '[A-Za-z][A-Za-z0-9]*')";
const NOT_PRINTABLE: &str = "must consist of printable ASCII characters";

fn shown(t: Option<Timestamp>) -> serde_json::Value {
    t.map_or(serde_json::Value::Null, |t| format_seconds(t).into())
}
