//! Rules for names, labels and annotation keys, with Kubernetes' messages (k8s.io/apimachinery/pkg/util/validation).
//!
//! Each check returns the errors of a value, as texts that follow `Invalid value: "x": `; none if it is valid.

use crate::field::{Error, ErrorList, Path};

/// The rule for the names of a kind. The flag says that a generated suffix will be appended.
pub type NameRule = fn(name: &str, prefix: bool) -> Vec<String>;

const LABEL_RE: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_RE: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY_RE: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character";

/// Longest DNS label, label value and name part of a label key.
pub const LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
pub const SUBDOMAIN_MAX: usize = 253;

/// Validates a DNS label (RFC 1123).
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, LABEL_MAX);
    if !is_label(value) {
        let dots = is_subdomain(value);
        errors.push(if dots {
            "must not contain dots".into()
        } else {
            regex_error(LABEL_RULE, LABEL_RE, &["my-name", "123-abc"])
        });
    }
    errors
}

/// Validates a DNS subdomain (RFC 1123).
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = too_long(value, SUBDOMAIN_MAX);
    if !is_subdomain(value) {
        errors.push(regex_error(SUBDOMAIN_RULE, SUBDOMAIN_RE, &["example.com"]));
    }
    errors
}

/// Validates a domain of at least two labels; one trailing dot is allowed (IsFullyQualifiedDomainName).
pub fn fully_qualified_domain_name(path: &Path, name: &str) -> ErrorList {
    if name.is_empty() {
        return vec![Error::required(path.clone(), "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let errors = dns1123_subdomain(name);
    if !errors.is_empty() {
        return vec![Error::invalid(path.clone(), name, errors.join(","))];
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return vec![Error::invalid(path.clone(), name, detail)];
    }
    let bad =
        name.split('.').map(|label| (label, dns1123_label(label))).find(|(_, errors)| !errors.is_empty());
    bad.map(|(label, errors)| Error::invalid(path.clone(), label, errors.join(","))).into_iter().collect()
}

/// Validates a label key, an annotation key (in lower case) or a finalizer: an optional `subdomain/`, then a name.
pub fn qualified_name(value: &str) -> Vec<String> {
    let (prefix, name) = match value.splitn(3, '/').collect::<Vec<_>>().as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            let rule = regex_error(KEY_RULE, KEY_RE, &["MyName", "my.name", "123-abc"]);
            let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {tail}")];
        }
    };
    let mut errors = match prefix {
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => dns1123_subdomain(prefix).into_iter().map(|e| format!("prefix part {e}")).collect(),
        None => Vec::new(),
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".into());
    }
    errors.extend(too_long(name, LABEL_MAX).into_iter().map(|e| format!("name part {e}")));
    if !is_key_name(name) {
        let rule = regex_error(KEY_RULE, KEY_RE, &["MyName", "my.name", "123-abc"]);
        errors.push(format!("name part {rule}"));
    }
    errors
}

/// Validates the value of a label: empty, or like the name part of a key.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = too_long(value, LABEL_MAX);
    if !value.is_empty() && !is_key_name(value) {
        let re = format!("({KEY_RE})?");
        errors.push(regex_error(VALUE_RULE, &re, &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// Validates a name that must be one segment of a URL path (the rule for every object).
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// The usual rule for an object's name: a DNS subdomain.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&mask_trailing_dash(name, prefix))
}

/// The rule for a namespace's name: a DNS label.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label(&mask_trailing_dash(name, prefix))
}

/// Returns `must consist of ... (e.g. 'a',  or 'b', regex used for validation is '...')`, with Kubernetes' double
/// space.
pub fn regex_error(rule: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|e| format!("'{e}', ")).collect();
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{regex}')");
    }
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

/// Replaces a trailing dash by a letter, because a suffix will follow.
fn mask_trailing_dash(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if prefix && !rest.is_empty() => format!("{}a", drop_last(rest)),
        _ => name.to_owned(),
    }
}

/// Kubernetes removes two characters and adds one, which matters for the length.
fn drop_last(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next_back();
    chars.as_str()
}

fn too_long(value: &str, max: usize) -> Vec<String> {
    if value.len() > max { vec![format!("must be no more than {max} bytes")] } else { Vec::new() }
}

fn is_label(value: &str) -> bool {
    let inner = |b: u8| b == b'-' || is_lower_alphanumeric(b);
    value.bytes().all(inner) && ends(value, is_lower_alphanumeric)
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_key_name(value: &str) -> bool {
    let inner = |b: u8| matches!(b, b'-' | b'_' | b'.') || b.is_ascii_alphanumeric();
    value.bytes().all(inner) && ends(value, |b| b.is_ascii_alphanumeric())
}

fn ends(value: &str, rule: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|b| rule(*b)) && bytes.last().is_some_and(|b| rule(*b))
}

fn is_lower_alphanumeric(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::ShownValue;

    #[test]
    fn labels_have_no_dots_and_at_most_63_bytes() {
        assert!(dns1123_label("my-name").is_empty());
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(
            dns1123_label("-a"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
    }

    #[test]
    fn subdomains_are_labels_joined_by_dots() {
        assert!(dns1123_subdomain("a.b-c.1").is_empty());
        for bad in ["", "A", "a..b", ".a", "a.", "a_b", "é"] {
            assert_eq!(dns1123_subdomain(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_domain_name_needs_two_segments_and_may_end_in_a_dot() {
        let check = |name: &str| fully_qualified_domain_name(&Path::new("n"), name);
        assert!(check("a.b").is_empty() && check("a.b.").is_empty());
        assert_eq!(check("")[0].to_string(), "n: Required value");
        assert_eq!(
            check("a")[0].to_string(),
            "n: Invalid value: \"a\": should be a domain with at least two segments separated by dots"
        );
        assert_eq!(check("a.b..").len(), 1);
        assert_eq!(
            check(&format!("{}.b", "a".repeat(64)))[0].value,
            Some(ShownValue::of(&"a".repeat(64).into()))
        );
    }

    #[test]
    fn keys_have_at_most_one_prefix() {
        assert!(qualified_name("a.b/C_d").is_empty() && qualified_name("x").is_empty());
        assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("a/b/c").len(), 1);
        assert_eq!(qualified_name("a/").len(), 2);
        assert_eq!(qualified_name(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
    }

    #[test]
    fn label_values_may_be_empty() {
        assert!(label_value("").is_empty() && label_value("A_b.c-1").is_empty());
        assert_eq!(label_value("-").len(), 1);
    }

    #[test]
    fn a_name_prefix_may_end_in_a_dash() {
        assert!(name_is_dns_subdomain("ab-", true).is_empty());
        assert_eq!(name_is_dns_subdomain("ab-", false).len(), 1);
        assert_eq!(name_is_dns_subdomain("-", true).len(), 1);
        assert_eq!(name_is_dns_label("éa-", true).len(), 1);
    }
}
