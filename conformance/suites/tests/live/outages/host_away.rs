//! A host that is not there yet, or goes away in the middle.

use anyhow::Result;
use drydock_testkit::host::TestHost;
use drydock_testkit::link::Link;
use drydock_testkit::wait::{LIMIT, https_answers, https_ready};

use crate::programs::setup::{APISERVER, MANAGER, ProgramSetup};
use crate::shared::shared;

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_waits_for_its_host_and_outlives_its_absence() -> Result<()> {
    let host = TestHost::shared().await?;
    let mut link = Link::new(&host.url)?;
    let program = ProgramSetup::new(&host, "host-away", APISERVER, &link.url).await?;
    let mut server = program.start(&[])?;
    // It says once what it misses, is alive, and takes no traffic yet.
    let away = format!("cannot reach {} (from --kubeconfig kubeconfig): ", link.url);
    server.says(&[&away, "connection refused; trying again"], 1).await?;
    https_ready(program.port, "/livez", LIMIT).await?;
    assert_eq!(https_answers(program.port, "/readyz").await?, 500);
    link.mend().await?;
    https_ready(program.port, "/readyz", LIMIT).await?;
    let again = format!("{} is reached again", link.url);
    server.says(&[&again], 1).await?;
    assert_eq!(server.said(&["cannot reach"]), 1, "once a change");

    link.cut();
    server.says(&[&away], 2).await?;
    // A probe needs no review by the host, and is still answered.
    https_ready(program.port, "/livez", LIMIT).await?;
    link.mend().await?;
    https_ready(program.port, "/readyz", LIMIT).await?;
    assert!(server.is_running()? && !server.has_panicked());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_manager_waits_for_its_host_and_goes_on() -> Result<()> {
    // It is ready once it knows our kinds, so the host has to serve them.
    let host = &shared().await?.drydock.host;
    let mut link = Link::new(&host.url)?;
    let program = ProgramSetup::new(host, "manager-waits", MANAGER, &link.url).await?;
    let manager = program.start(&[])?;
    let away = format!("cannot reach {} (from --kubeconfig kubeconfig): ", link.url);
    manager.says(&[&away, "connection refused; trying again"], 1).await?;
    https_ready(program.port, "/livez", LIMIT).await?;
    link.mend().await?;
    manager.says(&["API server answers"], 1).await?;
    https_ready(program.port, "/readyz", LIMIT).await?;
    manager.says(&["running"], 1).await?;
    assert!(!manager.has_panicked());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_manager_that_loses_its_lease_ends_and_says_so() -> Result<()> {
    let host = TestHost::shared().await?;
    let mut link = Link::new(&host.url)?;
    link.mend().await?;
    let program = ProgramSetup::new(&host, "manager-loses", MANAGER, &link.url).await?;
    let short = ["lease-duration=5s", "renew-deadline=3s", "retry-period=1s"];
    let manager = program.start(&short.map(|flag| format!("--leader-elect-{flag}")))?;
    manager.says(&["running"], 1).await?;
    link.cut();
    let ended = manager.ended().await?;
    let last = ended.lines.last().cloned().unwrap_or_default();
    assert_eq!(
        (ended.code, last.as_str()),
        (1, "drydock-controller-manager: the lease was lost"),
        "{ended:?}"
    );
    Ok(())
}
