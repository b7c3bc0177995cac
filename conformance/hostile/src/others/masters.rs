//! system:masters on a connection of their own to our port: never told to come back later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio_util::sync::CancellationToken;

use super::{Count, GUARD, pause};
use crate::door::{Ask, Line, Windows};
use crate::setup::{AttackSetup, HOME};

const PAUSE: Duration = Duration::from_millis(300);

/// Asks until it is over; nothing is asked twice.
pub async fn ask(setup: Arc<AttackSetup>, stop: CancellationToken) -> Count {
    let path = format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION);
    let (mut count, mut line) = (Count::default(), None);
    loop {
        let began = Instant::now();
        let asked = tokio::time::timeout(GUARD, once(&setup, &mut line, &path)).await;
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

async fn once(setup: &AttackSetup, line: &mut Option<Line>, path: &str) -> Result<()> {
    let open = match line.take().filter(|line| !line.is_closed()) {
        Some(open) => open,
        None => Line::open(&setup.masters, HOME, None, Windows::USUAL).await?,
    };
    let answer = open.ask(&Ask::get(path)).await?;
    *line = Some(open);
    ensure!(answer.code.is_success(), "{}", answer.told());
    Ok(())
}
