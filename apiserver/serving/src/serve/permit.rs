//! The permit of one connection to be open: what its requests prove, and that it is closed or retired.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use super::connections::{ConnectionStage, Connections};
use super::groups::Id;
use crate::auth::authn::peer::{Observer, Proof};
use crate::clock;
use crate::request::user::Network;

type Table = Arc<Mutex<Connections<CancellationToken>>>;

/// No request has been authenticated.
const STRANGER: u8 = 0;
/// A user has been authenticated.
const USER: u8 = 1;
/// The client is a verified front proxy.
const FRONT_PROXY: u8 = 2;

/// Permits for the connections of a port.
#[derive(Clone)]
pub(super) struct ConnectionPermits(Table);

/// The permit of a connection to be open, held for as long as anything works for it.
pub(super) struct ConnectionPermit {
    /// Where it comes from.
    pub(super) source: Network,
    /// Its number.
    pub(super) id: Id,
    table: Table,
    known: AtomicU8,
    is_nobodys: AtomicBool,
    /// Whether it has the limits of a front proxy although it may be none.
    is_assumed_front_proxy: AtomicBool,
    closed: CancellationToken,
    retired: CancellationToken,
    since: OnceLock<Instant>,
}

impl ConnectionPermits {
    /// See [`Connections::new`].
    pub(super) fn new(permits: usize, per_address: usize) -> Self {
        Self(Arc::new(Mutex::new(Connections::new(permits, per_address))))
    }

    /// Gives a permit to a new connection, which may close another one.
    pub(super) fn take(&self, address: IpAddr) -> ConnectionPermit {
        let (source, closed) = (Network::from(address), CancellationToken::new());
        let (id, loses) = self.0.lock().take(source, closed.clone());
        close(loses);
        ConnectionPermit {
            source,
            id,
            table: self.0.clone(),
            known: AtomicU8::new(STRANGER),
            is_nobodys: AtomicBool::new(false),
            is_assumed_front_proxy: AtomicBool::new(false),
            closed,
            retired: CancellationToken::new(),
            since: OnceLock::new(),
        }
    }

    /// Closes a connection that has authenticated no user, if there is one.
    pub(super) fn relieve(&self) {
        let loses = self.0.lock().relieve();
        close(loses);
    }
}

impl ConnectionPermit {
    /// Ends when the connection must be closed at once.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Ends when the connection is to take no more requests than those that are under way.
    pub(super) async fn retired(&self) {
        self.retired.cancelled().await;
    }

    /// Ends when the connection was retired `grace` ago and may not stay until its answers have been read: no user has
    /// been authenticated on it, whose unread answers would be counted, or it has the limits of a front proxy and is
    /// none.
    pub(super) async fn overstayed(&self, grace: Duration) {
        self.retired().await;
        tokio::time::sleep(grace).await;
        if self.known.load(Ordering::Relaxed) != STRANGER && !self.is_assumed_front_proxy() {
            std::future::pending::<()>().await;
        }
    }

    /// Records that the connection has the limits of a front proxy although it may be none. It is retired when a
    /// request on it proves a user by other means, or nobody.
    pub(super) fn assume_front_proxy(&self) {
        self.is_assumed_front_proxy.store(true, Ordering::Relaxed);
    }

    /// Whether the connection has the limits of a front proxy, and has not proved to be one.
    pub(super) fn is_assumed_front_proxy(&self) -> bool {
        self.is_assumed_front_proxy.load(Ordering::Relaxed)
            && self.known.load(Ordering::Relaxed) != FRONT_PROXY
    }

    /// Records that the connection has come to a stage, or begins another request; this may close another connection.
    /// Does nothing once it has authenticated a user.
    pub(super) fn enter_stage(&self, stage: ConnectionStage) {
        if self.known.load(Ordering::Relaxed) == STRANGER {
            let loses = self.table.lock().enter_stage(stage, self.id);
            close(loses);
        }
    }

    /// Records whether a head on it has begun and not ended; this may close a connection.
    pub(super) fn has_unfinished_head(&self, is_unfinished: bool) {
        let loses = self.table.lock().has_unfinished_head(self.id, is_unfinished);
        close(loses);
    }

    /// Records whether its client has sent much in a handshake that is not over; this may close a connection.
    pub(super) fn has_long_handshake(&self, is_long: bool) {
        let loses = self.table.lock().has_long_handshake(self.id, is_long);
        close(loses);
    }

