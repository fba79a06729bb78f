//! The volume manager as a stage: from a tenant's addresses to the devices'.

use flashkeel_engine::{Completion, Lba, Ledger, Operation, Outbox, Request, Stage, Status, Submit, Time};

use super::Volumes;
use crate::gates::Gates;
use crate::parts::Parts;

/// Sends each request, in parts where it crosses from one stretch of its volume
/// to the next, to the devices; a flush to all of them. A flush keeps its place
/// among the requests of its tenant on all devices together.
pub(crate) struct VolumeManager {
    volumes: Box<dyn Volumes>,
    devices: usize,
    gates: Gates,
    parts: Parts,
}

impl VolumeManager {
    pub fn new(volumes: Box<dyn Volumes>, devices: usize, tenants: usize) -> VolumeManager {
        VolumeManager { volumes, devices, gates: Gates::new(tenants), parts: Parts::default() }
    }

    /// Requests that wait here.
    pub fn waiting(&self) -> usize {
        self.gates.held()
    }

    fn send(&mut self, now: Time, request: &Request, outbox: &mut Outbox) {
        let whole = self.parts.begin(now, request);
        if request.operation == Operation::Flush {
            for device in 0..self.devices {
                outbox.requests.push((device, Request { id: self.parts.add(whole), ..*request }));
            }
            return;
        }
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
    }
}

impl Stage for VolumeManager {
    fn submit(&mut self, now: Time, request: &Request, outbox: &mut Outbox) -> Submit {
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        if request.operation != Operation::Flush
            && (request.sectors == 0 || end.is_none_or(|end| end > self.volumes.sectors()))
        {
            let refused =
                Completion { id: request.id, time: now, status: Status::Invalid, ledger: Ledger::ZERO };
            outbox.completions.push(refused);
        } else if let Some(request) = self.gates.enter(now, request) {
            self.send(now, &request, outbox);
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Option<Time> {
        None
    }

    fn advance(&mut self, _now: Time, _outbox: &mut Outbox) {}

    fn completed(&mut self, now: Time, _child: usize, completion: &Completion, outbox: &mut Outbox) {
        let Some(whole) = self.parts.land(completion) else { return };
        let (tenant, completion) = self.gates.leave(&whole);
        outbox.completions.push(completion);
        while let Some(request) = self.gates.release(now, tenant) {
            self.send(now, &request, outbox);
        }
    }
}
