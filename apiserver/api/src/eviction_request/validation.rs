//! Validates the spec of an EvictionRequest, on create and update. Does no I/O and does not change the object.

use std::collections::HashSet;

use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::meta::immutable;
use drydock_machinery::names::{self, dns1123_subdomain};
use serde_json::Value;

use super::requester_users;
use super::types::{EvictionRequest, EvictionTarget, Requester};

/// Maximum number of requesters of one request.
pub const MAX_REQUESTERS: usize = 100;
/// Maximum number of finalizers of one request.
pub const MAX_FINALIZERS: usize = 100;

/// Validates a new request.
pub fn validate_create(request: &EvictionRequest) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = validate_name(request);
    errors.extend(validate_target(&request.spec.target, &spec.child("target")));
    if request.spec.requesters.is_empty() {
        errors.push(Error::required(spec.child("requesters"), "must have at least one requester"));
    }
    errors.extend(validate_requesters(&request.spec.requesters, &spec.child("requesters")));
    errors.extend(requester_users::validate(request, None));
    errors.extend(validate_finalizers(request, None));
    errors
}

/// Validates a change of the spec.
pub fn validate_update(new: &EvictionRequest, old: &EvictionRequest) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = ErrorList::new();
    if new.spec.target != old.spec.target {
        let value = serde_json::to_value(&new.spec.target).unwrap_or(Value::Null);
        errors.push(immutable(spec.child("target"), value));
    }
    let path = spec.child("requesters");
    errors.extend(validate_requesters(&new.spec.requesters, &path));
    errors.extend(requester_users::validate(new, Some(old)));
    errors.extend(validate_finalizers(new, Some(old)));
    let added = new.spec.requesters.iter().any(|r| !old.has_requester(&r.name));
    errors.extend(
        closed_reason(old)
            .filter(|_| added)
            .map(|why| Error::forbidden(path, format!("a requester may not be added to {why}"))),
    );
    errors
}

/// Why no requester may be added, if so: the new requester would wait forever.
fn closed_reason(request: &EvictionRequest) -> Option<&'static str> {
    if request.is_evicted() {
        Some("a finished eviction request, and this one is Evicted")
    } else if request.is_being_deleted() {
        Some("an eviction request that is being deleted: create another when it is gone")
    } else {
        request.is_canceled().then_some("a finished eviction request, and this one is Canceled")
    }
}

/// There may be no more finalizers than [`MAX_FINALIZERS`], or than there are: controllers keep them all.
fn validate_finalizers(new: &EvictionRequest, old: Option<&EvictionRequest>) -> Option<Error> {
    let count = |it: &EvictionRequest| it.metadata.finalizers.len();
    let (after, before) = (count(new), old.map_or(0, count));
    let path = || Path::new("metadata").child("finalizers");
    (after > MAX_FINALIZERS.max(before)).then(|| Error::too_many(path(), after, MAX_FINALIZERS))
}

fn validate_name(request: &EvictionRequest) -> ErrorList {
    let metadata = Path::new("metadata");
    let mut errors = ErrorList::new();
    if !request.metadata.generate_name.is_empty() {
        errors.push(Error::forbidden(
            metadata.child("generateName"),
            "is not supported; name must be the pod's UID",
        ));
    }
    let name = request.metadata.name.as_str();
    if request.spec.target.pod.as_ref().is_some_and(|pod| !pod.uid.is_empty() && pod.uid != name) {
        errors.push(Error::invalid(metadata.child("name"), name, "must be equal to spec.target.pod.uid"));
    }
    errors
}

fn validate_target(target: &EvictionTarget, path: &Path) -> ErrorList {
    let Some(pod) = &target.pod else {
        return vec![Error::required(path.clone(), "must specify exactly one of: `pod`")];
    };
    let (path, mut errors) = (path.child("pod"), ErrorList::new());
    if pod.name.is_empty() {
        errors.push(Error::required(path.child("name"), ""));
    } else {
        let wrong = dns1123_subdomain(&pod.name);
        errors.extend(wrong.into_iter().map(|e| Error::invalid(path.child("name"), pod.name.as_str(), e)));
    }
    if pod.uid.is_empty() {
        errors.push(Error::required(path.child("uid"), ""));
    }
    errors
}

fn validate_requesters(requesters: &[Requester], path: &Path) -> ErrorList {
    if requesters.len() > MAX_REQUESTERS {
        return vec![Error::too_many(path.clone(), requesters.len(), MAX_REQUESTERS)];
    }
    let (mut seen, mut errors) = (HashSet::new(), ErrorList::new());
    for (i, requester) in requesters.iter().enumerate() {
        let path = path.index(i).child("name");
        errors.extend(fully_qualified_domain_name(&path, &requester.name));
        if !seen.insert(&requester.name) {
            errors.push(Error::duplicate(path, requester.name.as_str()));
        }
    }
    errors
}

/// The rule for names of requesters and interceptors: Kubernetes' IsFullyQualifiedDomainName, except that a trailing
/// dot is an error: otherwise `a.b` and `a.b.` would be two names for the same requester.
pub fn fully_qualified_domain_name(path: &Path, name: &str) -> ErrorList {
    if name.ends_with('.') {
        return vec![Error::invalid(path.clone(), name, dns1123_subdomain(name).join(","))];
    }
    names::fully_qualified_domain_name(path, name)
}

/// Whether a name is a fully qualified domain name.
pub fn is_fully_qualified_domain_name(name: &str) -> bool {
    fully_qualified_domain_name(&Path::default(), name).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_name_needs_two_labels_and_no_trailing_dot() {
        assert!(is_fully_qualified_domain_name("a.b"));
        for bad in ["", "a", "a.b.", ".a.b", "A.b", "a..b", "a_b.c", "-a.b", &format!("{}.b", "a".repeat(64))]
        {
            assert!(!is_fully_qualified_domain_name(bad), "{bad}");
        }
        let long = vec!["abcdefghi"; 26].join(".");
        assert!(!is_fully_qualified_domain_name(&long));
    }
}
