//! The kubelet: a new connection for each probe, no credentials.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio_util::sync::CancellationToken;

use super::{GUARD, RequestCount, pause};
use crate::client::RawHttp;
use crate::setup::AttackSetup;

const PAUSE: Duration = Duration::from_millis(200);

/// Probes from an address until it is over.
pub async fn probe(setup: Arc<AttackSetup>, from: Ipv4Addr, stop: CancellationToken) -> RequestCount {
    let mut count = RequestCount::default();
    for path in ["/livez", "/readyz"].into_iter().cycle() {
        let began = Instant::now();
        let asked = tokio::time::timeout(GUARD, once(&setup, from, path)).await;
        let failure = match asked {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{path} from {from}: {error:#}")),
            Err(_) => Some(format!("{path} from {from}: no answer within {GUARD:?}")),
        };
        count.note(began, failure);
        if pause(&stop, PAUSE).await {
            break;
        }
    }
    count
}

async fn once(setup: &AttackSetup, from: Ipv4Addr, path: &str) -> Result<()> {
    let mut raw = RawHttp::open(&setup.direct, from).await?;
    raw.write(format!("GET {path} HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n")).await?;
    let code = raw.code().await?;
    ensure!(code == 200, "{code}");
    Ok(())
}
