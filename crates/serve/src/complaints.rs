//! What is said of clients that do what the protocol does not allow.

use std::time::{Duration, Instant};

/// Sentences that are said at once; whoever reads them may be slow, and everybody waits for him,
const MOST: u32 = 10;
/// so that later ones are said so far apart.
const APART: Duration = Duration::from_secs(60);

/// What has been said, and what has not.
#[derive(Default)]
pub(crate) struct Complaints {
    said: u32,
    unsaid: u64,
    last: Option<Instant>,
}

impl Complaints {
    /// What is to be said at `now` of a client, if anything.
    pub fn about(&mut self, client: usize, reason: &str, now: Instant) -> Option<String> {
        let is_far = self.last.is_none_or(|last| now.saturating_duration_since(last) >= APART);
        if self.said >= MOST && !is_far {
            self.unsaid += 1;
            return None;
        }
        (self.said, self.last) = (self.said.saturating_add(1), Some(now));
        let others = match std::mem::take(&mut self.unsaid) {
            0 => String::new(),
            1 => "; so was another before".into(),
            count => format!("; so were {count} others before"),
        };
        Some(format!("client {client} is disconnected: {reason}{others}"))
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
            let now = begin + Duration::from_secs(second);
            said.extend(complaints.about(second as usize, "why", now));
        }
        assert_eq!(said.len(), 12);
        assert_eq!(said[0], "client 0 is disconnected: why");
        assert_eq!(said[9], "client 9 is disconnected: why");
        assert_eq!(said[10], "client 69 is disconnected: why; so were 59 others before");
        assert_eq!(said[11], "client 129 is disconnected: why; so were 59 others before");
    }
}
