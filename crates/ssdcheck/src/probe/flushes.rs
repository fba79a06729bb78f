//! Where the flushes of a buffer come among writes: each shows in a write that waits for
//! it, or in reads beside the writes.

use flashkeel_engine::{Operation, Span, Stream};

use super::places::{Pages, Where};
use super::runner::{ProbeError, Runner};
use super::statistics::{median, period};

/// Normal reads between two flushes, at least.
const CALM: u32 = 4;
/// Where slow reads take more of the reader's time than this, the drive was never done
/// with a flush before the next began.
const OVERWHELMED: f64 = 0.5;
/// Longest that a run for a size may take on the drive.
pub(super) const LONGEST: Span = Span::from_secs(6);
/// Writes to the pages come in bursts of one flush up to so many at random, to the flipped
/// one up to one less: volumes that flush in turn would look like one.
const BURST: u64 = 3;
/// Buffers of so many pages are told by bursts of a quarter of a flush up to one: hardly two
/// flushes are then of the same burst.
const LARGE: u64 = 64;
/// Flushes this close together are of single flash pages.
const CLOSE: u64 = 8;
/// Of all distances so many are whole buffers.
const OWN: f64 = 0.4;
/// Buffers that have to be filled for a place in them to be told.
const FILLED: u64 = 10;
/// So many equal distances one after another are enough.
const REGULAR: u32 = 24;
/// Of the distances that are about a buffer, so many are one.
const EXACT: f64 = 0.8;
/// Distances between flushes of different bursts: fewest that tell anything, enough where
/// nearly all agree, and enough. Where all agree fewer do, of a buffer of so many pages: hardly
/// one distance is whole by chance.
const FEWEST: u32 = 8;
const CLEAR: u32 = 12;
const ENOUGH: u32 = 20;
const ALL: u32 = 6;
const ALL_PAGES: u64 = 24;
const ALL_LARGE: u32 = 4;
/// Of the distances so many are whole buffers where they are counted in the writes of the
/// volume, and so many at most where not.
const WITH_FLUSHES: f64 = 0.5;
const BY_CHANCE: f64 = 0.25;
const NEARLY_ALL: f64 = 0.9;
const HARDLY_ANY: f64 = 0.1;

/// How flushes are seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sight {
    /// By writes that wait, each this long after its predecessor.
    Waits(Span),
    /// By reads beside such writes.
    Beside(Span),
    /// By the first write that waits after such a silence: the one of this number.
    Rested { rest: Span, first: u64 },
}

/// What decides that a request has met a flush, where reads go, and how long a run may take on
/// the drive.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub slow_read_ns: u64,
    pub slow_write_ns: u64,
    pub reads: &'a [u64],
    pub longest: Span,
}

/// What a run saw.
#[derive(Default)]
pub(super) struct Flushes {
    /// Writes up to each flush.
    pub at: Vec<u64>,
    /// All of them, and the time they took.
    pub writes: u64,
    pub took_ns: u64,
    /// How long requests waited.
    pub waits_ns: Vec<u64>,
    /// Where writes alone are watched, what each took.
    pub writes_ns: Vec<u64>,
    /// Of a drive in real time.
    is_real: bool,
    /// Writes submitted before each read, and its latency.
    pub reads: Vec<(u64, u64)>,
    /// Whether flushes followed each other without a pause.
    pub is_overwhelmed: bool,
}

impl Flushes {
    /// Whether they come as often as buffers of so many pages are filled, and so far apart, a
    /// few writes more or less.
    pub fn fits(&self, pages: u64) -> bool {
        let slack = (pages / 10).min(4);
        let distances = self.at.windows(2).map(|pair| pair[1] - pair[0]);
        let whole = |distance: u64| {
            let beyond = distance % pages;
            distance + slack >= pages && beyond.min(pages - beyond) <= slack
        };
        let fitting = distances.filter(|&distance| whole(distance)).count();
        let filled = (self.writes / pages) as usize;
        filled >= 6
            && !self.is_overwhelmed
            && fitting * 4 >= self.at.len().saturating_sub(1) * 3
            && self.at.len() * 2 >= filled
    }

    /// The distance at which they recur, `slack` writes more or less. Who counts pages is
    /// exact; what is due after a time is not.
    pub fn period(&self, slack: u64) -> Option<u64> {
        let pages = if self.is_overwhelmed { None } else { period(&self.at, self.writes) }?;
        let distances = || self.at.windows(2).map(|pair| pair[1] - pair[0]);
        let beside = |far: u64| distances().filter(|distance| distance.abs_diff(pages) <= far).count();
        let (exact, near) = (beside(slack), beside((pages / 8).max(slack + 1)));
        // Nor is it only the sum of several others.
        let is_own = self.whole(pages, slack) >= OWN;
        (exact as f64 >= EXACT * near as f64 && is_own).then_some(pages)
    }

