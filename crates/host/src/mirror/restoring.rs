//! Pages that not every copy had when the process ended: they are kept, and written to all
//! copies again before anything else is served.

use flashkeel_engine::{
    Arena, LOGICAL_PAGE_SECTORS, Lba, Operation, Outbox, PageBytes, Payload, Request, RequestId, Status,
    Time, Wake,
};

use super::each;
use super::pieces::Work;
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
    /// Those on their way: the page, copies that have not ended it, and those that have it.
    flying: Vec<(u32, u8, u8, Payload)>,
    /// Requests that wait, and when they came.
    held: Vec<(Time, Request)>,
}

impl Restoring {
    pub fn new(now: Time, pages: Vec<(u32, Box<PageBytes>)>) -> Restoring {
        Restoring { begins: Some(now), pages, flying: Vec::new(), held: Vec::new() }
    }

    pub fn hold(&mut self, now: Time, request: &Request) {
        self.held.push((now, *request));
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
            let copies = self.agreement.present();
            restoring.flying.push((page, copies, 0, payload));
            let lba = Lba(u64::from(page) * LOGICAL_PAGE_SECTORS);
            let write = Request {
                payload,
                fua: true,
                ..Request::new(RequestId(0), Operation::Write, lba, LOGICAL_PAGE_SECTORS as u32)
            };
            for copy in each(copies) {
                self.give(now, copy, Work::Restore(page), &write, Payload::NONE, outbox);
            }
        }
        if self.restoring.as_ref().is_some_and(|restoring| restoring.flying.is_empty()) {
            let held = self.restoring.take().map_or(Vec::new(), |restoring| restoring.held);
            held.iter().for_each(|(submitted, request)| self.begin(now, *submitted, request, data, outbox));
        }
    }

    /// A copy has got a page, or has not.
    pub(super) fn restored(
        &mut self,
        now: Time,
        copy: usize,
        page: u32,
        status: Status,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let Some(restoring) = &mut self.restoring else { return };
        let Some(at) = restoring.flying.iter().position(|each| each.0 == page) else { return };
        let (_, left, done, payload) = &mut restoring.flying[at];
        *left &= !(1 << copy);
        *done |= u8::from(status == Status::Ok) << copy;
        if *left != 0 {
            return;
        }
        let (done, payload) = (*done, *payload);
        restoring.flying.swap_remove(at);
        data.give_back(payload);
        let pages = page as usize..page as usize + 1;
        // Where none takes it, it stays where it is kept.
        if done != 0 {
            each(done).for_each(|copy| self.agreement.caught_up(pages.clone(), copy));
            self.agreement.behind(pages.clone(), self.agreement.present() & !done);
            self.agreement.decide(pages.clone());
            self.hand_over(pages);
        }
        self.restore(now, data, outbox);
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
