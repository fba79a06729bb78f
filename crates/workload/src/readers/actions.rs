//! Which events of a block trace were passed over, so that a trace with those of
//! other actions only says which to ask for.

/// The actions whose events may be taken for requests, best first: they are of
/// every request, and say when it was queued, issued or completed.
const USABLE: [&str; 3] = ["Q", "D", "C"];

/// Counts the events that are not of the action asked for.
pub(super) struct Actions {
    asked: String,
    passed: [u64; USABLE.len()],
}

impl Actions {
    pub(super) fn new(asked: &str) -> Actions {
        Actions { asked: asked.to_owned(), passed: [0; USABLE.len()] }
    }

    /// Counts an event that was passed over.
    #[inline]
    pub(super) fn pass(&mut self, action: &str) {
        if let Some(index) = USABLE.iter().position(|known| *known == action) {
            self.passed[index] += 1;
        }
    }

    /// What to do where no event was of the action asked for.
    pub(super) fn remedy(&self) -> Option<String> {
        let (action, count) = USABLE.iter().zip(self.passed).find(|(_, count)| *count > 0)?;
        let times = match *action {
            "C" => "; their times are those of completions",
            _ => "",
        };
        Some(format!(
            "none of its events has the action {}, {count} have {action}: action = \"{action}\" takes those{times}",
            self.asked
        ))
    }
}
