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
    /// The lease was lost. The process must end at once: another one may act by now.
    pub async fn lead(
        &self,
        context: &ControllerContext,
        client: &Client,
        start: impl FnOnce() -> Vec<&'static str>,
    ) -> anyhow::Result<()> {
        let lease = self.leader_elect.then(|| (client, self.config()));
        match leading::lead(context, lease, start).await {
            LeadershipEnd::Stopped => Ok(()),
            LeadershipEnd::Lost => bail!("the lease was lost"),
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

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        lease: LeaderElectionFlags,
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
