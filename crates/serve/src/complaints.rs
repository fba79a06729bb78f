//! What is said of what may happen often: clients that do what the protocol does not allow, and
//! pages that are damaged.

use std::time::{Duration, Instant};

use flashkeel_store::Damage;

/// Sentences that are said at once; whoever reads them may be slow, and everybody waits for him,
const MOST: u32 = 10;
/// so that later ones are said so far apart.
const APART: Duration = Duration::from_secs(60);

/// What is said of both.
pub(crate) struct Complaints {
    faults: Sparing,
    damage: Sparing,
}

impl Default for Complaints {
    fn default() -> Complaints {
        Complaints { faults: Sparing::new("so was", "so were"), damage: Sparing::new("nor can", "nor can") }
    }
}

impl Complaints {
    /// A client has done what the protocol does not allow.
    pub fn add_fault(&mut self, client: usize, reason: &str) {
        self.faults.add(format!("client {client} is disconnected: {reason}"));
    }

    /// Pages have been found damaged.
    pub fn add_damage(&mut self, damage: Damage) {
        damage.said.into_iter().for_each(|sentence| self.damage.add(sentence));
        self.damage.unsaid += damage.unsaid;
    }

    /// What is to be said at `now`.
    pub fn due(&mut self, now: Instant) -> Vec<String> {
        [self.faults.due(now), self.damage.due(now)].concat()
    }

    /// What is to be said where nothing is said after it.
    pub fn rest(&mut self) -> Vec<String> {
        [self.faults.rest(), self.damage.rest()].concat()
    }
}

/// What has been said of one, and what has not.
struct Sparing {
    /// What is so of one other, and of many.
    others: [&'static str; 2],
    said: u32,
    last: Option<Instant>,
    /// What is to be said,
    due: Vec<String>,
    /// the last of what is not yet,
    latest: Option<String>,
    /// and how many there are besides.
    unsaid: u64,
}

impl Sparing {
    fn new(other: &'static str, others: &'static str) -> Sparing {
        Sparing { others: [other, others], said: 0, last: None, due: Vec::new(), latest: None, unsaid: 0 }
    }

    fn add(&mut self, sentence: String) {
        if self.said < MOST {
            self.said += 1;
            self.due.push(sentence);
        } else if self.latest.replace(sentence).is_some() {
            self.unsaid += 1;
        }
    }

    fn due(&mut self, now: Instant) -> Vec<String> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= APART) {
            self.gather();
        }
        let due = std::mem::take(&mut self.due);
        if !due.is_empty() {
            self.last = Some(now);
        }
        due
    }

    fn rest(&mut self) -> Vec<String> {
        self.gather();
        std::mem::take(&mut self.due)
    }

    /// Puts into a sentence what has not been said.
    fn gather(&mut self) {
        let Some(latest) = self.latest.take() else { return };
        let [other, others] = self.others;
        self.due.push(match std::mem::take(&mut self.unsaid) {
            0 => latest,
            1 => format!("{latest}; {other} another before"),
            count => format!("{latest}; {others} {count} others before"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_clients_break_the_protocol_little_is_said() {
        let (mut complaints, begin) = (Complaints::default(), Instant::now());
        let mut said = Vec::new();
        for second in 0..=130 {
            complaints.add_fault(second, "why");
            said.extend(complaints.due(begin + Duration::from_secs(second as u64)));
        }
        assert_eq!(said.len(), 12);
        assert_eq!(said[0], "client 0 is disconnected: why");
        assert_eq!(said[9], "client 9 is disconnected: why");
        assert_eq!(said[10], "client 69 is disconnected: why; so were 59 others before");
        assert_eq!(said[11], "client 129 is disconnected: why; so were 59 others before");
        assert_eq!(complaints.rest(), ["client 130 is disconnected: why"]);
        assert!(complaints.rest().is_empty());
    }

    #[test]
    fn of_however_many_pages_that_are_damaged_little_is_said_and_how_many_they_are() {
        let (mut complaints, begin) = (Complaints::default(), Instant::now());
        let said = (0..100).map(|page| format!("page {page} cannot be read")).collect();
        complaints.add_damage(Damage { said, unsaid: 3_996 });
        let told = complaints.due(begin);
        assert_eq!((told.len(), &*told[9]), (10, "page 9 cannot be read"));
        assert!(complaints.due(begin + APART / 2).is_empty());
        // Though no other is found.
        let told = complaints.due(begin + APART);
        assert_eq!(told, ["page 99 cannot be read; nor can 4085 others before"]);
        assert!(complaints.due(begin + 3 * APART).is_empty() && complaints.rest().is_empty());
    }
}
