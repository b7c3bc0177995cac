//! Options of writes, from the query (k8s.io/apimachinery/pkg/apis/meta/v1/validation).

use drydock_machinery::ApiError;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_serving::request::query::Query;
use http::HeaderMap;
use http::header::USER_AGENT;
use serde_json::Value;

/// What becomes of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped with a warning.
    Warn,
    /// Refused.
    Strict,
}

/// Options of a create, update or patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether to do everything but the commit.
    pub dry_run: bool,
    /// What becomes of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// The field manager: as asked for, or from the user agent.
    pub manager: String,
    /// Apply only: take fields over.
    pub force: bool,
}

/// Which write the options are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// POST
    Create,
    /// PUT
    Update,
    /// PATCH, but no apply.
    Patch,
    /// PATCH with `application/apply-patch+yaml`
    Apply,
}

impl WriteKind {
    fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

/// Longest manager name in bytes.
const MANAGER_MAX: usize = 128;

/// Reads and checks the options of a write.
pub fn write_options(query: &Query, headers: &HeaderMap, kind: WriteKind) -> Result<WriteOptions, ApiError> {
    let manager = query.get("fieldManager").unwrap_or_default();
    let mut errors = force_errors(query, manager, kind);
    errors.extend(manager_errors(manager));
    errors.extend(dry_run_error(&dry_run_values(query)));
    errors.extend(field_validation_error(query.get("fieldValidation").unwrap_or_default()));
    if !errors.is_empty() {
        return Err(ApiError::invalid("meta.k8s.io", kind.options_kind(), "", errors));
    }
    Ok(WriteOptions {
        dry_run: query.get("dryRun").is_some(),
        field_validation: field_validation(query),
        manager: if manager.is_empty() { manager_of_agent(headers) } else { manager.to_owned() },
        force: query.flag("force"),
    })
}

fn field_validation(query: &Query) -> FieldValidation {
    match query.get("fieldValidation") {
        Some("Ignore") => FieldValidation::Ignore,
        Some("Strict") => FieldValidation::Strict,
        _ => FieldValidation::Warn,
    }
}

fn force_errors(query: &Query, manager: &str, kind: WriteKind) -> ErrorList {
    match kind {
        WriteKind::Apply if manager.is_empty() => {
            vec![Error::required(Path::new("fieldManager"), "is required for apply patch")]
        }
        WriteKind::Patch if query.get("force").is_some() => {
            vec![Error::forbidden(Path::new("force"), "may not be specified for non-apply patch")]
        }
        _ => ErrorList::new(),
    }
}

fn manager_errors(manager: &str) -> ErrorList {
    let path = Path::new("fieldManager");
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_MAX {
        errors.push(Error::too_long(path.clone(), MANAGER_MAX));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(Error::invalid(path.clone(), manager, detail));
    }
    errors
}

/// Values of `dryRun`, which may stand several times.
pub fn dry_run_values(query: &Query) -> Vec<String> {
    query.all("dryRun").map(str::to_owned).collect()
}

/// The only value that `dryRun` takes is `All`.
pub fn dry_run_error(values: &[String]) -> Option<Error> {
    let wrong = values.iter().any(|v| v != "All");
    let shown = values.iter().cloned().map(Value::from).collect::<Vec<_>>();
    wrong.then(|| Error::not_supported(Path::new("dryRun"), shown, &["All"]))
}

fn field_validation_error(value: &str) -> Option<Error> {
    let known = ["", "Ignore", "Strict", "Warn"];
    (!known.contains(&value)).then(|| Error::not_supported(Path::new("fieldValidation"), value, &known))
}

/// The user agent up to its first `/`, printable characters only, cut to 128 bytes.
fn manager_of_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(|v| String::from_utf8_lossy(v.as_bytes())).unwrap_or_default();
    let mut manager = String::new();
    for c in agent.split('/').next().unwrap_or_default().chars().filter(|c| is_printable(*c)) {
        if manager.len() + c.len_utf8() > MANAGER_MAX {
            break;
        }
        manager.push(c);
    }
    manager
}

fn is_printable(c: char) -> bool {
    c == ' ' || (!c.is_control() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use http::HeaderValue;

    fn read(query: &str, kind: WriteKind) -> Result<WriteOptions, ApiError> {
        let agent = HeaderValue::from_static("kubectl/v1 (linux)");
        write_options(&Query::parse(query), &HeaderMap::from_iter([(USER_AGENT, agent)]), kind)
    }

    #[test]
    fn the_manager_comes_from_the_user_agent_unless_named() {
        assert_eq!(read("", WriteKind::Create).unwrap().manager, "kubectl");
        assert_eq!(read("fieldManager=me", WriteKind::Create).unwrap().manager, "me");
    }

    #[test]
    fn apply_needs_a_manager_and_other_patches_no_force() {
        let error = read("", WriteKind::Apply).unwrap_err();
        assert_eq!(error.status.code, 422);
        assert!(error.status.message.contains("fieldManager: Required value: is required for apply patch"));
        let error = read("force=true", WriteKind::Patch).unwrap_err();
        assert!(error.status.message.contains("force: Forbidden: may not be specified for non-apply patch"));
        assert!(read("force=true&fieldManager=a", WriteKind::Apply).unwrap().force);
    }

    #[test]
    fn unknown_values_are_refused() {
        for query in ["dryRun=Some", "dryRun=", "dryRun=All&dryRun=x", "fieldValidation=Maybe"] {
            assert_eq!(read(query, WriteKind::Update).unwrap_err().status.code, 422, "{query}");
        }
        assert!(read("dryRun=All&fieldValidation=Strict", WriteKind::Update).unwrap().dry_run);
        let long = format!("fieldManager={}", "m".repeat(129));
        assert_eq!(read(&long, WriteKind::Update).unwrap_err().status.code, 422);
        assert_eq!(read("fieldManager=a%00b", WriteKind::Update).unwrap_err().status.code, 422);
    }
}
