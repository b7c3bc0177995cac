//! The other tenant's gRPC stream of its namespace.

use anyhow::Result;
use drydock_proto::status::v1alpha1::watch_evictions_response::Event;
use drydock_proto::status::v1alpha1::{Eviction, WatchEvictionsRequest, WatchEvictionsResponse};
use tokio::sync::watch::Receiver;

use super::other_tenant::{BEAT, OtherTenant};
use crate::client::{Calls, FlowWindows, call};
use crate::setup::USUAL_ADDRESS;

impl OtherTenant {
    /// Reads responses of one stream; Ok when nothing more will be written and all has been seen.
    pub(super) async fn follow_stream(
        &self,
        seen: &mut u64,
        written: &mut Receiver<(u64, bool)>,
    ) -> Result<()> {
        let connection =
            self.tenant.account().connect(&self.setup.direct, USUAL_ADDRESS, FlowWindows::USUAL).await?;
        let namespace = self.tenant.namespace.clone();
        let ask = call("WatchEvictions", &WatchEvictionsRequest { namespace, ..Default::default() });
        let mut calls = Calls::of(connection.send(&ask).await?)?;
        loop {
            let (last, more) = *written.borrow_and_update();
            if !more && *seen >= last {
                return Ok(());
            }
            let response: WatchEvictionsResponse = tokio::select! {
                response = calls.next() => response?,
                changed = written.changed() => { changed?; continue }
            };
            if let Some(Event::Updated(eviction)) = response.event {
                *seen = beat(&eviction).unwrap_or(*seen);
            }
        }
    }
}

/// The write that made this state.
fn beat(eviction: &Eviction) -> Option<u64> {
    let shown = eviction.maintenances.iter().find(|maintenance| maintenance.name == BEAT)?;
    shown.reason.parse().ok()
}