    /// Whether most writes at one place in a buffer of so many pages have waited, whatever else
    /// others wait for.
    pub fn is_in_phase(&self, pages: u64) -> bool {
        let mut waits = vec![0; pages as usize];
        for at in &self.at {
            waits[(at % pages) as usize] += 1;
        }
        waits.sort_unstable();
        let filled = self.writes / pages;
        let [.., next, most] = waits[..] else { return false };
        filled >= FILLED && 4 * most >= 3 * filled && 2 * next <= filled
    }

    /// The part of all distances that are whole buffers, `slack` writes more or less.
    pub fn whole(&self, pages: u64, slack: u64) -> f64 {
        let distances = self.at.windows(2).map(|pair| pair[1] - pair[0]);
        let whole = distances.filter(|distance| (distance + slack) % pages <= 2 * slack).count();
        whole as f64 / self.at.len().max(1) as f64
    }

    /// What writes took at each place in a buffer of so many pages, in the median of all buffers
    /// filled; rising. Only of writes alone.
    pub fn by_place(&self, pages: u64) -> Vec<u64> {
        let at = |place| self.writes_ns.iter().skip(place as usize).step_by(pages as usize);
        let mut medians: Vec<u64> =
            (0..pages).map(|place| median(&mut at(place).copied().collect::<Vec<_>>())).collect();
        medians.sort_unstable();
        medians
    }

    /// Whether most lie so close together that pages must have left by themselves.
    pub fn are_close(&self) -> bool {
        let close = self.at.windows(2).filter(|pair| pair[1] - pair[0] < CLOSE).count();
        2 * close > self.at.len()
    }

    /// The same, of writes that waited longer than so many nanoseconds.
    pub fn above(mut self, slow_write_ns: u64) -> Flushes {
        let writes_ns = std::mem::take(&mut self.writes_ns);
        (self.at, self.waits_ns) = (Vec::new(), Vec::new());
        for latency_ns in writes_ns {
            self.written(latency_ns, slow_write_ns);
        }
        self.once();
        self
    }

    /// A write took so long, after the others; returns whether it has waited for a flush. In real
    /// time whoever has waited long sleeps, and the way to the drive is longer for who comes next:
    /// right after a write that waited another is none.
    fn written(&mut self, latency_ns: u64, slow_write_ns: u64) -> bool {
        let follows =
            self.is_real && self.writes_ns.last().is_some_and(|&before_ns| before_ns > slow_write_ns);
        self.writes_ns.push(latency_ns);
        let waited = latency_ns > slow_write_ns && !follows;
        if waited {
            self.at.push(self.writes_ns.len() as u64);
            self.waits_ns.push(latency_ns);
        }
        waited
    }

    /// Takes a wait that follows another at once for one of the same flush, unless most do.
    fn once(&mut self) {
        let follows: Vec<bool> = self
            .at
            .iter()
            .enumerate()
            .map(|(index, at)| index > 0 && self.at[index - 1] + 1 == *at)
            .collect();
        if 2 * follows.iter().filter(|follows| **follows).count() <= self.at.len() {
            let first = |index: &usize| !follows[*index];
            let kept = || (0..follows.len()).filter(first);
            self.waits_ns = kept().map(|index| self.waits_ns[index]).collect();
            self.at = kept().map(|index| self.at[index]).collect();
        }
    }
}

/// How many of the distances between flushes are whole buffers.
#[derive(Clone, Copy, Default)]
struct Grid {
    /// By how many writes a distance may miss a whole buffer.
    slack: u64,
    last: Option<(u64, u64)>,
    multiples: u32,
    distances: u32,
}

impl Grid {
    /// A flush at a position, in a burst. Two of one burst tell nothing.
    fn flushed(&mut self, position: u64, burst: u64, pages: u64) {
        if let Some((last, _)) = self.last.filter(|&(_, of)| of != burst) {
            self.distances += 1;
            let beyond = (position - last) % pages;
            self.multiples += u32::from(beyond.min(pages - beyond) <= self.slack);
        }
        self.last = Some((position, burst));
    }

    fn part(&self) -> f64 {
        f64::from(self.multiples) / f64::from(self.distances.max(1))
    }
}

/// The pages of a run in bursts, by turns.
struct Bursts {
    unit: u64,
    flip: u64,
    end: u64,
    burst: u64,
    written: [u64; 2],
    /// Of each write its burst, and the writes of its side up to it.
    of: Vec<(u64, u64)>,
}

