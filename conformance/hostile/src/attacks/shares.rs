//! Whoever is many gets no more than whoever is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use futures::future::join_all;

use super::stock::{Findings, lay_in, uid};
use crate::attack::{Attack, Finding};
use crate::door::{Ask, Line};
use crate::field::{Field, LAIR};
use crate::stage::Account;

/// Reads at a time of each tenant; both together want more places than there are.
const LANES: usize = 400;
/// Streams on a connection.
const STREAMS: usize = 100;

/// These attacks.
pub fn all() -> Vec<Attack> {
    vec![Attack::new("many-accounts", "a tenant with a thousand accounts beside one with one", |f| {
        Box::pin(many_accounts(f))
    })]
}

/// Both read one request of their own, on as many streams of as many connections. The accounts together get no more
/// than the one, but for what chance gives: twice as much, where two hundred flows would get two hundred times as much.
async fn many_accounts(field: Field) -> Findings {
    let name = format!("{}-many", field.tenant.namespace);
    let many = field.of(Arc::new(field.stage.tenant(&name, field.pick(200, 1_000)).await?));
    lay_in(&field, 1, 10_000).await?;
    lay_in(&many, 1, 10_000).await?;
    // Nobody has to wait until the host has looked at a token.
    let line = field.stranger(&field.stage.direct, LAIR).await?;
    for account in &many.tenant.accounts {
        line.ask_again(&read(&many, account)).await?;
    }
    let (one, all) = tokio::join!(reads(&field), reads(&many));
    let (one, all) = (one?, all?);
    field.say(format!("one account got {one} reads, many got {all}"));
    let told = format!("one account got {one} reads, many accounts of one tenant {all}");
    Ok(vec![Finding::new(all <= 2 * one, told)])
}

/// The answers that a tenant gets until the time is over.
async fn reads(field: &Field) -> Result<usize> {
    let count = LANES / STREAMS;
    let lines = join_all((0..count).map(|_| field.stranger(&field.stage.direct, LAIR))).await;
    let lines = Arc::new(lines.into_iter().collect::<Result<Vec<Line>>>()?);
    let (each, got) = (field.clone(), Arc::new(AtomicUsize::new(0)));
    let total = got.clone();
    field
        .storm(LANES, move |lane, round| {
            let (field, lines, got) = (each.clone(), lines.clone(), got.clone());
            async move {
                let accounts = &field.tenant.accounts;
                let ask = read(&field, &accounts[(lane + round) % accounts.len()]);
                let answer = lines[lane % count].ask(&ask).await;
                let good = answer.as_ref().is_ok_and(|answer| answer.code.is_success());
                got.fetch_add(usize::from(good), Ordering::Relaxed);
                field.note(&answer);
                answer.map(drop)
            }
        })
        .await;
    Ok(total.load(Ordering::Relaxed))
}

fn read(field: &Field, account: &Account) -> Ask {
    Ask::get(field.tenant.request(&uid(0))).with("authorization", format!("Bearer {}", account.token))
}
