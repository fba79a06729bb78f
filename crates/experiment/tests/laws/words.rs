//! The laws of what a device is told.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{Answer, Command, Event, Notice, Operation, Place, Refusal, Status, Window};

use crate::host::{Seen, changes};
use crate::laws::Trial;

/// Which ends other than the good one are due to what was said to a device, or
/// what it has said.
#[derive(Default)]
pub struct Ends {
    pub read_only: BTreeSet<Place>,
    removed: BTreeSet<Place>,
}

impl Ends {
    pub fn see(&mut self, seen: &Seen) {
        if let Seen::Raised { notice: Notice { place, event: Event::WornOut } } = seen {
            self.read_only.insert(place.clone());
        }
        let Seen::Told { place, command, answer: Ok(Answer::Done), .. } = seen else { return };
        match command {
            Command::ReadOnly(true) => self.read_only.insert(place.clone()),
            Command::ReadOnly(false) => self.read_only.remove(place),
            Command::Remove => self.removed.insert(place.clone()),
            Command::Window(..) | Command::State => false,
        };
    }

    pub fn may_be(&self, operation: Operation, status: Status) -> bool {
        match status {
            Status::ReadOnly => changes(operation) && !self.read_only.is_empty(),
            Status::Gone => !self.removed.is_empty(),
            // It was with what is gone, such as a copy that alone took it.
            Status::Lost => operation == Operation::Read && !self.removed.is_empty(),
            _ => false,
        }
    }

    /// Whether the whole of it may take no such request.
    pub fn must_refuse(&self, operation: Operation) -> bool {
        let whole = Place::default();
        self.removed.contains(&whole) || changes(operation) && self.read_only.contains(&whole)
    }
}

/// What a device has been told, and has told of itself.
#[derive(Default)]
struct Said {
    read_only: Option<bool>,
    window: Option<Window>,
    /// Whether that has begun, if it is deterministic.
    has_begun: bool,
    is_removed: bool,
}

/// What a device was told holds until it is told otherwise, its state says so, and
/// it raises nothing else.
pub fn told(trial: &Trial<'_>) -> Result<(), String> {
    let mut said: BTreeMap<&Place, Said> = BTreeMap::new();
    for seen in trial.history {
        match seen {
            Seen::Told { place, is_there: true, command, answer } => {
                let Said { read_only, window, is_removed, has_begun } = said.entry(place).or_default();
                match (command, answer) {
                    (_, Err(Refusal::NotNow(_) | Refusal::Unknown)) if *is_removed => {}
                    (_, answer) if *is_removed => {
                        return Err(format!("taken out, {place} answers {answer:?}"));
                    }
                    (Command::State, Ok(Answer::State(readings))) => {
                        let reading = |name| readings.iter().find(|(other, _)| other == name);
                        // One that was commanded may have begun by now, or not.
                        let deterministic = match window {
                            Some(Window::Deterministic) => has_begun.then_some(true),
                            window => window.map(|_| false),
                        };
                        let expected =
                            [("read_only", read_only.or(Some(false))), ("deterministic", deterministic)];
                        for (name, expected) in expected {
                            let (Some((_, found)), Some(expected)) = (reading(name), expected) else {
                                continue;
                            };
                            if *found != u64::from(expected) {
                                return Err(format!("{place} says {name} {found}, not {expected}"));
                            }
                        }
                    }
                    (Command::State, Ok(Answer::Done)) => return Err(format!("{place} tells no state")),
                    (_, Ok(Answer::State(_))) => return Err(format!("{place} answers {command:?} so")),
                    (Command::ReadOnly(is_read_only), Ok(Answer::Done)) => *read_only = Some(*is_read_only),
                    (Command::Window(_, begun), Ok(Answer::Done)) => {
                        *has_begun &= *begun == Window::Deterministic;
                        *window = Some(*begun);
                    }
                    (Command::Remove, Ok(Answer::Done)) => *is_removed = true,
                    (_, Err(_)) => {}
                }
            }
            Seen::Raised { notice } => {
                let Said { read_only, window, has_begun, .. } = said.entry(&notice.place).or_default();
                match notice.event {
                    Event::WindowBegan(_) => {
                        if *window != Some(Window::Deterministic) || std::mem::replace(has_begun, true) {
                            return Err(format!("{notice:?}, but none was commanded"));
                        }
                    }
                    Event::WindowWarning(..) if *has_begun => {}
                    Event::WindowWarning(..) => {
                        return Err(format!("{notice:?}, but there is no such window"));
                    }
                    Event::WindowEnded(..) => {
                        *has_begun = false;
                        if window.replace(Window::NonDeterministic) != Some(Window::Deterministic) {
                            return Err(format!("{notice:?}, but there was no such window"));
                        }
                    }
                    // Copies take turns by themselves.
                    Event::TurnBegan(_) => {}
                    Event::WornOut => *read_only = Some(true),
                }
            }
            // Windows begin anew.
            Seen::Cut { .. } => {
                said.values_mut().for_each(|said| (said.window, said.has_begun) = (None, false))
            }
            _ => {}
        }
    }
    Ok(())
}
