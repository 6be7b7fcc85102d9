//! The same pushes straight at the APNs simulator and through the relay.

use std::{sync::Arc, time::Duration};

use super::{
    Options, Place,
    measurement::Measurement,
    straight::Straight,
    targets::{INSTANCES, apple_token, in_turn},
    through::{Devices, Through, keys},
};
use crate::{
    report,
    run::{self, Pace},
};

const SECONDS: u64 = 10;
const WARM_UP: Duration = Duration::from_secs(2);

/// Measures and prints.
pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    let place = Place::start(&[]).await?;
    let straight = Arc::new(Straight::new(&place.simulators).await?);
    let devices = Devices {
        platform: "ios",
        target: in_turn,
        token: Box::new(apple_token),
    };
    let keys = keys(&place.secret, INSTANCES)?;
    let through = Arc::new(Through::new(&place.relay, keys, devices)?);
    let process = &place.relay.process;
    let mut report = Vec::new();
    let duration = Duration::from_secs(options.seconds.unwrap_or(SECONDS));
    for pace in [Pace::Callers(options.callers), Pace::PerSecond(options.rate)] {
        run::run(Arc::clone(&straight), pace, WARM_UP).await?;
        let measured = run::run(Arc::clone(&straight), pace, duration).await?;
        report.push(Measurement::new("straight at the simulator", pace, &measured));
        run::run(Arc::clone(&through), pace, WARM_UP).await?;
        let before = process.cpu_seconds()?;
        let measured = run::run(Arc::clone(&through), pace, duration).await?;
        let cpu = process.cpu_seconds()? - before;
        let row = Measurement::new("through the relay", pace, &measured);
        report.push(row.with_process(&measured, cpu, process.resident_kib()?));
    }
    report::print(&report, options.json)?;
    place.stop().await;
    Ok(())
}
