//! Stages on their own: over leaves whose order of service the test decides.

mod barriers;
mod blocks;
mod drive;
mod hints;
mod holds;
mod mirror;
mod network;
mod oracle;
mod passing;
mod schedulers;
mod states;
mod striped;
mod tier;
mod timers;
mod windowed;

use flashkeel_engine::{Lba, Operation, Request, RequestId, TenantId};

fn request(id: u64, tenant: u16, operation: Operation, page: u64, pages: u32) -> Request {
    let lba = Lba(page * 8);
    Request { tenant: TenantId(tenant), ..Request::new(RequestId(id), operation, lba, pages * 8) }
}
