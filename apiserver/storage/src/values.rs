//! The keys and values of a store: objects below `/registry/`, fencing terms below `/fences/`.

use crate::backend::{BackendError, Revision};
use crate::fence;
use crate::store;

/// The prefix of every key. A backend may keep records of its own under keys without it.
pub const ALL: &str = "/";

/// The highest revision: clients may store a resourceVersion as a JSON number, which many of them read as a double,
/// exact up to here.
const HIGHEST: Revision = Revision(1 << 53);

/// Returns the revision that is `bump` above another one.
///
/// # Errors
/// If it would be above the highest revision.
pub fn raised(revision: Revision, bump: u64) -> Result<Revision, BackendError> {
    let raised = revision.0.checked_add(bump).filter(|raised| *raised <= HIGHEST.0);
    let too_high = || {
        BackendError::Unavailable(format!(
            "the highest possible revision is {}: use a smaller --bump-revision",
            HIGHEST.0
        ))
    };
    raised.map(Revision).ok_or_else(too_high)
}

/// Checks that a value can be decoded and belongs to its key.
///
/// # Errors
/// If not: what is wrong with it.
pub fn check(key: &str, value: &[u8]) -> Result<(), String> {
    if key.starts_with(fence::PREFIX) {
        return fence::term(value).map(drop).ok_or_else(|| "it is not a term".to_owned());
    }
    let Some(object) = key.strip_prefix(store::PREFIX) else { return Ok(()) };
    // The group and the plural are before the object's namespace, if it has one, and its name.
    let path: Vec<&str> = object.split('/').skip(2).collect();
    let stored = store::decode(key, value, Revision(0)).map_err(|error| error.to_string())?;
    let object = stored.object();
    let named = [object.namespace(), object.name()];
    let named = if object.namespace().is_empty() { &named[1..] } else { &named[..] };
    match path == named {
        true => Ok(()),
        false => Err(format!("it is the object {}", named.join("/"))),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_value_is_that_of_its_key() {
        let object = br#"{"metadata":{"namespace":"a","name":"b"}}"#;
        assert_eq!(check("/registry/g/plural/a/b", object), Ok(()));
        assert_eq!(check("/registry/g/plural/b", object), Err("it is the object a/b".to_owned()));
        assert_eq!(check("/registry/g/plural/b", br#"{"metadata":{"name":"b"}}"#), Ok(()));
        assert!(check("/registry/g/plural/b", b"{").is_err());
        assert_eq!(check("/fences/me", b"12"), Ok(()));
        assert!(check("/fences/me", b"x").is_err());
    }
}
