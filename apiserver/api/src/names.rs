//! The rule for names of requesters and interceptors.

use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::names;

/// Kubernetes' rule IsFullyQualifiedDomainName, except that a trailing dot is an error: otherwise `a.b` and `a.b.`
/// would be two names for the same requester.
pub fn fully_qualified_domain_name(path: &Path, name: &str) -> ErrorList {
    if name.ends_with('.') {
        return vec![Error::invalid(path.clone(), name, names::dns1123_subdomain(name).join(","))];
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