impl Bursts {
    fn next(&mut self, random: &mut Stream) -> u64 {
        if self.flip != 0 && self.of.len() as u64 == self.end {
            self.burst += 1;
            let most = BURST - u64::from(self.burst.is_multiple_of(2));
            let (least, most) = if self.unit >= LARGE {
                (self.unit / 4, self.unit * most / BURST)
            } else {
                (self.unit, self.unit * most)
            };
            self.end += random.between(least, most);
        }
        let side = usize::from(self.flip != 0 && self.burst.is_multiple_of(2));
        self.written[side] += 1;
        self.of.push((self.burst, self.written[side]));
        if side == 1 { self.flip } else { 0 }
    }
}

/// Writes `writes` pages and watches for flushes.
pub(super) fn watch(
    runner: &mut Runner<'_>,
    watch: Watch<'_>,
    sight: Sight,
    place: Where,
    writes: u64,
) -> Result<Flushes, ProbeError> {
    let mut bursts = Bursts { unit: 0, flip: 0, end: 0, burst: 0, written: [0; 2], of: Vec::new() };
    let (mut last, mut same, mut distance) = (0, 0, 0);
    let mut seen = run(runner, watch, sight, place, writes, &mut bursts, &mut |(at, ..)| {
        same = if at - last == distance { same + 1 } else { 0 };
        (last, distance) = (at, at - last);
        same >= REGULAR
    })?;
    if matches!(sight, Sight::Waits(_)) {
        seen.once();
    }
    Ok(seen)
}

/// Whether writes to pages that differ in the bits `flip` fill one buffer of `pages` pages,
/// if that can be told.
pub(super) fn is_one_buffer(
    runner: &mut Runner<'_>,
    watched: Watch<'_>,
    sight: Sight,
    place: Where,
    pages: u64,
    flip: u64,
) -> Result<Option<bool>, ProbeError> {
    let mut bursts = Bursts { unit: pages, flip, end: 0, burst: 0, written: [0; 2], of: Vec::new() };
    // A read may be submitted a write before or after the flush that it shows.
    let slack = u64::from(matches!(sight, Sight::Beside(_)) && pages >= 16);
    let mut all = Grid { slack, ..Grid::default() };
    let mut sides = [all; 2];
    let mut own = all;
    let mut last = 0;
    let all_agree = if pages >= LARGE { ALL_LARGE } else { ALL };
    let writes = 120 * pages.max(16);
    // Of a slow drive a bit takes longer than a size.
    let watched = Watch { longest: Span(2 * watched.longest.0), ..watched };
    run(runner, watched, sight, place, writes, &mut bursts, &mut |(at, burst, written)| {
        // As one flush, where two waits follow each other.
        let follows = at == last + 1;
        last = at;
        if follows {
            return false;
        }
        all.flushed(at, burst, pages);
        sides[usize::from(burst.is_multiple_of(2))].flushed(written, burst, pages);
        own.multiples = sides[0].multiples + sides[1].multiples;
        own.distances = sides[0].distances + sides[1].distances;
        let (least, most) = (all.part().min(own.part()), all.part().max(own.part()));
        let enough = match () {
            () if most == 1.0 && least == 0.0 && pages >= ALL_PAGES => all_agree,
            () if most >= NEARLY_ALL && least <= HARDLY_ANY => CLEAR,
            () => ENOUGH,
        };
        all.distances.min(own.distances) >= enough
    })?;
    let (least, most) = (all.part().min(own.part()), all.part().max(own.part()));
    let fewest = if most == 1.0 && least == 0.0 && pages >= ALL_PAGES { all_agree } else { FEWEST };
    if all.distances.min(own.distances) < fewest {
        return Ok(None);
    }
    Ok(match (all.part(), own.part()) {
        (all, own) if all >= WITH_FLUSHES && own <= BY_CHANCE => Some(true),
        (all, own) if own >= WITH_FLUSHES && all <= BY_CHANCE => Some(false),
        _ => None,
    })
}

