//! Turns prediction off where it does harm, and on again where it would help.

/// Part of late calls of a slow request that must come true; more, to be turned on again. Who affords
/// less asks for fewer false calls: this is for drives that nothing can be said of.
const TARGET: f32 = 0.06;
const TARGET_AGAIN: f32 = 0.08;
/// Calls over which that part is taken. It runs on: a drive may show so few that whole windows of them
/// would keep what has long been right turned off.
const MEMORY: f32 = 64.0;
/// The part that is presumed of a model that tells what to expect.
const PRESUMED: f32 = 0.5;
/// Where calls are surely better than chance, it is enough if late ones are so many times as good.
const LIFT: f32 = 2.0;
/// Outcomes after which calls are held against chance, and what remains then of those before.
const ROUND: f32 = 512.0;
const REMAINS: f32 = 0.94;
/// By how many standard deviations more have to come true than by chance: not to be taken for that, and to
/// be surely better.
const NOISE: f32 = 1.0;
const SURE: f32 = 4.0;
/// Calls without which nothing is taken for chance, and those that would have come true by it.
const FEWEST: f32 = 64.0;
const FEWEST_TRUE: f32 = 6.0;

/// What calls are worth beside those of a coin that calls as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// Nobody knows.
    Open,
    Nothing,
    Something,
}

/// The off-switch. Calls are judged whether or not they are given out.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub is_on: bool,
    /// Part of late calls that came true.
    pub precision: f32,
    /// Requests that were called normal and slow, by what they were.
    normal: [f32; 2],
    slow: [f32; 2],
    left: f32,
    worth: Worth,
    /// The part of late calls that is asked for at most.
    lift: f32,
}

impl Switch {
    pub fn new(is_on: bool) -> Self {
        Switch {
            is_on,
            precision: if is_on { PRESUMED } else { 0.0 },
            normal: [0.0; 2],
            slow: [0.0; 2],
            left: ROUND,
            worth: Worth::Open,
            lift: 1.0,
        }
    }

    /// Takes over how another stood. What it held against chance follows from that: calls are given out
    /// although few come true, or are not although enough do.
    pub fn recall(&mut self, precision: f32, is_on: bool) {
        (self.precision, self.is_on) = (precision, is_on);
        (self.worth, self.lift) = match is_on {
            true if precision < TARGET => (Worth::Something, precision / LIFT),
            false if precision >= TARGET_AGAIN => (Worth::Nothing, 1.0),
            _ => (Worth::Open, 1.0),
        };
    }

    /// Judges what became of a request, which stands for so many; true if calls have just been found to be
    /// of no use.
    #[inline]
    pub fn judge(&mut self, is_called: bool, is_slow: bool, times: u32) -> bool {
        let times = times as f32;
        let counts = if is_slow { &mut self.slow } else { &mut self.normal };
        counts[usize::from(is_called)] += times;
        self.left -= times;
        if is_called {
            self.precision += (f32::from(u8::from(is_slow)) - self.precision) / MEMORY;
        }
        if self.left <= 0.0 {
            self.hold_against_chance();
        }
        let was_on = self.is_on;
        let target = if was_on { TARGET } else { TARGET_AGAIN };
        self.is_on = self.precision >= target.min(self.lift) && self.worth != Worth::Nothing;
        was_on && !self.is_on
    }

    /// Holds the calls of late against those of a coin that makes as many.
    #[cold]
    fn hold_against_chance(&mut self) {
        let [not_called, called] = [0, 1].map(|called| self.slow[called] + self.normal[called]);
        let [slow, normal] = [self.slow, self.normal].map(|[not_called, called]| not_called + called);
        let all = slow + normal;
        let by_chance = called * slow / all;
        let deviation = (by_chance * (not_called / all) * (normal / all)).sqrt();
        let beyond = self.slow[1] - by_chance;
        if slow > normal {
            // Most calls come true whatever is known.
            self.worth = Worth::Open;
        } else if called >= FEWEST && by_chance >= FEWEST_TRUE && beyond <= NOISE * deviation {
            self.worth = Worth::Nothing;
        // Of the first few one more or less decides nothing.
        } else if beyond > SURE * (deviation + 1.0) {
            self.worth = Worth::Something;
        }
        self.lift = if self.worth == Worth::Something { LIFT * slow / all } else { 1.0 };
        self.left = ROUND;
        self.slow.iter_mut().chain(&mut self.normal).for_each(|count| *count *= REMAINS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges so many requests, of which one in ten is called and these parts of those called and of the
    /// others are slow.
    fn judge(switch: &mut Switch, requests: u32, called: u32, others: u32) {
        for number in 0..requests {
            let (is_called, turn) = (number % 10 == 0, number / 10);
            let one_in = if is_called { called } else { others };
            switch.judge(is_called, turn % one_in == one_in - 1, 1);
        }
    }

    #[test]
    fn it_goes_off_and_on_again() {
        let mut switch = Switch::new(true);
        // One in forty comes true.
        let turned = (1..=400).filter(|i| switch.judge(true, i % 40 == 0, 1)).count();
        assert_eq!((turned, switch.is_on), (1, false));
        for i in 1..=64 {
            switch.judge(true, i % 2 == 0, 1);
        }
        assert!(switch.is_on);
        for _ in 0..1_000 {
            switch.judge(false, true, 1);
        }
        assert!(switch.is_on, "what is missed does no harm");
    }

    #[test]
    fn calls_no_better_than_chance_are_not_given_out() {
        let mut switch = Switch::new(true);
        judge(&mut switch, 10_000, 8, 8);
        assert!(!switch.is_on, "as many of the others are slow");
        judge(&mut switch, 20_000, 8, 50);
        assert!(switch.is_on, "it is six times chance");
    }

    #[test]
    fn calls_are_given_out_that_seldom_come_true_and_are_much_better_than_chance() {
        let mut switch = Switch::new(true);
        judge(&mut switch, 40_000, 25, 500);
        assert!(switch.is_on, "{}", switch.precision);
        judge(&mut switch, 40_000, 25, 25);
        assert!(!switch.is_on);
    }

    #[test]
    fn where_most_requests_are_slow_it_may_be_said_of_all() {
        let mut switch = Switch::new(true);
        (0..10_000).for_each(|number| _ = switch.judge(true, number % 3 > 0, 1));
        assert!(switch.is_on);
    }

    #[test]
    fn another_stands_as_it_did() {
        for (called, others) in [(8, 8), (25, 500), (2, 50), (100, 100)] {
            let mut switch = Switch::new(true);
            judge(&mut switch, 40_000, called, others);
            let mut other = Switch::new(true);
            other.recall(switch.precision, switch.is_on);
            other.judge(true, false, 1);
            assert_eq!(other.is_on, switch.is_on, "{called} {others}");
        }
    }

    #[test]
    fn it_begins_as_it_is_told() {
        assert!(Switch::new(true).is_on);
        let mut switch = Switch::new(false);
        let needed = (1..).find(|_| {
            switch.judge(true, true, 1);
            switch.is_on
        });
        assert_eq!(needed, Some(6));
    }
}
