//! Several drives that look like one: end to end, or in a stripe.

use std::collections::HashMap;

use flashkeel_device::Ssd;
use flashkeel_engine::{Arena, Completion, Leaf, Limits, Request, Submit, Time, Wake};

/// The drives, of which each takes a chunk in turn, if there are chunks.
pub struct Joined {
    drives: Vec<Ssd>,
    chunk: Option<u64>,
    /// Parts of each request that have not ended.
    parts: HashMap<u64, usize>,
}

impl Joined {
    pub fn new(drives: Vec<Ssd>, chunk: Option<u64>) -> Joined {
        Joined { drives, chunk, parts: HashMap::new() }
    }

    /// The drive that a sector lies on, where on it, and how many follow there.
    fn place(&self, lba: u64) -> (usize, u64, u64) {
        if let Some(chunk) = self.chunk {
            let (number, within, count) = (lba / chunk, lba % chunk, self.drives.len() as u64);
            return ((number % count) as usize, number / count * chunk + within, chunk - within);
        }
        let mut left = lba;
        for (index, drive) in self.drives.iter().enumerate() {
            let sectors = drive.limits().sectors;
            if left < sectors {
                return (index, left, sectors - left);
            }
            left -= sectors;
        }
        unreachable!("it lies within the capacity")
    }
}

impl Leaf for Joined {
    fn limits(&self) -> Limits {
        let each = || self.drives.iter().map(|drive| drive.limits().sectors);
        let sectors = match self.chunk {
            Some(_) => each().min().expect("a drive") * self.drives.len() as u64,
            None => each().sum(),
        };
        Limits { sectors, ..self.drives[0].limits() }
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let (mut lba, mut left, mut parts) = (request.lba, request.sectors, 0);
        while left > 0 {
            let (index, on, run) = self.place(lba.0);
            let mut part = *request;
            (part.lba.0, part.sectors) = (on, left.min(run as u32));
            match self.drives[index].submit(now, &part, data) {
                Submit::Accepted => parts += 1,
                other if parts == 0 => return other,
                _ => panic!("a drive takes whatever a probe asks at a time"),
            }
            (lba.0, left) = (lba.0 + u64::from(part.sectors), left - part.sectors);
        }
        self.parts.insert(request.id.0, parts);
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        Wake::new(self.drives.iter().filter_map(|drive| drive.next_event().time()).min(), false)
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let mut ended = Vec::new();
        self.drives.iter_mut().for_each(|drive| drive.advance(now, data, &mut ended));
        ended.sort_by_key(|end| end.time);
        for end in ended {
            let parts = self.parts.get_mut(&end.id.0).expect("it was asked");
            *parts -= 1;
            if *parts == 0 {
                self.parts.remove(&end.id.0);
                completions.push(end);
            }
        }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}
