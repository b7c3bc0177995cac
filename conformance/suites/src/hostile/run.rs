//! One attack after the other, each with a tenant of its own and the same bystanders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use drydock_testkit::finding::Finding;

use crate::Flags;
use crate::attack::Attack;
use crate::bystanders::{Bystanders, OtherTenant, SmallDrain};
use crate::context::{ATTACKER_ADDRESS, AttackContext, AttackSize};
use crate::judge::AttackResult;
use crate::report;
use crate::setup::{AttackSetup, MemoryGauge, Tenant, USUAL_ADDRESS};

/// An attack that has not ended by then hangs: in the short form, and in the long form.
const GUARD: [Duration; 2] = [Duration::from_secs(1_200), Duration::from_secs(3_600)];
/// A server that holds more MiB than this after an attack is restarted, so that the next attack is judged by itself.
const HEAVY: u64 = 150;
/// Runs before all attacks: the figures of the bystanders to compare with.
const CALM: Attack = Attack::new("calm", "nothing", |context| Box::pin(calm(context)));

/// Runs them, and returns whether none did harm.
pub async fn run(attacks: &[Attack], flags: &Flags, size: AttackSize) -> Result<bool> {
    println!("starting a host and Drydock");
    let setup = Arc::new(AttackSetup::start(flags.storage).await?);
    println!("logs are in {}/logs while this runs; DRYDOCK_KEEP=1 keeps them", setup.folder());
    let other_tenant = Arc::new(OtherTenant::start(&setup).await?);
    let drained = Arc::new(setup.tenant("drained", 1).await?);
    let length = Duration::from_secs(flags.seconds);
    let until = Instant::now() + Duration::from_secs(60 * flags.minutes.unwrap_or_default());
    let mut all = Vec::new();
    for round in 0.. {
        for attack in [&CALM].into_iter().chain(attacks) {
            let scene =
                Scene { setup: &setup, other_tenant: &other_tenant, drained: &drained, size, length, round };
            let result = scene.play(attack).await.with_context(|| setup.log_tail())?;
            report::print(&result);
            all.push(result);
        }
        if Instant::now() >= until {
            break;
        }
    }
    report::table(&all)
}

async fn calm(context: AttackContext) -> Result<Vec<Finding>> {
    context.wait().await;
    context.say("nobody asked anything".into());
    Ok(Vec::new())
}

/// What attacks share.
struct Scene<'s> {
    setup: &'s Arc<AttackSetup>,
    other_tenant: &'s Arc<OtherTenant>,
    drained: &'s Arc<Tenant>,
    size: AttackSize,
    length: Duration,
    round: usize,
}

impl Scene<'_> {
    async fn play(&self, attack: &Attack) -> Result<AttackResult> {
        let name = format!("{}-{}", attack.name, self.round);
        if attack.small_store {
            self.setup.restart_with_small_store().await?;
        }
        let tenant = Arc::new(self.setup.tenant(&name, 1).await?);
        let drain = SmallDrain { name: format!("drain-{name}"), tenant: self.drained.clone() };
        drain.prepare(self.setup).await?;
        let context = AttackContext::new(self.setup.clone(), tenant, self.size, self.length);
        let memory = MemoryGauge::of(self.setup.pid().context("our API server does not run")?)?;
        let (began, reviews) = (Instant::now(), self.setup.reviews().await?);
        let panics = self.setup.panics();
        let bystanders =
            Bystanders::start(self.setup, self.other_tenant, drain, [USUAL_ADDRESS, ATTACKER_ADDRESS])?;
        let findings = self.attack(attack, &context).await;
        // In this order: all that is counted came within the time.
        let reviews = self.setup.reviews().await? - reviews;
        let length = began.elapsed();
        let bystanders = bystanders.end().await?;
        let (peak, killed) = memory.peak();
        let result = AttackResult {
            name: attack.name,
            peak,
            panics: self.setup.panics().saturating_sub(panics),
            survived: !killed && self.setup.pid().is_some(),
            reviews,
            length,
            bystanders,
            summary: context.summary(),
            fault: context.fault(),
            harm: Vec::new(),
        };
        let result = result.judge(attack, self.size, findings);
        self.tidy(attack, &result).await?;
        Ok(result)
    }

    async fn attack(&self, attack: &Attack, context: &AttackContext) -> Vec<Finding> {
        let guard = context.pick(GUARD[0], GUARD[1]);
        match tokio::time::timeout(guard, (attack.run)(context.clone())).await {
            Ok(Ok(findings)) => findings,
            Ok(Err(error)) => {
                vec![Finding::new(false, format!("the attack could not go on: {error:#}"))]
            }
            Err(_) => vec![Finding::new(false, format!("the attack did not end within {guard:?}"))],
        }
    }

    /// Restarts a server that was harmed or holds much, so that the next attack is judged by itself.
    async fn tidy(&self, attack: &Attack, result: &AttackResult) -> Result<()> {
        if attack.small_store || !result.harm.is_empty() || self.setup.resident() > HEAVY {
            self.setup.restart().await?;
        }
        Ok(())
    }
}
