//! The volume manager as a stage: from a tenant's addresses to the devices'.

use std::collections::VecDeque;

use flashkeel_engine::{
    Answer, Arena, Cause, Coming, Command, Completion, Lba, Ledger, Limits, Operation, Outbox, Refusal,
    Request, Stage, Status, Submit, TenantId, Time, Wake,
};

use super::Volumes;
use crate::claim::index_of;
use crate::gates::Gates;
use crate::parts::{Landed, Parts};
use crate::urgency::Urgency;

/// Sends each request, in parts where it crosses from one stretch of its volume
/// to the next, to the devices; a flush to all of them. A flush keeps its place
/// among the requests of its tenant on all devices together.
#[derive(Clone)]
pub struct VolumeManager {
    volumes: Box<dyn Volumes>,
    /// `None` where all parts of a request are alike.
    urgency: Option<Box<dyn Urgency>>,
    devices: usize,
    limits: Limits,
    gates: Gates,
    /// What the gates have let through and the volumes do not yet, oldest first.
    held: VecDeque<Held>,
    parts: Parts,
}

/// A request that its volume holds.
#[derive(Clone)]
struct Held {
    request: Request,
    submitted: Time,
    /// When the gate let it through.
    through: Time,
}

impl VolumeManager {
    /// Over devices with such limits, for so many tenants with a volume each.
    pub fn new(
        volumes: Box<dyn Volumes>,
        urgency: Option<Box<dyn Urgency>>,
        devices: &[Limits],
        tenants: usize,
    ) -> VolumeManager {
        let limits = over(&*volumes, devices);
        VolumeManager {
            volumes,
            urgency,
            devices: devices.len(),
            limits,
            gates: Gates::new(tenants),
            held: VecDeque::new(),
            parts: Parts::default(),
        }
    }

    /// Requests that wait here.
    pub fn waiting(&self) -> usize {
        self.gates.held() + self.held.len()
    }

    /// What it says of itself.
    pub(crate) fn state(waiting: usize, inside: usize) -> Answer {
        Answer::state([("waiting", waiting as u64), ("inside", inside as u64)])
    }

    fn volume_of(&self, tenant: TenantId) -> usize {
        index_of(tenant, self.gates.tenants())
    }

    /// Sends what was submitted at `submitted` and passes the gate now, or holds it.
    fn pass(&mut self, now: Time, submitted: Time, request: &Request, outbox: &mut Outbox) {
        let is_first = self.is_first(self.held.len(), request);
        if is_first && self.volumes.lets(now, request) {
            self.send(now, submitted, request, outbox);
        } else {
            self.held.push_back(Held { request: *request, submitted, through: now });
        }
    }

    /// Whether none of the first `count` of those that are held is of the same volume.
    #[inline]
    fn is_first(&self, count: usize, request: &Request) -> bool {
        let volume = self.volume_of(request.tenant);
        !self.held.iter().take(count).any(|held| self.volume_of(held.request.tenant) == volume)
    }

    /// Sends what was held and is not any more.
    fn release(&mut self, now: Time, outbox: &mut Outbox) {
        let mut index = 0;
        while let Some(Held { request, submitted, through }) = self.held.get(index).cloned() {
            if self.is_first(index, &request) && self.volumes.lets(now, &request) {
                self.held.remove(index);
                self.send(through, submitted, &request, outbox);
            } else {
                index += 1;
            }
        }
    }

