//! Named points around a commit at which a test can stop the process. They do nothing without the feature
//! `failpoints`.

#[cfg(feature = "failpoints")]
use std::sync::OnceLock;

/// Called with the name of each failpoint that the process passes.
#[cfg(feature = "failpoints")]
pub type FailpointHook = Box<dyn Fn(&'static str) + Send + Sync>;

#[cfg(feature = "failpoints")]
static HOOK: OnceLock<FailpointHook> = OnceLock::new();

/// Sets the hook that each failpoint calls from now on, in its own thread. Only the first call in a process has an
/// effect.
#[cfg(feature = "failpoints")]
pub fn install(hook: FailpointHook) {
    let _ = HOOK.set(hook);
}

/// A failpoint.
pub(crate) fn pass(_name: &'static str) {
    #[cfg(feature = "failpoints")]
    if let Some(hook) = HOOK.get() {
        hook(_name);
    }
}