/// Writes until `done` says that it has seen enough: it is told of each flush how many
/// writes there were, in which burst, and to its side.
fn run(
    runner: &mut Runner<'_>,
    watch: Watch<'_>,
    sight: Sight,
    place: Where,
    writes: u64,
    bursts: &mut Bursts,
    done: &mut dyn FnMut((u64, u64, u64)) -> bool,
) -> Result<Flushes, ProbeError> {
    let begun = runner.now();
    let mut pages = Pages::new(place, runner.pages());
    let mut seen = Flushes { is_real: runner.is_real(), ..Flushes::default() };
    match sight {
        Sight::Waits(think) => {
            for index in 1..=writes {
                let flip = bursts.next(&mut runner.random);
                let lba = pages.next(&mut runner.random, flip);
                let latency = runner.serve(Operation::Write, lba)?.0;
                seen.writes = index;
                if seen.written(latency, watch.slow_write_ns) {
                    let (burst, written) = bursts.of[index as usize - 1];
                    if done((index, burst, written)) {
                        break;
                    }
                }
                if runner.now().since(begun) > watch.longest {
                    break;
                }
                if think > Span::ZERO {
                    runner.wait(think)?;
                }
            }
        }
        Sight::Beside(think) => {
            let writes = writes.min((watch.longest.0 / think.0.max(20_000)).max(64));
            let (mut calm, mut slow_ns, mut all_ns) = (CALM, 0, 0);
            let mut submitted = Vec::new();
            let next = |random: &mut Stream| {
                let flip = bursts.next(random);
                pages.next(random, flip)
            };
            runner.beside(writes, think, next, watch.reads, |is_write, before, start, end| {
                let latency = end.since(start).0;
                if is_write {
                    submitted.push(start.0);
                    return;
                }
                seen.reads.push((before, latency));
                all_ns += latency;
                if latency <= watch.slow_read_ns {
                    calm += 1;
                    return;
                }
                slow_ns += latency;
                if before > 0 {
                    let lasted =
                        end.0.saturating_sub(submitted.get(before as usize - 1).copied().unwrap_or(end.0));
                    if calm >= CALM {
                        seen.at.push(before);
                        seen.waits_ns.push(lasted);
                    } else if let Some(last) = seen.waits_ns.last_mut() {
                        *last = (*last).max(lasted);
                    }
                }
                calm = 0;
            })?;
            seen.writes = writes;
            seen.is_overwhelmed = slow_ns as f64 / all_ns.max(1) as f64 > OVERWHELMED;
            for &at in &seen.at {
                let (burst, written) = bursts.of[at as usize - 1];
                done((at, burst, written));
            }
        }
        Sight::Rested { .. } => unreachable!("it is not watched"),
    }
    seen.took_ns = runner.now().since(begun).0;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once the next write was taken for another flush, and no distance was that of buffers.
    #[test]
    fn who_comes_after_a_wait_in_real_time_has_not_waited() {
        let of = |is_real| {
            let mut seen = Flushes { is_real, ..Flushes::default() };
            let waits = |at: u64| if at.is_multiple_of(32) { 1_000 } else { 10 };
            let after = |at: u64| if at % 32 == 1 && at > 1 { 100 } else { waits(at) };
            (1..=320).for_each(|at| {
                seen.written(after(at), 75);
            });
            seen.writes = 320;
            seen
        };
        assert_eq!(of(true).at, (1..=10).map(|buffers| buffers * 32).collect::<Vec<u64>>());
        assert_eq!(of(true).above(50).at, of(true).at);
        assert_eq!(of(false).at.len(), 19, "in simulated time nobody sleeps");
    }

    /// Once writes that wait for the map, too, hid those that wait for a flush.
    #[test]
    fn most_buffers_have_to_wait_at_one_place_whatever_else_waits() {
        let seen = |at: Vec<u64>| Flushes { at, writes: 20 * 64, ..Flushes::default() };
        let every = |pages: u64| (1..=20).map(move |buffer| buffer * pages);
        let others = |step: u64| (1..20 * 64).filter(move |at| at % 64 != 0 && at % step == 0);
        let mixed = |step| every(64).chain(others(step)).collect::<Vec<u64>>();
        assert!(seen(every(64).collect()).is_in_phase(64));
        assert!(seen(mixed(7)).is_in_phase(64), "another waits at each place in one buffer of seven");
        assert!(!seen(mixed(2)).is_in_phase(64), "all at other places wait as often");
        assert!(!seen(every(63).collect()).is_in_phase(64), "at another place each time");
        assert!(!Flushes { writes: 9 * 64, ..seen(every(64).take(9).collect()) }.is_in_phase(64), "too few");
    }

    #[test]
    fn two_waits_one_after_the_other_are_of_one_flush_unless_most_are_so() {
        let seen = |at: &[u64]| {
            let mut seen = Flushes { at: at.to_vec(), waits_ns: at.to_vec(), ..Flushes::default() };
            seen.once();
            assert_eq!(seen.at, seen.waits_ns);
            seen.at
        };
        assert_eq!(seen(&[10, 11, 20, 30, 31, 40]), [10, 20, 30, 40]);
        assert_eq!(seen(&[10, 11, 12, 13, 20]), [10, 11, 12, 13, 20]);
    }
}