    /// Retires the connection if a request on it was anonymous or refused, unless it has proved to be a front proxy's
    /// since; and if it was assumed to be a front proxy's, and is a user's.
    pub(super) fn retire_if_nobodys(&self) {
        let known = self.known.load(Ordering::Relaxed);
        let is_nobodys = self.is_nobodys.load(Ordering::Relaxed) && known != FRONT_PROXY;
        if is_nobodys || (known == USER && self.is_assumed_front_proxy()) {
            self.since.get_or_init(clock::now);
            self.retired.cancel();
        }
    }

    /// Closes the connection if it was retired longer ago than `grace`: its client still sends requests after it was
    /// asked to stop.
    pub(super) fn close_if_overstayed(&self, grace: Duration) {
        if self.since.get().is_some_and(|since| clock::now() - *since > grace) {
            self.closed.cancel();
        }
    }

    fn learn(&self, what: u8) -> bool {
        self.known.load(Ordering::Relaxed) < what && self.known.fetch_max(what, Ordering::Relaxed) < what
    }
}

impl Observer for ConnectionPermit {
    fn observe(&self, proof: Proof<'_>) {
        match proof {
            Proof::FrontProxy if self.learn(FRONT_PROXY) => self.table.lock().exempt(self.id),
            Proof::User(user) if self.learn(USER) => {
                let loses = self.table.lock().authenticated(self.id, user.flow());
                close(loses);
            }
            Proof::Nobody => self.is_nobodys.store(true, Ordering::Relaxed),
            Proof::Unasked if self.known.load(Ordering::Relaxed) == STRANGER => {
                self.is_nobodys.store(true, Ordering::Relaxed);
            }
            Proof::FrontProxy | Proof::User(_) | Proof::Unasked => {}
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.table.lock().leave(self.id);
    }
}

fn close(connection: Option<CancellationToken>) {
    if let Some(connection) = connection {
        tracing::debug!("a connection is closed for another one");
        connection.cancel();
    }
}

/// Raises the soft limit of open files to the hard one, as the runtime of Go does (os/rlimit.go): containers start with
/// 1,024. Returns `connections`, or what three quarters of the limit allow.
pub(super) fn allowed_connections(connections: usize) -> usize {
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
    use std::net::Ipv4Addr;

    use futures::FutureExt;

    use super::*;
    use crate::request::user::User;

    const GRACE: Duration = Duration::from_secs(30);

    fn permit() -> ConnectionPermit {
        ConnectionPermits::new(10, 10).take(Ipv4Addr::LOCALHOST.into())
    }

    async fn overstays(permit: &ConnectionPermit) -> bool {
        tokio::time::timeout(2 * GRACE, permit.overstayed(GRACE)).await.is_ok()
    }

    fn is_retired(permit: &ConnectionPermit) -> bool {
        permit.retire_if_nobodys();
        permit.retired().now_or_never().is_some()
    }

    /// A stranger that read none of its answers kept a connection, and all its streams, for as long as it liked.
    #[tokio::test(start_paused = true)]
    async fn a_retired_connection_of_nobody_ends_although_its_answers_are_not_read() {
        let permit = permit();
        permit.observe(Proof::Nobody);
        assert!(is_retired(&permit));
        assert!(overstays(&permit).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_retired_connection_of_a_user_goes_on_until_its_answers_are_read() {
        let permit = permit();
        permit.observe(Proof::User(&User::default()));
        permit.observe(Proof::Nobody);
        assert!(is_retired(&permit));
        assert!(!overstays(&permit).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_not_retired_does_not_overstay() {
        assert!(!overstays(&permit()).await);
    }

    /// Before the host had named its CAs, any certificate got the limits of a front proxy for as long as its
    /// connection lasted.
    #[tokio::test(start_paused = true)]
    async fn a_user_who_has_the_limits_of_a_front_proxy_is_retired_and_ended() {
        let permit = permit();
        permit.assume_front_proxy();
        assert!(!is_retired(&permit), "nothing is known of it yet");
        permit.observe(Proof::User(&User::default()));
        assert!(is_retired(&permit) && overstays(&permit).await);
    }

    #[test]
    fn a_front_proxy_that_proves_to_be_one_stays() {
        let permit = permit();
        permit.assume_front_proxy();
        permit.observe(Proof::FrontProxy);
        assert!(!permit.is_assumed_front_proxy() && !is_retired(&permit));
    }

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(allowed_connections(10), 10);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum, "raised as far as may be");
        let limit = current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        assert_eq!(allowed_connections(usize::MAX), limit - limit / 4);
    }
}
