//! How many connections the process may have open: each takes a file descriptor, and so does everything else it needs,
//! storage among it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, as the runtime of Go does (os/rlimit.go): containers start with
/// 1,024. Returns `connections`, or what three quarters of the limit allow.
pub(super) fn allow(connections: usize) -> usize {
    let Rlimit { maximum, current } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if raised { maximum } else { current };
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let allowed = connections.min(limit - limit / 4);
    if allowed < connections {
        tracing::info!(limit, allowed, wanted = connections, "the limit of open files bounds connections");
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(allow(10), 10);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum, "raised as far as may be");
        let limit = current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        assert_eq!(allow(usize::MAX), limit - limit / 4);
    }
}
