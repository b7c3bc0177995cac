//! Named points around a commit, at which a test stops the process. Without the feature `failpoints` they are nothing.

#[cfg(feature = "failpoints")]
use std::sync::OnceLock;

/// Is told the name of each point that is passed.
#[cfg(feature = "failpoints")]
pub type Hook = Box<dyn Fn(&'static str) + Send + Sync>;

#[cfg(feature = "failpoints")]
static HOOK: OnceLock<Hook> = OnceLock::new();

/// Calls `hook` at each point from now on, in the thread that passes it; once in a process.
#[cfg(feature = "failpoints")]
pub fn install(hook: Hook) {
    let _ = HOOK.set(hook);
}

/// A point.
pub(crate) fn pass(_name: &'static str) {
    #[cfg(feature = "failpoints")]
    if let Some(hook) = HOOK.get() {
        hook(_name);
    }
}
