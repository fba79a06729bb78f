//! Mirrors of devices on which software imposes windows.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Completion, Leaf, Limits, Operation, Span, Stack, Submit, Time};

use super::request;
use super::windowed::Device;
use crate::mirror::acknowledge::AcknowledgeConfig;
use crate::mirror::hedge::HedgeConfig;
use crate::mirror::read::ReadConfig;
use crate::mirror::windows::WindowsConfig;
use crate::mirror::{Mirror, MirrorParts, MirrorReport, ResyncConfig};
use crate::windowed::{WindowSettings, Windowed};

type Copy = Stack<Windowed, Device>;

/// A mirror of two devices with such windows.
struct Bench {
    stack: Stack<Mirror, Copy>,
    data: Arena,
    next: u64,
    done: Vec<Completion>,
}

impl Bench {
    /// With windows in turn, or such as nobody commands.
    fn new(settings: &WindowSettings, windows: Option<&WindowsConfig>) -> Bench {
        let copy = || {
            let device = Device::default();
            Stack::new(Windowed::new(settings, device.limits()), vec![device])
        };
        let copies = vec![copy(), copy()];
        let limits: Vec<Limits> = copies.iter().map(Leaf::limits).collect();
        let parts = MirrorParts {
            reader: ReadConfig::default().policy().build(Vec::new()),
            hedge: HedgeConfig::default().policy().build(),
            acknowledge: AcknowledgeConfig::default(),
            ranges: &[],
            resync: &ResyncConfig::default(),
            turns: windows.and_then(|windows| windows.policy().build()),
            sets: &[1, 1],
        };
        let mirror = Mirror::new(parts, &limits, 2).expect("a mirror");
        Bench { stack: Stack::new(mirror, copies), data: Arena::new(), next: 0, done: Vec::new() }
    }

    /// Goes on to `now` and asks for pages there.
    fn ask(&mut self, now: Time, operation: Operation, page: u64, pages: u32) {
        self.stack.advance(now, &mut self.data, &mut self.done);
        let mut request = request(self.next, 0, operation, page, pages);
        if operation == Operation::Flush {
            (request.lba.0, request.sectors) = (0, 0);
        }
        self.next += 1;
        assert_eq!(self.stack.submit(now, &request, &mut self.data), Submit::Accepted);
    }

    /// One change of a page every 5 us for 20 ms; all of them end.
    fn change(mut self, operation: Operation) -> MirrorReport {
        (0..4_000).for_each(|number| self.ask(Time(number * 5_000), operation, number % 500, 1));
        self.stack.advance(Time(10_000_000_000), &mut self.data, &mut self.done);
        assert_eq!(self.done.len(), 4_000);
        self.stack.stage().report().clone()
    }
}

fn in_turn() -> WindowsConfig {
    serde_json::from_value(serde_json::json!({ "policy": "alternate", "rest": "1ms" })).expect("a policy")
}

/// Once it waited for all that was on its way.
#[test]
fn a_flush_passes_what_nobody_has_acknowledged() {
    let mut bench = Bench::new(&WindowSettings::default(), None);
    bench.ask(Time(0), Operation::Write, 0, 1);
    bench.ask(Time(1), Operation::Flush, 0, 0);
    for copy in bench.stack.children() {
        let begun: Vec<Time> = copy.children().flat_map(|device| device.begun()).collect();
        assert_eq!(begun, [Time(0), Time(1)]);
    }
}

/// Trims were not counted, and so ended windows; nor was room that is no whole page of the flash.
#[test]
fn whatever_a_window_holds_back_a_mirror_keeps_to() {
    // A millisecond brings 200 changes: more than a window has room for.
    for held in [Bytes(4 << 10), Bytes(12 << 10), Bytes(64 << 10)] {
        let settings = WindowSettings { held, time_maximum: Span::from_ms(10), ..WindowSettings::default() };
        for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
            let report = Bench::new(&settings, Some(&in_turn())).change(operation);
            assert!(report.windows_begun > 4 && report.changes_held_for_windows > 100, "{report:?}");
            let ended = (report.windows_ended_early, report.none_deterministic);
            assert_eq!(ended, (0, 0), "{held} {operation:?}: {report:?}");
        }
    }
}
