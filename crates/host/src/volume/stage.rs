//! The volume manager as a stage: from a tenant's addresses to the devices'.

use flashkeel_engine::{Completion, Lba, Ledger, Operation, Outbox, Request, Stage, Status, Submit, Time};

use super::Volumes;
use crate::parts::Parts;

/// Sends each request, in parts where it crosses from one stretch of its volume
/// to the next, to the devices; a flush to all of them.
pub(crate) struct VolumeManager {
    volumes: Box<dyn Volumes>,
    devices: usize,
    parts: Parts,
}

impl VolumeManager {
    pub fn new(volumes: Box<dyn Volumes>, devices: usize) -> VolumeManager {
        VolumeManager { volumes, devices, parts: Parts::default() }
    }
}

impl Stage for VolumeManager {
    fn submit(&mut self, now: Time, request: &Request, outbox: &mut Outbox) -> Submit {
        if request.operation == Operation::Flush {
            let whole = self.parts.begin(now, request);
            for device in 0..self.devices {
                outbox.requests.push((device, Request { id: self.parts.add(whole), ..*request }));
            }
            return Submit::Accepted;
        }
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        if request.sectors == 0 || end.is_none_or(|end| end > self.volumes.sectors()) {
            let refused =
                Completion { id: request.id, time: now, status: Status::Invalid, ledger: Ledger::ZERO };
            outbox.completions.push(refused);
            return Submit::Accepted;
        }
        let whole = self.parts.begin(now, request);
        let (mut from, mut left) = (request.lba.0, u64::from(request.sectors));
        while left > 0 {
            let place = self.volumes.place(usize::from(request.tenant.0), Lba(from));
            let sectors = place.run.min(left);
            let id = self.parts.add(whole);
            let part = Request { id, lba: place.lba, sectors: sectors as u32, ..*request };
            outbox.requests.push((place.device, part));
            from += sectors;
            left -= sectors;
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Option<Time> {
        None
    }

    fn advance(&mut self, _now: Time, _outbox: &mut Outbox) {}

    fn completed(&mut self, _now: Time, _child: usize, completion: &Completion, outbox: &mut Outbox) {
        outbox.completions.extend(self.parts.land(completion));
    }
}
