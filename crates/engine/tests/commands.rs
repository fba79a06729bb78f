//! Commands, events and refusals through stacks.

use flashkeel_engine::{
    Answer, Arena, Command, Completion, Durable, Event, Lba, Leaf, Limits, Notice, Operation, Outbox, Place,
    Refusal, Request, RequestId, Stack, Stage, Status, Submit, Time, Wake, Window, WindowEnd,
};

const LIMITS: Limits =
    Limits { sectors: 80, block_sectors: 8, preferred_sectors: 8, durable: Durable::Acknowledged };
const ENDED: Event = Event::WindowEnded(0, WindowEnd::Urgent);

/// A device in a window; it takes nothing else than commands.
#[derive(Default)]
struct Windowed {
    window: Option<Window>,
    has_ended: bool,
}

impl Leaf for Windowed {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, _now: Time, _request: &Request, _data: &mut Arena) -> Submit {
        Submit::Refused(Status::ReadOnly)
    }

    fn next_event(&self) -> Wake {
        Wake::NEVER.noting(self.has_ended)
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, _completions: &mut Vec<Completion>) {}

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}

    fn command(
        &mut self,
        _now: Time,
        place: &Place,
        command: &Command,
        _data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        match command {
            _ if !place.0.is_empty() => Err(Refusal::NoSuchPlace),
            Command::Window(0, window) => {
                self.has_ended = *window == Window::NonDeterministic && self.window.is_some();
                self.window = Some(*window);
                Ok(Answer::Done)
            }
            Command::State => {
                let is_deterministic = u64::from(self.window == Some(Window::Deterministic));
                Ok(Answer::State(vec![("deterministic".into(), is_deterministic)]))
            }
            _ => Err(Refusal::Unknown),
        }
    }

    fn notice(&mut self) -> Option<Notice> {
        let has_ended = std::mem::take(&mut self.has_ended);
        has_ended.then(|| Notice { place: Place::default(), event: ENDED })
    }
}

/// Passes requests on; begins a window at every child when asked to write, and
/// keeps the answers.
#[derive(Default)]
struct Coordinator {
    children: usize,
    answers: Vec<(usize, Result<Answer, Refusal>)>,
}

impl Stage for Coordinator {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, _now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        if request.operation == Operation::Write {
            let window = Command::Window(0, Window::Deterministic);
            outbox.commands.extend((0..self.children).map(|child| (child, window.clone())));
        }
        outbox.requests.push((0, *request));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        Wake::NEVER
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, _outbox: &mut Outbox) {}

    fn completed(
        &mut self,
        _now: Time,
        _child: usize,
        _completion: &mut Completion,
        _data: &mut Arena,
        _outbox: &mut Outbox,
    ) -> bool {
        true
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena, _outbox: &mut Outbox) {}

    fn answered(
        &mut self,
        _now: Time,
        child: usize,
        _command: &Command,
        answer: Result<Answer, Refusal>,
        _outbox: &mut Outbox,
    ) {
        self.answers.push((child, answer));
    }
}

fn pair<L: Leaf>(children: [L; 2]) -> Stack<Coordinator, L> {
    Stack::new(Coordinator { children: 2, answers: vec![] }, Vec::from(children))
}

#[test]
fn a_command_finds_its_place_through_any_number_of_stages() {
    let mut stack = pair([
        pair([Windowed::default(), Windowed::default()]),
        pair([Windowed::default(), Windowed::default()]),
    ]);
    let mut tell = |place: &[usize], command| {
        stack.command(Time(3), &Place(place.to_vec()), &command, &mut Arena::new())
    };
    assert_eq!(tell(&[1, 0], Command::Window(0, Window::Deterministic)), Ok(Answer::Done));
    let state = |is_deterministic| Ok(Answer::State(vec![("deterministic".into(), is_deterministic)]));
    assert_eq!(tell(&[1, 0], Command::State), state(1));
    assert_eq!(tell(&[0, 0], Command::State), state(0));
    assert_eq!(tell(&[1, 0], Command::Window(1, Window::Deterministic)), Err(Refusal::Unknown));
    assert_eq!(tell(&[], Command::State), Err(Refusal::Unknown), "the stage knows none");
    for place in [&[2][..], &[1, 2], &[1, 0, 0]] {
        assert_eq!(tell(place, Command::State), Err(Refusal::NoSuchPlace), "{place:?}");
    }
}

#[test]
fn an_event_names_who_raised_it() {
    let mut stack = pair([
        pair([Windowed::default(), Windowed::default()]),
        pair([Windowed::default(), Windowed::default()]),
    ]);
    assert_eq!(stack.notice(), None);
    for window in [Window::Deterministic, Window::NonDeterministic] {
        let place = Place(vec![0, 1]);
        let answer = stack.command(Time(3), &place, &Command::Window(0, window), &mut Arena::new());
        assert_eq!(answer, Ok(Answer::Done));
    }
    let notice = stack.notice().expect("an event");
    assert_eq!((notice.place.to_string().as_str(), notice.event), ("0.1", ENDED));
    assert_eq!(stack.notice(), None);
}

#[test]
fn a_stage_commands_its_children_and_hears_their_answers() {
    let mut stack = pair([Windowed::default(), Windowed::default()]);
    let write = Request::new(RequestId(0), Operation::Write, Lba(0), 8);
    assert_eq!(stack.submit(Time(0), &write, &mut Arena::new()), Submit::Accepted);
    assert_eq!(stack.stage().answers, [(0, Ok(Answer::Done)), (1, Ok(Answer::Done))]);
    assert!(stack.children().all(|child| child.window == Some(Window::Deterministic)));
}

#[test]
fn what_a_child_refuses_ends_with_its_reason() {
    let mut stack = pair([Windowed::default(), Windowed::default()]);
    let read = Request::new(RequestId(7), Operation::Read, Lba(0), 8);
    assert_eq!(stack.submit(Time(4), &read, &mut Arena::new()), Submit::Accepted);
    let mut done = Vec::new();
    stack.advance(Time(4), &mut Arena::new(), &mut done);
    assert_eq!((done[0].id, done[0].time, done[0].status), (RequestId(7), Time(4), Status::ReadOnly));
    assert_eq!(stack.next_event(), Wake::NEVER);
}
