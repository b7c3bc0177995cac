//! The rows of the table: one file each. A row says what it does with one subject; rounds, turns and the report
//! are the same for all.

mod apply;
mod create_many;
mod create_one;
mod fan_out;
mod get;
mod list;
mod lists_at_once;
mod memory;
mod noisy_user;
mod reconnect;
mod refused;
mod restart;
mod slow_disk;
mod stalled;
mod status_stream;
mod swap;
mod writer_among_readers;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;

use crate::Arguments;
use crate::client::SubjectClient;
use crate::load::{ClientLoad, LoadLimit};
use crate::sample::{Sample, SampleFigure};
use crate::subject::{SubjectServer, Used, Who};
use status_stream::{Case, StatusStreamRow};

/// A subject and connections to it.
pub struct Subject {
    /// Who is measured.
    pub server: SubjectServer,
    /// Its client.
    pub client: Arc<dyn SubjectClient>,
}

impl Subject {
    /// Servers close connections that were idle while the others had their turn.
    pub async fn reconnect(&mut self, lanes: usize) -> Result<()> {
        self.client = self.server.connect(lanes).await?;
        Ok(())
    }
}

/// One row, or one case of a row that has several.
#[async_trait(?Send)]
pub trait BenchRow {
    /// Its number.
    fn number(&self) -> u8;
    /// What is measured.
    fn title(&self) -> String;
    /// What it should come to.
    fn goals(&self) -> Vec<FigureGoal>;
    /// Who takes part.
    fn takes(&self, who: Who) -> bool {
        who != Who::SlowDisk
    }
    /// Whether servers have the limits on requests in flight that they have by default. Otherwise no row reaches them.
    fn default_limits(&self) -> bool {
        false
    }
    /// Before the first round: what must be there.
    async fn prepare(&self, subject: &Subject) -> Result<()>;
    /// One measurement.
    async fn measure(&self, subject: &Subject) -> Result<Sample>;
    /// After the last round: that what was delivered is what it had to be.
    async fn verify(&self, subject: &Subject) -> Result<()>;
    /// Connections that its clients share.
    fn lanes(&self) -> usize;
}

/// A bound on a subject's figure.
#[derive(Clone, Copy, Debug)]
pub struct FigureGoal {
    /// The subject that the figure is of.
    pub who: Who,
    /// Which figure.
    pub figure: SampleFigure,
    /// The bound of the figure.
    pub bound: Bound,
}

/// What a figure may come to.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// So many times another's.
    Times(f64, Who),
    /// The number itself: for what does not depend on the machine.
    Number(f64),
    /// No less than so many times another's.
    AtLeast(f64, Who),
}

impl FigureGoal {
    const fn cpu(who: Who, against: Who, at_most: f64) -> Self {
        Self { who, figure: SampleFigure::Cpu, bound: Bound::Times(at_most, against) }
    }

    /// What is complete and correct may cost twice what its libraries cost by themselves.
    const fn above_lower_bound() -> Self {
        Self::cpu(Who::Sqlite, Who::LowerBound, 2.0)
    }

    const fn number(who: Who, figure: SampleFigure, at_most: f64) -> Self {
        Self { who, figure, bound: Bound::Number(at_most) }
    }
}

/// All rows that there are, in order.
pub fn all(arguments: &Arguments) -> Vec<Box<dyn BenchRow>> {
    let limit =
        LoadLimit { operations: arguments.operations, time: Duration::from_secs(arguments.seconds.max(1)) };
    vec![
        Box::new(create_one::CreateOne::new(limit)),
        Box::new(create_many::CreateMany::new(64, limit)),
        Box::new(create_many::CreateMany::new(256, limit)),
        Box::new(slow_disk::SlowDisk::new(64, limit)),
        Box::new(slow_disk::SlowDisk::new(256, limit)),
        Box::new(swap::Swap::new(limit)),
        Box::new(get::Get::new(limit)),
        Box::new(list::ListRow::new(arguments.objects)),
        Box::new(lists_at_once::ListsAtOnce::new(arguments.objects)),
        Box::new(writer_among_readers::WriterAmongReaders::new(arguments.objects / 10, limit)),
        Box::new(fan_out::FanOut::new(20, limit)),
        Box::new(fan_out::FanOut::new(50, limit)),
        Box::new(fan_out::FanOut::new(200, limit)),
        Box::new(stalled::Stalled::new(limit)),
        Box::new(reconnect::Reconnect::resuming()),
        Box::new(reconnect::Reconnect::from_the_start()),
        Box::new(memory::MemoryRow::new(2 * arguments.objects)),
        Box::new(restart::Restart::new(arguments.stored_mib)),
        Box::new(StatusStreamRow::new(Case::Each, arguments, limit)),
        Box::new(StatusStreamRow::new(Case::Coalesced, arguments, limit)),
        Box::new(StatusStreamRow::new(Case::Stalled, arguments, limit)),
        Box::new(apply::Apply::new(limit)),
        Box::new(noisy_user::NoisyUser::new(limit)),
        Box::new(refused::RefusedRow::new(limit)),
    ]
}

/// A sample from a load and what was used before it.
fn sample(subject: &Subject, before: Used, load: &ClientLoad) -> Result<Sample> {
    let Subject { server, .. } = subject;
    let (after, memory) = (server.used()?, server.memory()?);
    let operations = load.latency.len();
    let each = |spent: Duration| spent.as_secs_f64() * 1e6 / operations.max(1) as f64;
    let (server, etcd) = (after.server.saturating_sub(before.server), after.etcd.saturating_sub(before.etcd));
    Ok(Sample {
        operations,
        seconds: load.elapsed.as_secs_f64(),
        cpu_us: each(server + etcd),
        server_cpu_us: each(server),
        p50_us: load.percentile(50.0),
        p99_us: load.percentile(99.0),
        resident_mib: memory.resident as f64 / 1024.0,
        peak_mib: memory.peak as f64 / 1024.0,
        ..Sample::default()
    })
}
