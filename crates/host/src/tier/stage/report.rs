//! What a tier counts.

use flashkeel_engine::{Answer, LOGICAL_PAGE_BYTES, Operation, Span, Time};
use serde::Serialize;

use super::Tier;
use super::latency::{Latencies, LatencyReport, Medium};
use crate::parts::Landed;
use crate::tier::budget::{Calendar, DayReport, Ratings};
use crate::tier::table::Table;

/// What a tier has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TierReport {
    /// Bytes that the host wrote to the upper.
    pub host_bytes_to_nvm: u64,
    /// Bytes that the host wrote to the lower.
    pub host_bytes_to_ssd: u64,
    /// Bytes moved from the upper to the lower.
    pub drained_bytes: u64,
    /// Writes that belonged to the upper and went to the lower because that was full.
    pub writes_without_room: u64,
    /// Pages read from the upper by the host.
    pub pages_read_from_nvm: u64,
    /// Pages read from the lower by the host.
    pub pages_read_from_ssd: u64,
    /// Bytes that the upper took of what reads found below.
    pub filled_bytes: u64,
    /// Bytes that the upper took of what a tier above gave up.
    pub admitted_bytes: u64,
    /// Bytes offered to the lower when they left.
    pub demoted_bytes: u64,
    /// Clean pages evicted.
    pub clean_pages_evicted: u64,
    /// Modified pages evicted.
    pub modified_pages_evicted: u64,
    /// Bytes of the journal written to the upper.
    pub journal_bytes: u64,
    /// Kilobytes on average that a power cut would take, of what was acknowledged: what
    /// is modified in a volatile upper.
    pub mean_kilobytes_at_risk: f64,
    /// The same at this moment, in bytes.
    pub bytes_at_risk: u64,
    /// Pages that the lower would not take, or could not, when they were written back.
    pub failed_writebacks: u64,
    /// What reads took: the two devices' shares, and what moving data added (Roy,
    /// dissertation, eq. 3.6).
    pub reads: LatencyReport,
    /// The same of writes (eq. 3.7).
    pub writes: LatencyReport,
    /// Whether the upper, which gives up what has not been used, has had to; where it has
    /// not, a larger one changes nothing.
    pub has_filled: bool,
    /// Pages that the upper can hold.
    pub upper_pages: u64,
    /// Memory that the tables take for what the upper holds.
    pub table_bytes: u64,
    /// What was written to the upper.
    pub upper: MediumReport,
    /// What was written to the lower.
    pub lower: MediumReport,
}

/// What was written to a device of a tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MediumReport {
    /// All bytes, those of the background too.
    pub bytes_written: u64,
    /// By day, where there is a rating. The last day may not be over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<DayReport>,
    /// Bytes that might be written in each week, where there is a budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub week_budgets_bytes: Vec<f64>,
}

/// The counters of a tier.
#[derive(Clone, Default)]
pub(super) struct Accounts {
    pub host_bytes_to_upper: u64,
    pub host_bytes_to_lower: u64,
    pub drained_bytes: u64,
    pub writes_without_room: u64,
    pub pages_read_from_upper: u64,
    pub pages_read_from_lower: u64,
    pub filled_bytes: u64,
    pub admitted_bytes: u64,
    pub demoted_bytes: u64,
    pub evicted_clean: u64,
    pub evicted_modified: u64,
    pub journal_bytes: u64,
    pub failed_writebacks: u64,
    pub reads: Latencies,
    pub writes: Latencies,
    written: [u64; 2],
    /// By the order of [`Medium`].
    calendars: [Option<Box<Calendar>>; 2],
    /// Modified pages, times nanoseconds, but for the last ones.
    modified_ns: u128,
    /// The last ones: how many there are, and since when.
    modified: u64,
    modified_since: Time,
    /// Up to when all is known.
    until: Time,
    since: Time,
}

impl Accounts {
    /// Counts from a time on.
    pub fn new(ratings: &Ratings, from: Time) -> Accounts {
        let calendars = [&ratings.lower, &ratings.upper]
            .map(|rating| rating.as_ref().map(|rating| Box::new(Calendar::new(rating, from))));
        Accounts { calendars, modified_since: from, until: from, since: from, ..Accounts::default() }
    }

