//! Shows the fencing tokens in a store, and removes one.

use anyhow::bail;
use drydock_api::text::one_line;
use drydock_api::time::format_micros;
use drydock_storage::backend::{Backend, KeyValue};
use drydock_storage::fence::{self, Fences, StoredTerm};
use drydock_storage_etcd::MoveSource;
use drydock_storage_sqlite as sqlite;
use k8s_openapi::jiff::Timestamp;

use crate::flags::FencingTokensFlags;

/// Returns what is to be printed: a line for each token, or the one that was removed.
pub async fn run(flags: &FencingTokensFlags) -> anyhow::Result<String> {
    let stored = fence::terms(pairs(flags).await?)?;
    match &flags.reset {
        Some(user) => reset(flags, user, &stored).await,
        None if stored.is_empty() => Ok("no user has sent a fencing token".to_owned()),
        None => Ok(stored.iter().map(line).collect::<Vec<_>>().join("\n")),
    }
}

/// Reads the stored pairs, also while servers use the store.
async fn pairs(flags: &FencingTokensFlags) -> anyhow::Result<Vec<KeyValue>> {
    let storage = &flags.storage;
    if storage.is_etcd() {
        let source = MoveSource::inspect(&storage.etcd.config()).await?;
        return Ok(source.backend().range(fence::keys(), 0, None).await?.items);
    }
    Ok(sqlite::pairs_of(&storage.data_dir.file(), &fence::keys())?)
}

async fn reset(flags: &FencingTokensFlags, user: &str, stored: &[StoredTerm]) -> anyhow::Result<String> {
    // The store is opened, and so perhaps made, only if there is something to remove.
    if !stored.iter().any(|term| term.writer == user) {
        let users: Vec<_> = stored.iter().map(|term| one_line(&term.writer)).collect();
        bail!("user {} has sent no token, but only: {}", one_line(user), users.join(", "));
    }
    let fences = Fences::new(flags.storage.location(0).open().await?);
    let Some(term) = fences.reset(user).await? else { bail!("the token is not there any more") };
    let removed = line(&StoredTerm { writer: user.to_owned(), term });
    Ok(format!("removed {removed}: writes with older tokens are taken again, also those under way"))
}

/// The user, the token, and the time that it stands for.
fn line(stored: &StoredTerm) -> String {
    let micros = i64::try_from(stored.term).ok();
    let time = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let time = time.map_or_else(|| "after all times".to_owned(), format_micros);
    format!("{} {} ({time})", one_line(&stored.writer), stored.term)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use drydock_storage_etcd::testing::TestEtcd;

    use super::*;
    use crate::flags::{DataCommand, Flags};

    const MANAGER: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";
    const YEAR_2036: u64 = 2_082_758_400_000_000;

    async fn said(place: &[String], reset: Option<&str>) -> Result<String, String> {
        let mut arguments = vec!["drydock-apiserver".to_owned(), "fencing-tokens".to_owned()];
        arguments.extend(place.iter().cloned().chain(reset.map(|user| format!("--reset={user}"))));
        let Some(DataCommand::FencingTokens(flags)) = Flags::parse_from(arguments).command else {
            panic!("another command");
        };
        run(&flags).await.map_err(|error| format!("{error:#}"))
    }

    async fn store(place: &[String]) -> Result<Fences, String> {
        let command = ["drydock-apiserver".to_owned(), "reclaim".to_owned()];
        let parsed = Flags::parse_from(command.into_iter().chain(place.iter().cloned()));
        let Some(DataCommand::Reclaim(flags)) = parsed.command else { panic!("another command") };
        let backend = flags.storage.location(0).open().await;
        backend.map(Fences::new).map_err(|error| error.to_string())
    }

    /// The manager's token cannot be exceeded, or lies in 2036. The command shows it while a server runs.
    async fn shows_and_resets(place: &[String], is_shared: bool) {
        let server = store(place).await.unwrap();
        assert_eq!(said(place, None).await.unwrap(), "no user has sent a fencing token");
        server.enter("ann", YEAR_2036, YEAR_2036).await.unwrap();
        server.enter(MANAGER, u64::MAX, u64::MAX).await.unwrap();
        let shown = format!(
            "ann 2082758400000000 (2036-01-01T00:00:00.000000Z)\n{MANAGER} 18446744073709551615 (after all times)"
        );
        assert_eq!(said(place, None).await.unwrap(), shown);
        let mut server = Some(server);
        if !is_shared {
            let busy = said(place, Some(MANAGER)).await.unwrap_err();
            assert!(busy.contains("is in use by another process: stop it first"), "{busy}");
            server = None;
        }
        let stranger = said(place, Some("bob")).await.unwrap_err();
        assert!(stranger.contains("bob has sent no token") && stranger.contains(MANAGER), "{stranger}");
        let removed = said(place, Some(MANAGER)).await.unwrap();
        assert!(removed.starts_with(&format!("removed {MANAGER} 18446744073709551615")), "{removed}");
        assert_eq!(said(place, None).await.unwrap(), shown.split('\n').next().unwrap());
        let server = if let Some(running) = server { running } else { store(place).await.unwrap() };
        server.enter(MANAGER, 7, YEAR_2036).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_token_is_shown_beside_a_server_and_removed_from_a_store_that_none_has_open() {
        let directory = tempfile::tempdir().unwrap();
        let place = [format!("--data-dir={}", directory.path().join("data").display())];
        let absent = said(&place, Some(MANAGER)).await.unwrap_err();
        assert!(absent.contains("drydock.db"), "{absent}");
        assert!(!directory.path().join("data").exists(), "nothing is made");
        shows_and_resets(&place, false).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs etcd: conformance/test storage"]
    async fn a_token_is_removed_while_servers_use_the_etcd() {
        let etcd = TestEtcd::start();
        let config = etcd.config("/tokens");
        let place = [
            format!("--etcd-servers={}", config.servers.join(",")),
            format!("--etcd-prefix={}", config.prefix),
        ];
        shows_and_resets(&place, true).await;
    }
}
