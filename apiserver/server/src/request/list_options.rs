//! Options of list, watch and deletecollection (k8s.io/apimachinery/pkg/apis/meta/internalversion).

use std::num::{IntErrorKind, ParseIntError};

use drydock_machinery::ApiError;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_serving::request::query::Query;
use drydock_storage::backend::Revision;
use drydock_storage::storage::{PageOptions, ReadAt, WatchFrom};

use crate::request::continue_token::Continue;

/// The options, as they stand in the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// `resourceVersion`
    pub resource_version: String,
    /// `resourceVersionMatch`
    pub version_match: String,
    /// `continue`
    pub continue_: String,
    /// `limit`; 0 is none.
    pub limit: usize,
    /// `timeoutSeconds`
    pub timeout_seconds: u64,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads the options. Fails with 400 for a malformed number, and with 422 for values or combinations that are not
    /// allowed.
    pub fn parse(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let text = |name| query.get(name).unwrap_or_default().to_owned();
        let mut options = Self {
            resource_version: text("resourceVersion"),
            version_match: text("resourceVersionMatch"),
            continue_: text("continue"),
            limit: number(query, "limit")?.try_into().unwrap_or(0),
            timeout_seconds: number(query, "timeoutSeconds")?.try_into().unwrap_or(0),
            bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query.optional_flag("sendInitialEvents"),
        };
        if watch {
            options.fill_watch_defaults();
        }
        let errors = if watch { options.watch_errors() } else { options.list_errors() };
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", errors))
        }
    }

    /// A watch without a resourceVersion, or from 0, starts with the objects that exist.
    fn fill_watch_defaults(&mut self) {
        let plain = self.send_initial_events.is_none() && self.version_match.is_empty();
        if plain && matches!(self.resource_version.as_str(), "" | "0") {
            self.send_initial_events = Some(true);
            self.version_match = "NotOlderThan".to_owned();
        }
    }

    fn list_errors(&self) -> ErrorList {
        let mut errors = if self.version_match.is_empty() { ErrorList::new() } else { self.match_errors() };
        if self.send_initial_events.is_some() {
            errors.push(Error::forbidden(
                Path::new("sendInitialEvents"),
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn match_errors(&self) -> ErrorList {
        let (path, given) = (Path::new("resourceVersionMatch"), self.version_match.as_str());
        let mut errors = ErrorList::new();
        if self.resource_version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(Error::forbidden(path.clone(), detail));
        }
        if !self.continue_.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(Error::forbidden(path.clone(), detail));
        }
        if !matches!(given, "Exact" | "NotOlderThan") {
            errors.push(Error::not_supported(path.clone(), given, &["Exact", "NotOlderThan", ""]));
        }
        if given == "Exact" && self.resource_version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(Error::forbidden(path, detail));
        }
        errors
    }

    fn watch_errors(&self) -> ErrorList {
        let (path, given) = (Path::new("resourceVersionMatch"), self.version_match.as_str());
        let initial = self.send_initial_events.is_some();
        let mut errors = ErrorList::new();
        let mut forbid = |wrong: bool, detail: &str| {
            if wrong {
                errors.push(Error::forbidden(path.clone(), detail));
            }
        };
        forbid(
            initial && given != "NotOlderThan",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
        if given.is_empty() {
            return errors;
        }
        forbid(!initial, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        if given != "NotOlderThan" {
            errors.push(Error::not_supported(path.clone(), given, &["NotOlderThan"]));
        }
        if !self.continue_.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(Error::forbidden(path, detail));
        }
        errors
    }

    /// How a list reads (k8s.io/apiserver/pkg/storage/interfaces.go, ValidateListOptions).
    pub fn read(&self) -> Result<PageOptions, ApiError> {
        // A list from any state (resourceVersion 0) is not paged, and a page of one is the rest of the list
        // (k8s.io/apiserver/pkg/storage/cacher/cacher.go, computeListLimit).
        let any = self.resource_version == "0" && self.version_match != "Exact";
        let limit = if any { 0 } else { self.limit };
        if !self.continue_.is_empty() {
            return self.read_on(limit);
        }
        let at = match (self.version()?, self.version_match.as_str()) {
            (None, _) => ReadAt::Latest,
            (Some(revision), "Exact") => ReadAt::Exact(revision),
            (Some(revision), "") if limit > 0 && revision.0 > 0 => ReadAt::Exact(revision),
            (Some(revision), _) => ReadAt::NotOlderThan(revision),
        };
        Ok(PageOptions { at, limit, start: None })
    }

    fn read_on(&self, limit: usize) -> Result<PageOptions, ApiError> {
        let token = Continue::decode(&self.continue_)
            .map_err(|why| ApiError::bad_request(format!("invalid continue token: {why}")))?;
        if !matches!(self.resource_version.as_str(), "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let at = token.revision.map_or(ReadAt::Latest, |r| ReadAt::Exact(Revision(r)));
        Ok(PageOptions { at, limit, start: Some(token.start) })
    }

    /// Returns the resourceVersion of a list; 400 if it is malformed.
    fn version(&self) -> Result<Option<Revision>, ApiError> {
        let wrong = |error: Error| ApiError::bad_request(format!("invalid resource version: {error}"));
        revision(&self.resource_version).map_err(wrong)
    }

    /// Returns where a watch starts, given the newest revision; 500 if its resourceVersion is malformed.
    pub fn watch_from(&self, newest: Revision) -> Result<WatchFrom, ApiError> {
        let version = revision(&self.resource_version).map_err(|error| malformed(&error))?;
        Ok(match (version, self.send_initial_events) {
            (None, Some(true)) => WatchFrom::InitialEvents(ReadAt::Latest),
            (Some(revision), Some(true)) => WatchFrom::InitialEvents(ReadAt::NotOlderThan(revision)),
            (Some(revision), _) if revision.0 > 0 => WatchFrom::After(revision),
            _ => WatchFrom::After(newest),
        })
    }
}

/// A resourceVersion as a read names it; `None` for an empty one.
pub fn revision(text: &str) -> Result<Option<Revision>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok());
    let wrong = |why: &str| {
        let detail =
            format!("strconv.ParseUint: parsing {}: {why}", drydock_machinery::quote::go_quote(text));
        Error::invalid(Path::new("resourceVersion"), text, detail)
    };
    match parsed {
        Some(Some(number)) => Ok(Some(Revision(number))),
        Some(None) => Err(wrong("value out of range")),
        None => Err(wrong("invalid syntax")),
    }
}

/// The error of a malformed resourceVersion of a watch: a 500, because kube-apiserver passes the error on without a
/// Status.
pub fn malformed(error: &Error) -> ApiError {
    ApiError::new(500, "", error.to_string(), None)
}

/// A number of the query, 0 where there is none.
pub fn number(query: &Query, name: &str) -> Result<i64, ApiError> {
    let Some(text) = query.non_empty(name) else { return Ok(0) };
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let quoted = drydock_machinery::quote::go_quote(text);
        ApiError::bad_request(format!("strconv.ParseInt: parsing {quoted}: {why}"))
    })
}

#[cfg(test)]
#[path = "list_options_tests.rs"]
mod tests;
