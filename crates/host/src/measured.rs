//! What the driver wants from a leaf besides serving requests.

use flashkeel_engine::{Leaf, Time};
use serde_json::{Map, Value};

use crate::device::{Device, DeviceKind, REPORTED};
use crate::part::Part;

/// A leaf with instruments.
pub trait Measured: Leaf {
    /// Names of the gauges, in order.
    fn gauge_names(&self) -> Vec<String>;

    /// Reads the gauges into `values`.
    fn gauges(&self, values: &mut Vec<u64>);

    /// The warm-up is over now: count anew.
    fn start_measuring(&mut self, now: Time);

    /// The final counters, in a fixed order, for the digest.
    fn final_counters(&self) -> Vec<u64>;
}

/// The parts of a device, in the order of their kinds.
pub fn parts(device: &(impl Device + ?Sized)) -> Vec<&dyn Part> {
    let mut parts = Vec::new();
    device.parts(&mut parts);
    parts.sort_by_key(|part| DeviceKind::NAMES.iter().position(|name| *name == part.kind()));
    parts
}

/// What each part of a device has done, by kind and number.
pub fn reports(device: &(impl Device + ?Sized)) -> Map<String, Value> {
    let mut reports = Map::new();
    for kind in REPORTED {
        reports.insert(format!("{kind}s"), Value::Object(Map::new()));
    }
    for part in parts(device) {
        let of_kind = reports.entry(format!("{}s", part.kind())).or_insert_with(|| Value::Object(Map::new()));
        let of_kind = of_kind.as_object_mut().expect("a table by number");
        of_kind.insert(of_kind.len().to_string(), part.report());
    }
    reports
}

impl<D: Device + ?Sized> Measured for D {
    /// What policies hold, if there are any: `waiting_on_host` and `nvm_pages`.
    /// Then the gauges of each part; where there are several of a kind, after
    /// its kind and number.
    fn gauge_names(&self) -> Vec<String> {
        let held = self.held().map(|_| ["waiting_on_host".to_owned(), "nvm_pages".to_owned()]);
        let mut names: Vec<String> = held.into_iter().flatten().collect();
        let parts = parts(self);
        for (index, part) in parts.iter().enumerate() {
            let alike = |other: &&&dyn Part| other.kind() == part.kind();
            let several = parts.iter().filter(alike).count() > 1;
            let number = parts[..index].iter().filter(alike).count();
            let prefix = if several { format!("{}{number}_", part.kind()) } else { String::new() };
            names.extend(part.gauge_names().into_iter().map(|name| prefix.clone() + &name));
        }
        names
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
        values.extend(self.held().into_iter().flat_map(|held| [held.requests, held.upper_pages]));
        let mut each = Vec::new();
        for part in parts(self) {
            part.gauges(&mut each);
            values.append(&mut each);
        }
    }

    fn start_measuring(&mut self, now: Time) {
        self.reset_counters(now);
    }

    fn final_counters(&self) -> Vec<u64> {
        parts(self).iter().flat_map(|part| part.counters()).collect()
    }
}
