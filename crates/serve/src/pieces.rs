//! Long trims and writes of zeros, a piece at a time: a device unmaps all that it is asked to
//! at one event, at 100 to 500 ns a page of the server's time, and nobody is served meanwhile.

use std::collections::VecDeque;

use flashkeel_engine::{Completion, Ledger, Request, RequestId, Status};

/// Sectors of a piece at most, 1 MiB: it takes as long as others' turns, about. Pieces end at
/// multiples of that, so that a page or block of whatever size lies in one as a whole.
const PIECE_SECTORS: u64 = 2048;

/// Requests that are served piece by piece, of which one is given at a time.
#[derive(Default)]
pub struct Pieces {
    /// Of each client that has any, next first.
    queues: VecDeque<Queue>,
    /// Whose piece is being served.
    out: Option<RequestId>,
}

/// Those of one client.
struct Queue {
    session: usize,
    /// What has not been given yet of each, oldest first.
    left: VecDeque<Request>,
    /// Who owned the time of the first until now.
    ledger: Ledger,
}

impl Pieces {
    /// Whether a request has more than one.
    pub fn is_long(request: &Request) -> bool {
        u64::from(request.sectors) > PIECE_SECTORS
    }

    /// Takes a client's request.
    pub fn add(&mut self, session: usize, request: Request) {
        match self.queues.iter_mut().find(|queue| queue.session == session) {
            Some(queue) => queue.left.push_back(request),
            None => self.queues.push_back(Queue { session, left: [request].into(), ledger: Ledger::ZERO }),
        }
    }

    /// Whether there is a next piece, and none has yet to end.
    pub fn has_next(&self) -> bool {
        self.out.is_none() && !self.queues.is_empty()
    }

    /// The next piece, under the number of its request, if [there is one](Self::has_next).
    pub fn next(&mut self) -> Option<Request> {
        let left = self.queues.front_mut().filter(|_| self.out.is_none())?.left.front_mut()?;
        let to_boundary = PIECE_SECTORS - left.lba.0 % PIECE_SECTORS;
        let piece = Request { sectors: to_boundary.min(left.sectors.into()) as u32, ..*left };
        left.lba.0 += u64::from(piece.sectors);
        left.sectors -= piece.sectors;
        self.out = Some(piece.id);
        Some(piece)
    }

    /// Something has ended, and whether that was all of its request: then it is told of all of
    /// it. Otherwise it is the next client's turn.
    pub fn landed(&mut self, end: &mut Completion) -> bool {
        if self.out != Some(end.id) {
            return true;
        }
        self.out = None;
        let is_theirs = |queue: &Queue| queue.left.front().is_some_and(|left| left.id == end.id);
        let Some(mut queue) = self.queues.pop_front_if(|queue| is_theirs(queue)) else { return true };
        queue.ledger.add(&end.ledger);
        let is_over = end.status != Status::Ok || queue.left[0].sectors == 0;
        if is_over {
            end.ledger = std::mem::take(&mut queue.ledger);
            queue.left.pop_front();
        }
        if !queue.left.is_empty() {
            self.queues.push_back(queue);
        }
        is_over
    }

    /// A piece that was to be given is not; whether it was one.
    pub fn give_up(&mut self, id: RequestId) -> bool {
        self.out.take_if(|out| *out == id).is_some()
    }

    /// Forgets a client's requests, which are told, but for the one of which a piece is being
    /// served: that ends with it.
    pub fn forget(&mut self, session: usize) -> Vec<RequestId> {
        let Some(at) = self.queues.iter().position(|queue| queue.session == session) else { return vec![] };
        let left = &mut self.queues[at].left;
        let is_out = left.front().is_some_and(|first| self.out == Some(first.id));
        let forgotten = left.drain(usize::from(is_out)..).map(|request| request.id).collect();
        match left.front_mut() {
            Some(first) => first.sectors = 0,
            None => drop(self.queues.remove(at)),
        }
        forgotten
    }
}
