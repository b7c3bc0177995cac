//! Whoever is many gets no more than whoever is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use http_body_util::BodyExt;

use super::stock::{Findings, lay_in};
use crate::attack::{Attack, Finding};
use crate::door::{Ask, Line, Windows};
use crate::field::{Field, LAIR};
use crate::stage::Tenant;

/// Lists at a time of each tenant: more seats than there are.
const LANES: usize = 64;
/// Objects, and bytes of each: a list of 2 MB.
const STOCK: (usize, usize) = (50, 40_000);

/// These attacks.
pub fn all() -> Vec<Attack> {
    vec![Attack::new("many-accounts", "a tenant with a thousand accounts beside one with one", |f| {
        Box::pin(many_accounts(f))
    })]
}

/// Both ask for the same lists with as many requests at a time: each account of the one has lanes of its own, and so
/// the accounts together many times those of the other.
async fn many_accounts(field: Field) -> Findings {
    let name = format!("{}-many", field.tenant.namespace);
    let many = Arc::new(field.stage.tenant(&name, field.pick(200, 1_000)).await?);
    let theirs = field.of(many.clone());
    lay_in(&field, STOCK.0, STOCK.1).await?;
    lay_in(&theirs, STOCK.0, STOCK.1).await?;
    let one = Arc::new(AtomicUsize::new(0));
    let all = Arc::new(AtomicUsize::new(0));
    tokio::join!(
        ask(&field, field.tenant.clone(), LANES, one.clone()),
        ask(&theirs, many, 4 * LANES, all.clone()),
    );
    let (one, all) = (one.load(Ordering::Relaxed), all.load(Ordering::Relaxed));
    let fair = all <= one + one / 2 + LANES / 2;
    field.count(&format!("one account got {one} lists, many got {all}"));
    Ok(vec![Finding::new(fair, format!("one account got {one} lists, many accounts of one tenant {all}"))])
}

async fn ask(field: &Field, tenant: Arc<Tenant>, lanes: usize, got: Arc<AtomicUsize>) {
    let each = field.clone();
    field
        .storm(lanes, move |lane, _| {
            let (field, tenant, got) = (each.clone(), tenant.clone(), got.clone());
            async move {
                let account = &tenant.accounts[lane % tenant.accounts.len()];
                let line = account.line(&field.stage.direct, LAIR, Windows::USUAL).await?;
                list(&line, &tenant, &got).await
            }
        })
        .await;
}

/// Lists until something breaks.
async fn list(line: &Line, tenant: &Tenant, got: &AtomicUsize) -> Result<()> {
    loop {
        let answer = line.send(&Ask::get(tenant.requests())).await?;
        let good = answer.status().is_success();
        answer.into_body().collect().await?;
        got.fetch_add(usize::from(good), Ordering::Relaxed);
    }
}
