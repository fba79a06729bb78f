//! What is said to hold nothing, or nothing but zeros, is read as zeros, whatever stands
//! over the drives.

use flashkeel_config::{Node, Origin};
use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::{
    Arena, Holds, LOGICAL_PAGE_SECTORS, Lba, Operation, Payload, Request, RequestId, Status, Stream, Submit,
    Time,
};
use serde_json::{Value, json};

use super::small_ssd;
use crate::device::{Device, DeviceKind, Maker};

/// Pages of a device, and sectors of a page.
const PAGES: u64 = 1024;
const PAGE: u64 = LOGICAL_PAGE_SECTORS;

fn devices() -> Vec<(&'static str, Value)> {
    let ssd = small_ssd();
    let nvm = json!({ "nvm": { "capacity": "1MiB" } });
    let dram = json!({ "dram": { "capacity": "512KiB" } });
    let tier = |preset: &str, upper: &Value, lower: &Value| json!({ "tier": { "preset": preset, "upper": upper, "lower": lower } });
    let both = json!({ "tier": { "upper": nvm, "lower": ssd } });
    vec![
        ("one", json!({ "stack": { "devices": [ssd] } })),
        (
            "striped",
            json!({ "stack": { "devices": [ssd, ssd], "volumes": { "policy": "striped", "chunk": "16KiB" } } }),
        ),
        ("tier", tier("write-back", &nvm, &ssd)),
        ("nested", tier("oc", &dram, &both)),
        ("mirror", json!({ "mirror": { "devices": [ssd, ssd] } })),
        ("network", json!({ "network": { "device": tier("write-back", &nvm, &ssd) } })),
    ]
}

fn build(device: Value) -> Box<dyn Device> {
    let mut node = Node::from_json(device, &Origin::Default);
    DeviceKind::expand(&mut node, "device", None).unwrap_or_else(|error| panic!("{error}"));
    let kind: DeviceKind = node.read().unwrap_or_else(|error| panic!("{error}"));
    let mut fresh = |config: &DeviceConfig, seed| Ok(Ssd::new(&config.validate()?, seed));
    let mut device = kind.build(&mut Maker::new(1, &mut fresh)).expect("a device");
    device.keep_data();
    device
}

/// Who asks for one thing after the other.
struct Client {
    device: Box<dyn Device>,
    data: Arena,
    now: Time,
    requests: u64,
}

impl Client {
    /// Asks, and waits for the end.
    fn ask(&mut self, operation: Operation, from: u64, sectors: u64, payload: Payload) {
        let (id, mut ended) = (RequestId(self.requests), Vec::new());
        self.requests += 1;
        let request = Request { payload, ..Request::new(id, operation, Lba(from), sectors as u32) };
        assert_eq!(self.device.submit(self.now, &request, &mut self.data), Submit::Accepted);
        while ended.is_empty() {
            let next = self.device.advance_to_completion(Time::MAX, &mut self.data, &mut ended);
            self.now = next.expect("it ends");
        }
        assert_eq!(ended[0].status, Status::Ok);
    }

    /// Asks for nothing for a while.
    fn rest(&mut self, ns: u64) {
        self.now = Time(self.now.0 + ns);
        self.device.advance(self.now, &mut self.data, &mut Vec::new());
    }

    fn write(&mut self, from: u64, sectors: u64) {
        let payload = self.data.take(sectors as u32);
        self.data.write(payload, sectors as u32).expect("room").fill(7);
        self.ask(Operation::Write, from, sectors, payload);
        self.data.give_back(payload);
    }

    /// Whether a range reads as zeros.
    fn is_zero(&mut self, from: u64, sectors: u64) -> bool {
        let payload = self.data.take(sectors as u32);
        self.ask(Operation::Read, from, sectors, payload);
        let is_zero = self.data.read(payload, sectors as u32).expect("bytes").iter().all(|&byte| byte == 0);
        self.data.give_back(payload);
        is_zero
    }
}

#[test]
fn what_is_said_to_hold_nothing_reads_as_zeros() {
    for (name, device) in devices() {
        let mut client = Client { device: build(device), data: Arena::new(), now: Time::ZERO, requests: 0 };
        let mut random = Stream::new(1, name);
        let mut known = 0;
        for _ in 0..3_000 {
            let pages = random.between(1, 8);
            let (from, sectors) = (random.below(PAGES - pages) * PAGE, pages * PAGE);
            match random.below(8) {
                0..=2 => client.write(from, sectors),
                3 | 4 => client.ask(Operation::Trim, from, sectors, Payload::NONE),
                5 => client.ask(Operation::WriteZeroes, from, sectors, Payload::NONE),
                6 => client.rest(random.below(20_000_000)),
                _ => {
                    let (alike, holds) = client.device.holds(Lba(from), sectors as u32);
                    assert!((1..=sectors).contains(&u64::from(alike)), "{name}: {alike} of {sectors}");
                    if holds != Holds::Data {
                        known += 1;
                        assert!(client.is_zero(from, alike.into()), "{name}: {alike} from {from}");
                    }
                }
            }
        }
        assert!(known > 50, "{name}: {known}");
    }
}
