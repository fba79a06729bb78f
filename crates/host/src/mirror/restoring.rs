//! Pages that not every copy had when the process ended: they are kept, and written to all
//! copies again before anything else is served.

use flashkeel_engine::{
    Arena, LOGICAL_PAGE_SECTORS, Operation, Outbox, PageBytes, Payload, Request, Span, Status, Time, Wake,
};

use super::each;
use super::pieces::{Piece, Work, of_pages};
use super::stage::Mirror;

/// Pages that are written at once.
const AT_ONCE: usize = 32;

/// What has been found, and what has become of it.
#[derive(Clone)]
pub(super) struct Restoring {
    /// When it begins; none once it has.
    begins: Option<Time>,
    /// Still to be written.
    pages: Vec<(u32, Box<PageBytes>)>,
    /// Those on their way.
    flying: Vec<Flying>,
    /// Requests that wait, and when they came.
    held: Vec<(Time, Request)>,
}

/// A page on its way to the copies, or to be compared with what they have.
#[derive(Clone, Copy)]
struct Flying {
    page: u32,
    payload: Payload,
    /// Copies that have not ended it, and those that have it.
    left: u8,
    done: u8,
    /// No copy has taken it.
    is_compared: bool,
}

impl Restoring {
    pub fn new(now: Time, pages: Vec<(u32, Box<PageBytes>)>) -> Restoring {
        Restoring { begins: Some(now), pages, flying: Vec::new(), held: Vec::new() }
    }

    pub fn hold(&mut self, now: Time, request: &Request) {
        self.held.push((now, *request));
    }

    /// Power is cut: it begins anew with what not all copies are known to have; returns the requests
    /// that wait.
    fn cut_power(&mut self, now: Time, data: &mut Arena) -> Vec<(Time, Request)> {
        for Flying { page, payload, .. } in self.flying.drain(..) {
            let bytes = data.read(payload, LOGICAL_PAGE_SECTORS as u32).expect("a buffer");
            self.pages.push((page, Box::new(bytes.try_into().expect("a page"))));
            data.give_back(payload);
        }
        // Nothing can be written at the instant at which the power is off.
        self.begins = Some(now + Span(1));
        std::mem::take(&mut self.held)
    }

    /// From when it has begun on the copies say when it goes on.
    pub fn next_event(&self) -> Wake {
        self.begins.into()
    }
}

impl Mirror {
    /// Writes more of what was found; where all has been, requests are served.
    pub(super) fn restore(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        let Some(restoring) = &mut self.restoring else { return };
        restoring.begins = None;
        while let Some(restoring) = self.restoring.as_mut().filter(|each| each.flying.len() < AT_ONCE)
            && let Some((page, bytes)) = restoring.pages.pop()
        {
            let payload = data.take(LOGICAL_PAGE_SECTORS as u32);
            data.write(payload, LOGICAL_PAGE_SECTORS as u32).expect("a buffer").copy_from_slice(&*bytes);
            let left = self.agreement.present();
            restoring.flying.push(Flying { page, payload, left, done: 0, is_compared: false });
            let write = Request { payload, fua: true, ..of_page(Operation::Write, page) };
            for copy in each(left) {
                self.give(now, copy, Work::Restore(page), &write, Payload::NONE, outbox);
            }
        }
        if self.restoring.as_ref().is_some_and(|restoring| restoring.flying.is_empty()) {
            let held = self.restoring.take().map_or(Vec::new(), |restoring| restoring.held);
            held.iter().for_each(|(submitted, request)| self.begin(now, *submitted, request, data, outbox));
        }
    }

    /// Power is cut: what waits is one more request that is cut off.
    pub(super) fn stop_restoring(&mut self, now: Time, data: &mut Arena) {
        let Some(restoring) = &mut self.restoring else { return };
        for (submitted, request) in restoring.cut_power(now, data) {
            self.parts.begin(submitted, submitted, &request);
        }
    }

    /// A copy has a page by now, or does not take it.
    pub(super) fn restored(
        &mut self,
        now: Time,
        piece: &Piece,
        page: u32,
        status: Status,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let has_it = status == Status::Ok && (!piece.is_read || self.is_kept(page, piece.own, data));
        let Some(restoring) = &mut self.restoring else { return };
        let Some(at) = restoring.flying.iter().position(|each| each.page == page) else { return };
        let flying = &mut restoring.flying[at];
        flying.left &= !(1 << piece.copy);
        flying.done |= u8::from(has_it) << piece.copy;
        if flying.left != 0 {
            return;
        }
        let present = self.agreement.present();
        if flying.done == 0 && !flying.is_compared && present != 0 {
            (flying.left, flying.is_compared) = (present, true);
            for copy in each(present) {
                let own = data.take(LOGICAL_PAGE_SECTORS as u32);
                self.give(now, copy, Work::Compare(page), &of_page(Operation::Read, page), own, outbox);
            }
            return;
        }
        let Flying { done, payload, is_compared, .. } = restoring.flying.swap_remove(at);
        data.give_back(payload);
        let pages = page as usize..page as usize + 1;
        self.agreement.decide(pages.clone());
        if done == 0 {
            // It stays where it is kept; what the copies have is older, or was never acknowledged.
            self.agreement.damage(page as usize);
        } else {
            each(done).for_each(|copy| self.agreement.caught_up(pages.clone(), copy));
            self.agreement.behind(pages.clone(), present & !done);
            // Where none took it, nobody has made it durable.
            if !is_compared {
                self.hand_over(pages);
            }
        }
        self.restore(now, data, outbox);
    }

    /// Whether a copy has brought what is kept of a page.
    fn is_kept(&self, page: u32, brought: Payload, data: &Arena) -> bool {
        let mut flying = self.restoring.iter().flat_map(|restoring| &restoring.flying);
        let kept = flying.find(|each| each.page == page).map(|each| each.payload);
        let read = |payload| data.read(payload, LOGICAL_PAGE_SECTORS as u32);
        kept.is_some_and(|kept| read(kept) == read(brought))
    }

    /// What is kept of pages is given up where all copies have it.
    pub(super) fn hand_over(&mut self, pages: std::ops::Range<usize>) {
        let Some(books) = &mut self.books else { return };
        let present = self.agreement.present();
        pages
            .filter(|&page| self.agreement.valid(page) == present)
            .for_each(|page| books.hand_over(page as u64));
    }
}

fn of_page(operation: Operation, page: u32) -> Request {
    of_pages(operation, page as usize..page as usize + 1)
}
