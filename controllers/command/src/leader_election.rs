//! The lease that a program holds while its controllers act.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use drydock_command::duration;
use drydock_runtime::clock::Clock;
use drydock_runtime::lease::{LeadershipEnd, LeaseConfig, LeaseHandle};
use drydock_runtime::{ControllerContext, leading};
use kube::Client;

/// Flags of the lease, as Kubernetes' own controllers have them (k8s.io/component-base config/options).
#[derive(Clone, Debug, Args)]
pub struct LeaderElectionFlags {
    /// Act only while holding the Lease
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "drydock-system")]
    pub leader_elect_resource_namespace: String,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "drydock-controller-manager")]
    pub leader_elect_resource_name: String,
    /// How long other candidates wait after the holder's last renewal
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a holder that cannot renew the Lease continues to act
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// Time between attempts to renew or acquire the Lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,
}

impl LeaderElectionFlags {
    /// The handle of the lease, before it is held.
    pub fn lease(&self) -> LeaseHandle {
        match self.leader_elect {
            true => LeaseHandle::pending(Clock::SYSTEM),
            false => LeaseHandle::unelected(Clock::SYSTEM),
        }
    }

    /// Waits for the lease, unless the flags say to act without one, and runs the controllers until the program is stopped.
    /// `start` starts them and returns their names.
    ///
    /// # Errors
    /// The lease was lost, or a task of the context ended before shutdown. The process must end at once: another one may act
    /// by now, or a part of the work is not done any more.
    pub async fn lead(
        &self,
        context: &ControllerContext,
        client: &Client,
        start: impl FnOnce() -> Vec<&'static str>,
    ) -> anyhow::Result<()> {
        let lease = self.leader_elect.then(|| (client, self.config()));
        tokio::select! {
            end = leading::lead(context, lease, start) => match end {
                LeadershipEnd::Stopped => Ok(()),
                LeadershipEnd::Lost => bail!("the lease was lost"),
            },
            failure = context.tasks.failed() => Err(failure.into()),
        }
    }

    fn config(&self) -> LeaseConfig {
        LeaseConfig {
            duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            ..LeaseConfig::new(
                &self.leader_elect_resource_namespace,
                &self.leader_elect_resource_name,
                &leading::identity(),
            )
        }
    }

    /// Returns the error about flags that contradict each other, if some do.
    pub fn contradiction(&self) -> Option<&'static str> {
        if self.leader_elect_lease_duration <= self.leader_elect_renew_deadline {
            return Some("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline");
        }
        (self.leader_elect_renew_deadline <= self.leader_elect_retry_period)
            .then_some("--leader-elect-renew-deadline must be longer than --leader-elect-retry-period")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use drydock_runtime::testing;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        lease: LeaderElectionFlags,
    }

    async fn broken() {
        panic!("broken");
    }

    /// A cache whose reflector had panicked stayed as it was, and the controllers went on with it.
    #[tokio::test]
    async fn a_task_that_panics_ends_the_program_with_an_error_that_names_it() {
        let context = testing::context(|_, _, _| testing::failure(404, "NotFound"));
        let lease = Program::try_parse_from(["program", "--leader-elect=false"]).unwrap().lease;
        let start = || {
            context.tasks.spawn("reflector of pods", broken());
            vec!["a controller"]
        };
        let error = lease.lead(&context, &context.client, start).await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"reflector of pods\" panicked");
    }

    #[test]
    fn a_lease_must_outlast_its_holder_and_the_holder_its_attempts() {
        let why = |flag: &str| {
            let flags = Program::try_parse_from(["program", flag]);
            flags.map(|program| program.lease.contradiction()).unwrap_or(Some("not parsed"))
        };
        assert_eq!(why("--leader-elect=false"), None);
        let longer = |why: Option<&str>, flag| why.is_some_and(|why| why.starts_with(flag));
        assert!(longer(why("--leader-elect-lease-duration=10s"), "--leader-elect-lease-duration must be"));
        assert!(longer(why("--leader-elect-retry-period=10s"), "--leader-elect-renew-deadline must be"));
    }
}