    /// Starts counting anew; days and budgets go on.
    pub fn reset(&mut self) {
        let calendars = std::mem::take(&mut self.calendars);
        let (until, modified) = (self.until, self.modified);
        let (since, modified_since) = (until, until);
        *self = Accounts { calendars, modified, modified_since, until, since, ..Accounts::default() };
    }

    /// Up to `now` so many pages were modified.
    #[inline]
    pub fn pass(&mut self, now: Time, modified: u64) {
        if modified != self.modified {
            // They have been since what happened last.
            self.modified_ns += self.last_modified_ns();
            (self.modified, self.modified_since) = (modified, self.until);
        }
        self.until = now;
    }

    fn last_modified_ns(&self) -> u128 {
        u128::from(self.modified) * u128::from(self.until.since(self.modified_since).0)
    }

    /// A request has come that writes so many bytes, 0 if it reads.
    #[inline]
    pub fn come(&mut self, now: Time, bytes: u64) {
        self.calendars.iter_mut().flatten().for_each(|calendar| calendar.come(now, bytes));
    }

    #[inline]
    pub fn write(&mut self, now: Time, medium: Medium, bytes: u64) {
        self.written[medium as usize] += bytes;
        if let Some(calendar) = &mut self.calendars[medium as usize] {
            calendar.write(now, bytes);
        }
    }

    /// A request has been served: by the lower if a part of it was.
    #[inline(always)]
    pub fn served(&mut self, request: Landed, is_quiet: bool) {
        let medium = if request.is_marked { Medium::Lower } else { Medium::Upper };
        match request.operation {
            Operation::Read => self.reads.add(medium, request.took, is_quiet),
            Operation::Write => self.writes.add(medium, request.took, is_quiet),
            _ => {}
        }
    }

    pub fn allows(&mut self, now: Time, medium: Medium, bytes: u64) -> bool {
        self.calendars[medium as usize].as_mut().is_none_or(|calendar| calendar.allows(now, bytes))
    }

    fn medium(&self, medium: Medium) -> MediumReport {
        let calendar = self.calendars[medium as usize].as_ref();
        MediumReport {
            bytes_written: self.written[medium as usize],
            days: calendar.map_or(Vec::new(), |calendar| calendar.days()),
            week_budgets_bytes: calendar.map_or(Vec::new(), |calendar| calendar.week_budgets().to_vec()),
        }
    }

    /// `volatile` is how many modified pages a power cut would take; `is_full`, whether the
    /// upper is.
    pub fn report(&self, volatile: Option<u64>, is_full: bool, table: &Table) -> TierReport {
        let Span(time) = self.until.since(self.since);
        let mean_modified =
            if time == 0 { 0.0 } else { (self.modified_ns + self.last_modified_ns()) as f64 / time as f64 };
        TierReport {
            host_bytes_to_nvm: self.host_bytes_to_upper,
            host_bytes_to_ssd: self.host_bytes_to_lower,
            drained_bytes: self.drained_bytes,
            writes_without_room: self.writes_without_room,
            pages_read_from_nvm: self.pages_read_from_upper,
            pages_read_from_ssd: self.pages_read_from_lower,
            filled_bytes: self.filled_bytes,
            admitted_bytes: self.admitted_bytes,
            demoted_bytes: self.demoted_bytes,
            clean_pages_evicted: self.evicted_clean,
            modified_pages_evicted: self.evicted_modified,
            journal_bytes: self.journal_bytes,
            mean_kilobytes_at_risk: volatile
                .map_or(0.0, |_| mean_modified * LOGICAL_PAGE_BYTES as f64 / 1000.0),
            bytes_at_risk: volatile.unwrap_or_default() * LOGICAL_PAGE_BYTES,
            failed_writebacks: self.failed_writebacks,
            reads: self.reads.report(),
            writes: self.writes.report(),
            has_filled: is_full || self.evicted_clean + self.evicted_modified > 0,
            upper_pages: table.len(),
            table_bytes: table.bytes() as u64,
            upper: self.medium(Medium::Upper),
            lower: self.medium(Medium::Lower),
        }
    }
}

impl Tier {
    /// What it says of itself when it is asked.
    pub(super) fn state(&self) -> Answer {
        Answer::state([
            ("upper_pages", self.upper_pages()),
            ("modified_pages", self.table.modified()),
            ("written_back_pages", self.draining),
            ("evicted_pages", self.evicting),
            ("waiting", self.held.len() as u64),
            ("recovering", self.recovery.is_some().into()),
        ])
    }
}
