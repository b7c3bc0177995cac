//! The embedded store's file, when it is not ours, or another process has it open.

use anyhow::Result;
use drydock_testkit::host::TestHost;
use drydock_testkit::program::folder;
use drydock_testkit::wait::https_ready;

use super::setup::{APISERVER, ProgramSetup};
use crate::shared::LIMIT;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_ours_is_refused_and_left_as_it_is() -> Result<()> {
    let host = TestHost::shared().await?;
    let program = ProgramSetup::new(&host, "foreign-file", APISERVER, &host.url).await?;
    let file = folder(&program.dir, "data")?.join("drydock.db");
    let mut others = b"SQLite format 3\0".to_vec();
    others.resize(8192, 0);
    for (content, why) in [
        (b"notes of somebody".to_vec(), "is not a SQLite file"),
        (vec![b'x'; 8192], "is not a SQLite file"),
        (others, "is a SQLite file of another application"),
    ] {
        std::fs::write(&file, &content)?;
        let ended = program.start(&[])?.ended().await?;
        let last = ended.lines.last().cloned().unwrap_or_default();
        assert!(
            ended.code == 1 && last.starts_with("drydock-apiserver: --data-dir: cannot use"),
            "{ended:?}"
        );
        assert!(last.contains(why), "{last}");
        assert!(std::fs::read(&file)? == content, "{why}: the file was changed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_is_refused_to_a_second_process_and_the_first_goes_on() -> Result<()> {
    let host = TestHost::shared().await?;
    let first = ProgramSetup::new(&host, "file-in-use", APISERVER, &host.url).await?;
    let mut running = first.start(&[])?;
    https_ready(first.port, "/readyz", LIMIT).await?;
    let second = ProgramSetup::new(&host, "file-in-use-too", APISERVER, &host.url).await?;
    let data = format!("--data-dir={}", first.dir.join("data").display());
    let flags: Vec<String> =
        second.flags.iter().filter(|flag| !flag.starts_with("--data-dir")).cloned().collect();
    let ended = ProgramSetup { flags, ..second }.start(&[data])?.ended().await?;
    let last = ended.lines.last().cloned().unwrap_or_default();
    assert!(ended.code == 1 && last.contains("drydock.db is in use by another process"), "{ended:?}");
    assert!(running.is_running()?);
    https_ready(first.port, "/readyz", LIMIT).await
}
