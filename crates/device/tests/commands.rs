//! What the device is told and asked beside requests: it takes no writes, it is
//! taken out, it tells its state. Windows are in `windows.rs`.

mod support;

use flashkeel_device::Ssd;
use flashkeel_engine::{Answer, Arena, Command, Leaf, Operation, Refusal, Status, Submit, Time, Wake};
use support::{ready, request, settle, state, tell, tiny};

#[test]
fn a_read_only_device_refuses_what_changes_it_and_ends_what_it_has_taken() {
    let mut ssd = ready(&tiny(), 1);
    let now = Time(1_000);
    let offer = |ssd: &mut Ssd, id, operation| {
        let pages = u32::from(operation != Operation::Flush);
        ssd.submit(now, &request(id, operation, 0, pages), &mut Arena::new())
    };
    assert_eq!(offer(&mut ssd, 0, Operation::Write), Submit::Accepted);
    assert_eq!(tell(&mut ssd, now, Command::ReadOnly(true)), Ok(Answer::Done));
    assert_eq!(state(&mut ssd, now, "read_only"), 1);
    for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
        assert_eq!(offer(&mut ssd, 1, operation), Submit::Refused(Status::ReadOnly), "{operation:?}");
    }
    for (id, operation) in [(2, Operation::Read), (3, Operation::Flush)] {
        assert_eq!(offer(&mut ssd, id, operation), Submit::Accepted, "{operation:?}");
    }
    let mut done = Vec::new();
    settle(&mut ssd, &mut done);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|completion| completion.status == Status::Ok));
    assert_eq!(tell(&mut ssd, now, Command::ReadOnly(false)), Ok(Answer::Done));
    let again = request(4, Operation::Write, 0, 1);
    assert_eq!(ssd.submit(done[2].time, &again, &mut Arena::new()), Submit::Accepted);
}

#[test]
fn what_is_inside_a_device_that_is_taken_out_is_gone_and_so_is_all_that_follows() {
    let mut ssd = ready(&tiny(), 1);
    let operations = [Operation::Write, Operation::Read, Operation::Trim, Operation::Flush];
    for (id, operation) in (0..40).map(|id| (id, operations[id as usize % 4])) {
        let pages = if operation == Operation::Flush { 0 } else { 9 };
        let request = request(id, operation, id * 10 * u64::from(pages > 0), pages);
        assert_eq!(ssd.submit(Time::ZERO, &request, &mut Arena::new()), Submit::Accepted);
    }
    let (mut before, mut done) = (Vec::new(), Vec::new());
    let now = Time(90_000);
    ssd.advance(now, &mut Arena::new(), &mut before);
    assert!(!before.is_empty() && before.len() < 40, "{} have ended", before.len());
    assert_eq!(tell(&mut ssd, now, Command::Remove), Ok(Answer::Done));
    assert_eq!(ssd.next_event(), Wake::at(now));
    ssd.advance(now, &mut Arena::new(), &mut done);
    assert_eq!(before.len() + done.len(), 40);
    for completion in &done {
        assert_eq!((completion.status, completion.time), (Status::Gone, now));
        assert_eq!(completion.ledger.total(), now.since(Time::ZERO));
    }
    assert_eq!(ssd.next_event(), Wake::NEVER);
    for operation in [Operation::Read, Operation::Flush] {
        let pages = u32::from(operation == Operation::Read);
        let answer = ssd.submit(Time(99_000), &request(40, operation, 0, pages), &mut Arena::new());
        assert_eq!(answer, Submit::Refused(Status::Gone));
    }
    assert!(matches!(tell(&mut ssd, now, Command::State), Err(Refusal::NotNow(_))));
    ssd.cut_power(Time(99_000), &mut Arena::new());
    assert_eq!(ssd.next_event(), Wake::NEVER);
}

/// Also where they are in other places of the device than their turn would have.
#[test]
fn requests_of_one_instant_end_in_the_order_in_which_they_came() {
    let mut ssd = ready(&tiny(), 1);
    let offer = |ssd: &mut Ssd, now, id| {
        let write = request(id, Operation::Write, id, 1);
        assert_eq!(ssd.submit(now, &write, &mut Arena::new()), Submit::Accepted);
    };
    (0..8).for_each(|id| offer(&mut ssd, Time::ZERO, id));
    settle(&mut ssd, &mut Vec::new());
    let now = Time(1_000_000_000);
    (8..16).for_each(|id| offer(&mut ssd, now, id));
    let mut removed = ssd.clone();
    assert_eq!(tell(&mut removed, now, Command::Remove), Ok(Answer::Done));
    ssd.cut_power(now, &mut Arena::new());
    for mut ssd in [ssd, removed] {
        let mut done = Vec::new();
        ssd.advance(now, &mut Arena::new(), &mut done);
        assert!(done.iter().map(|done| done.id.0).eq(8..16), "{done:?}");
    }
}
