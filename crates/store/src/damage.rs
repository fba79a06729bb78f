//! What is said of pages that are damaged.

/// Sentences that are kept at most.
const MOST: usize = 100;

/// Pages that were found damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// A sentence each,
    pub said: Vec<String>,
    /// and so many more.
    pub unsaid: u64,
}

impl Damage {
    /// One more.
    pub(crate) fn note(&mut self, sentence: impl FnOnce() -> String) {
        if self.said.len() < MOST {
            self.said.push(sentence());
        } else {
            self.unsaid += 1;
        }
    }

    /// Pages in all.
    pub fn pages(&self) -> u64 {
        self.said.len() as u64 + self.unsaid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_pages_of_which_too_many_are_damaged_to_be_said_it_is_known_how_many_they_are() {
        let mut damage = Damage::default();
        (0..4_096).for_each(|page| damage.note(|| format!("page {page}")));
        assert_eq!((damage.said.len(), damage.unsaid, damage.pages()), (MOST, 4_096 - 100, 4_096));
    }
}
