//! The subcommand `remove`: connects as the user of a kubeconfig, and prints the lines of the removal.

use std::io::{self, Write};

use drydock_removal::{RemovalLine, RemovalMode, Urgency};
use drydock_serving::host;

use crate::flags::RemoveFlags;

/// Removes Drydock from the cluster that the flags name. Changes go to stdout, a line each; all else goes to stderr.
///
/// # Errors
/// No cluster is named, or not all of Drydock was removed.
pub async fn run(flags: &RemoveFlags) -> anyhow::Result<()> {
    let (file, context) = (flags.person.kubeconfig.as_deref(), flags.person.context.as_deref());
    let config = host::config_of_person("--kubeconfig", file, context).await?;
    let cluster = config.cluster_url.to_string();
    let client = host::client_of_person(config)?;
    let mode = if flags.dry_run { RemovalMode::DryRun } else { RemovalMode::Change };
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let _ = writeln!(err, "==> removing Drydock from {cluster}");
    drydock_removal::remove(&client, mode, &mut |line| print(&line, &mut out, &mut err)).await?;
    let _ = writeln!(io::stderr(), "==> {}", ended(mode));
    Ok(())
}

/// Prints a line. A closed pipe ends nothing: the removal goes on.
fn print(line: &RemovalLine, out: &mut impl Write, err: &mut impl Write) {
    let _ = match line.urgency {
        Urgency::Change => writeln!(out, "{}", line.text()),
        Urgency::Progress => writeln!(err, "==> {}", line.text()),
        Urgency::Problem => writeln!(err, "error: {}", line.text()),
    };
}

fn ended(mode: RemovalMode) -> &'static str {
    match mode {
        RemovalMode::DryRun => "nothing was changed: run it without --dry-run",
        RemovalMode::Change => {
            "Drydock is removed; bindings of its ClusterRoles that you made yourself stay, and grant nothing"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;
    use crate::flags::PersonFlags;

    /// A pipe that its reader has closed.
    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of a removal from a host that answers requests for the APIService with this code, and all others with 403.
    async fn refused(api_service: u16) -> Vec<RemovalLine> {
        let refuse = move |request: http::Request<kube::client::Body>| async move {
            let code = if request.uri().path().contains("/apiservices/") { api_service } else { 403 };
            let details = serde_json::json!({"name": "n", "kind": "k"});
            let status = serde_json::json!({"kind": "Status", "message": "no\u{1b}", "code": code, "details": details});
            let mut response = http::Response::new(kube::client::Body::from(status.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
            Ok::<_, kube::Error>(response)
        };
        let lines = Arc::<Mutex<Vec<RemovalLine>>>::default();
        let client = kube::Client::new(tower::service_fn(refuse), "default");
        let to = lines.clone();
        let mut keep = move |line| to.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        let error = drydock_removal::remove(&client, RemovalMode::Change, &mut keep).await;
        let told = error.map_or_else(|error| error.to_string(), |()| String::new());
        assert!(told.ends_with(": no "), "{told:?}");
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *lines)
    }

    #[tokio::test]
    async fn a_closed_pipe_ended_the_removal_in_the_middle() {
        let lines = refused(404).await;
        assert!(!lines.is_empty());
        lines.iter().for_each(|line| print(line, &mut ClosedPipe, &mut ClosedPipe));
    }

    /// Nothing is taken back while controllers may run, which would undo it.
    #[tokio::test]
    async fn a_removal_that_may_not_read_the_api_service_went_on() {
        assert_eq!(refused(403).await, []);
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_led_to_another_cluster() {
        let person = PersonFlags { kubeconfig: Some("/nonexistent/file".into()), context: None };
        let flags = RemoveFlags { dry_run: false, person };
        let error = run(&flags).await.map_or_else(|error| format!("{error:#}"), |()| String::new());
        assert!(error.starts_with("--kubeconfig: /nonexistent/file"), "{error}");
    }
}