    /// Sends what was submitted at `submitted` and has passed the gate at `now`, or
    /// earlier if it was held since.
    fn send(&mut self, now: Time, submitted: Time, request: &Request, outbox: &mut Outbox) {
        if request.operation == Operation::Flush {
            let whole = self.parts.begin(now, submitted, request);
            for device in 0..self.devices {
                outbox.requests.push((device, Request { id: self.parts.add(whole), ..*request }));
            }
            return;
        }
        let volume = self.volume_of(request.tenant);
        let mut place = self.volumes.place(volume, request.lba);
        if place.run >= u64::from(request.sectors) {
            let id = self.parts.whole(now, submitted, request);
            outbox.requests.push((place.device, Request { id, lba: place.lba, ..*request }));
            return;
        }
        let whole = self.parts.begin(now, submitted, request);
        let (first, mut from) = (outbox.requests.len(), 0);
        loop {
            let sectors = place.run.min(u64::from(request.sectors - from)) as u32;
            let id = self.parts.add(whole);
            outbox.requests.push((place.device, request.part(id, from, place.lba, sectors)));
            from += sectors;
            if from == request.sectors {
                break;
            }
            place = self.volumes.place(volume, Lba(request.lba.0 + u64::from(from)));
        }
        if let Some(urgency) = &mut self.urgency {
            let parts = &mut outbox.requests[first..];
            let devices = parts.iter().fold(0, |devices, (device, _)| devices | 1 << device);
            let unhurried = urgency.unhurried(request.operation, devices);
            for (device, part) in parts {
                part.is_unhurried |= unhurried >> *device & 1 == 1;
            }
            self.parts.spare(whole, unhurried);
        }
    }
}

/// What a volume over such devices has to state of itself.
fn over(volumes: &dyn Volumes, devices: &[Limits]) -> Limits {
    devices.iter().fold(Limits { sectors: volumes.sectors(), ..devices[0] }, |all, each| Limits {
        block_sectors: all.block_sectors.max(each.block_sectors),
        preferred_sectors: all.preferred_sectors.max(each.preferred_sectors),
        durable: all.durable.max(each.durable),
        ..all
    })
}

impl Stage for VolumeManager {
    fn limits(&self, below: &[Limits]) -> Limits {
        over(&*self.volumes, below)
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        if request.operation != Operation::Flush && !self.limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        if self.gates.enter(now, request) {
            self.pass(now, now, request, outbox);
        }
        Submit::Accepted
    }

    fn route(&self, coming: Coming) -> Option<(usize, Coming)> {
        let is_inside = coming.lba.0 < self.limits.sectors;
        let place = is_inside.then(|| self.volumes.place(self.volume_of(coming.tenant), coming.lba))?;
        Some((place.device, Coming { lba: place.lba, ..coming }))
    }

    fn finds(&self, from: Lba, sectors: u32) -> Option<(usize, Lba, u32)> {
        // Of several volumes nobody says which.
        let is_one = self.gates.tenants() == 1;
        let place = is_one.then(|| self.volumes.place(0, from))?;
        Some((place.device, place.lba, u64::from(sectors).min(place.run) as u32))
    }

    fn next_event(&self) -> Wake {
        self.volumes.next_event()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        self.volumes.advance(now);
        self.release(now, outbox);
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        outbox.completions.append(&mut self.parts.cut_power(now));
        for Held { request, submitted, through } in self.held.drain(..) {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Barrier, submitted, through);
            ledger.charge_between(Cause::HostQueue, through, now);
            let (id, status) = (request.id, Status::Aborted);
            outbox.completions.push(Completion { id, time: now, status, ledger });
        }
        outbox.completions.append(&mut self.gates.cut_power(now));
    }

    fn command(&mut self, _now: Time, command: &Command, _outbox: &mut Outbox) -> Result<Answer, Refusal> {
        match command {
            Command::State => Ok(VolumeManager::state(self.waiting(), self.parts.len())),
            _ => Err(Refusal::Unknown),
        }
    }

    fn completed(
        &mut self,
        now: Time,
        child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        if let Some(urgency) = &mut self.urgency
            && let Some((operation, unhurried)) = self.parts.ends_with(completion.id)
        {
            urgency.ended(operation, unhurried, child);
        }
        let covered = completion.ledger.total();
        let Some(Landed { tenant, .. }) = self.parts.land(completion, covered, false) else { return false };
        self.gates.leave(tenant);
        while let Some((submitted, request)) = self.gates.release(tenant) {
            self.pass(now, submitted, &request, outbox);
        }
        if !self.held.is_empty() {
            self.release(now, outbox);
        }
        true
    }
}
