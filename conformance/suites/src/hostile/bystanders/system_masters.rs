//! Requests of a user of the group system:masters on a connection of its own to our port: never answered with 429.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio_util::sync::CancellationToken;

use super::{GUARD, RequestCount, pause};
use crate::client::{FlowWindows, UserConnection, UserRequest};
use crate::setup::{AttackSetup, USUAL_ADDRESS};

const PAUSE: Duration = Duration::from_millis(300);

/// Sends requests until it is over. A request is made again only if the server had no time for it (504).
pub async fn ask(setup: Arc<AttackSetup>, stop: CancellationToken) -> RequestCount {
    let path = format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION);
    let (mut count, mut connection) = (RequestCount::default(), None);
    loop {
        let began = Instant::now();
        let asked = tokio::time::timeout(GUARD, once(&setup, &mut connection, &path)).await;
        let failure = match asked {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{error:#}")),
            Err(_) => Some(format!("no answer within {GUARD:?}")),
        };
        count.note(began, failure);
        if pause(&stop, PAUSE).await {
            return count;
        }
    }
}

async fn once(setup: &AttackSetup, connection: &mut Option<UserConnection>, path: &str) -> Result<()> {
    let open = match connection.take().filter(|connection| !connection.is_closed()) {
        Some(open) => open,
        None => UserConnection::open(&setup.system_masters, USUAL_ADDRESS, None, FlowWindows::USUAL).await?,
    };
    let mut answer = open.ask(&UserRequest::get(path)).await?;
    while answer.is_undecided() {
        tokio::time::sleep(PAUSE).await;
        answer = open.ask(&UserRequest::get(path)).await?;
    }
    *connection = Some(open);
    ensure!(answer.code.is_success(), "{}", answer.summary());
    Ok(())
}
