//! What stages say of themselves when they are asked.

use flashkeel_engine::{
    Answer, Arena, Command, Durable, Leaf, Limits, Operation, Place, Refusal, Span, Stack, Stage, Stream,
    Submit, Time,
};

use super::barriers::Device;
use super::request;
use crate::blocks::WholeBlocks;
use crate::claim::Claim;
use crate::scheduler::{IoSchedulerConfig, Scheduling};
use crate::tier::admission::AdmissionConfig;
use crate::tier::budget::Ratings;
use crate::tier::eviction::EvictionConfig;
use crate::tier::overflow::OverflowConfig;
use crate::tier::placement::PlacementConfig;
use crate::tier::placement::write_back::WriteBack;
use crate::tier::writeback::WritebackConfig;
use crate::tier::{Plan, Tier};
use crate::volume::{VolumeConfig, VolumeManager};

/// The readings of a stage over two devices that have got some requests, as
/// (operation, page, pages), at the same time.
fn readings<S: Stage>(stage: S, requests: &[(Operation, u64, u32)]) -> Vec<(String, u64)> {
    let mut stack = Stack::new(stage, vec![Device::new(1), Device::new(2)]);
    let data = &mut Arena::new();
    for (id, &(operation, page, pages)) in (0..).zip(requests) {
        let request = request(id, 0, operation, page, pages);
        assert_eq!(stack.submit(Time(0), &request, data), Submit::Accepted);
    }
    let mut tell = |command| stack.command(Time(0), &Place::default(), &command, data);
    assert_eq!(tell(Command::ReadOnly(true)), Err(Refusal::Unknown));
    match tell(Command::State) {
        Ok(Answer::State(readings)) => readings,
        other => panic!("{other:?}"),
    }
}

fn expected<const N: usize>(readings: [(&str, u64); N]) -> Vec<(String, u64)> {
    readings.map(|(name, value)| (name.to_owned(), value)).into()
}

#[test]
fn every_stage_tells_its_state() {
    let limits = Device::new(0).limits();
    let writes = |count: u64| (0..count).map(|page| (Operation::Write, page, 1)).collect::<Vec<_>>();
    let flushed = [writes(3), vec![(Operation::Flush, 0, 0), (Operation::Read, 9, 1)]].concat();

    let claims = [Claim::default()];
    let order = IoSchedulerConfig::default().policy().build(&claims, None);
    let scheduling = Scheduling::new(order, 2);
    assert_eq!(readings(scheduling, &writes(5)), expected([("waiting", 3), ("at_device", 2)]));

    let volumes = VolumeConfig::default().policy().build(&[limits.sectors; 2], 1).expect("volumes");
    let manager = VolumeManager::new(volumes, None, &[limits; 2], 1);
    assert_eq!(readings(manager, &flushed), expected([("waiting", 2), ("inside", 3)]));

    // The first two meet in a block that is changed for one after the other.
    let blocks = WholeBlocks::new(Limits { block_sectors: 16, ..limits });
    let halves = [(Operation::Write, 0, 1), (Operation::Write, 1, 1), (Operation::Write, 4, 2)];
    assert_eq!(readings(blocks, &halves), expected([("waiting", 1), ("changing", 1)]));

    let limits = Limits { durable: Durable::Acknowledged, ..limits };
    let tier = Tier::new(Plan {
        lower: limits,
        upper: limits,
        placement: PlacementConfig::WriteBack(WriteBack::default())
            .policy()
            .build(None, Stream::new(1, "states")),
        takes_any: true,
        admission: AdmissionConfig::default().policy().build(),
        fills: false,
        eviction: EvictionConfig::default().policy().build(),
        demotes: false,
        writeback: WritebackConfig::default().policy().build(),
        ratings: Ratings::default(),
        overflow: OverflowConfig::default(),
        journal: false,
        kept: None,
    });
    let mut stack = Stack::new(tier, vec![Device::new(1), Device::new(2)]);
    let data = &mut Arena::new();
    for page in 0..4 {
        assert_eq!(
            stack.submit(Time(0), &request(page, 0, Operation::Write, page, 1), data),
            Submit::Accepted
        );
    }
    stack.advance(Time(0) + Span(1_000), data, &mut Vec::new());
    let Ok(Answer::State(found)) = stack.command(Time(1_000), &Place::default(), &Command::State, data)
    else {
        panic!("no state");
    };
    let reading = |name| found.iter().find(|(other, _)| other == name).expect(name).1;
    assert_eq!(reading("upper_pages"), stack.stage().upper_pages());
    assert!(reading("modified_pages") <= 4 && reading("recovering") == 0);
}
