//! What the device holds, where its data is real.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use flashkeel_engine::{
    Arena, FoundPages, Keeper, Kept, LOGICAL_PAGE_SECTORS, Operation, PageBytes, Request, SECTOR_BYTES,
    Status,
};

/// The bytes of the device, page by page; zeros where there is no page.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pages: BTreeMap<u64, Box<PageBytes>>,
    /// Pages that were found damaged.
    damaged: BTreeSet<u64>,
    kept: Kept,
}

impl Memory {
    /// What was found, which is kept from now on.
    pub fn kept(keeper: Box<dyn Keeper>, found: FoundPages) -> Memory {
        Memory {
            pages: found.whole.into_iter().map(|(page, bytes)| (u64::from(page), bytes)).collect(),
            damaged: found.damaged.into_iter().map(u64::from).collect(),
            kept: Kept::by(keeper),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        let pages = std::mem::take(&mut self.pages).into_keys().chain(std::mem::take(&mut self.damaged));
        for page in pages {
            self.kept.keeper().into_iter().for_each(|keeper| keeper.clear(page as u32));
        }
    }

    /// Does what a request asks, of its bytes. Where it would need what a damaged page held
    /// nothing is done.
    pub fn serve(&mut self, request: &Request, data: &mut Arena) -> Status {
        let end = request.lba.0 + u64::from(request.sectors);
        let pages = request.lba.0 / LOGICAL_PAGE_SECTORS..end.div_ceil(LOGICAL_PAGE_SECTORS);
        if !self.damaged.is_empty() && self.needs_damaged(request, pages.clone()) {
            return Status::MediaError;
        }
        for sector in 0..request.sectors {
            self.serve_sector(request, sector, data);
        }
        let changes = !matches!(request.operation, Operation::Read | Operation::Flush | Operation::Demote);
        if let Some(keeper) = self.kept.keeper().filter(|_| changes) {
            for page in pages {
                match self.pages.get(&page).filter(|bytes| bytes.iter().any(|&byte| byte != 0)) {
                    Some(bytes) => keeper.keep(page as u32, Some(bytes)),
                    None => keeper.clear(page as u32),
                }
            }
        }
        Status::Ok
    }

    /// Whether a request reads damaged pages, or changes some of them in part. If not, those
    /// that it changes are damaged no more.
    #[cold]
    fn needs_damaged(&mut self, request: &Request, pages: Range<u64>) -> bool {
        let (from, to) = (request.lba.0, request.lba.0 + u64::from(request.sectors));
        let whole = from.div_ceil(LOGICAL_PAGE_SECTORS)..to / LOGICAL_PAGE_SECTORS;
        let is_needed = |page: &u64| match request.operation {
            Operation::Flush | Operation::Demote => false,
            Operation::Read => true,
            _ => !whole.contains(page),
        };
        if self.damaged.range(pages).any(is_needed) {
            return true;
        }
        if request.operation.is_change() {
            self.damaged.retain(|page| !whole.contains(page));
        }
        false
    }

    /// Does what a request asks of one of its sectors.
    fn serve_sector(&mut self, request: &Request, sector: u32, data: &mut Arena) {
        let lba = request.lba.0 + u64::from(sector);
        let (page, within) = (lba / LOGICAL_PAGE_SECTORS, lba % LOGICAL_PAGE_SECTORS);
        let within = (within * SECTOR_BYTES) as usize..((within + 1) * SECTOR_BYTES) as usize;
        let payload = request.payload.skip(sector);
        match request.operation {
            Operation::Read => {
                let Some(place) = data.write(payload, 1) else { return };
                match self.pages.get(&page) {
                    Some(page) => place.copy_from_slice(&page[within]),
                    None => place.fill(0),
                }
            }
            Operation::Write if request.payload.is_some() => {
                let page = self.pages.entry(page).or_insert_with(|| Box::new([0; _]));
                page[within].copy_from_slice(data.read(payload, 1).expect("the bytes of a write"));
            }
            Operation::Write | Operation::Trim | Operation::WriteZeroes => {
                if let Some(page) = self.pages.get_mut(&page) {
                    page[within].fill(0);
                }
            }
            Operation::Flush | Operation::Demote => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use flashkeel_engine::{Lba, RequestId};

    use super::*;

    /// Pages, with the first byte of each.
    type Pages = Vec<(u32, Option<u8>)>;

    /// What it has been told.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Pages>>);

    impl Keeper for Told {
        fn keep(&mut self, page: u32, bytes: Option<&PageBytes>) {
            self.0.lock().expect("no panic").push((page, bytes.map(|bytes| bytes[0])));
        }

        fn clear(&mut self, page: u32) {
            self.0.lock().expect("no panic").push((page, None));
        }

        fn hand_over(&mut self, _page: u32) {}

        fn agreed(&mut self, _pages: Range<u32>) {}

        fn shown(&mut self, _pages: Range<u32>) {}

        fn has(&self, _page: u32) -> bool {
            true
        }
    }

    #[test]
    fn a_damaged_page_can_be_read_once_all_of_it_has_been_changed() {
        let told = Told::default();
        let found = FoundPages { whole: vec![(0, Box::new([1; _]))], damaged: [1, 2, 3].into() };
        let mut memory = Memory::kept(Box::new(told.clone()), found);
        let mut data = Arena::new();
        let payload = data.take(32);
        let mut serve = |operation, from, sectors| {
            data.write(payload, 32).expect("a buffer").fill(7);
            let request = Request { payload, ..Request::new(RequestId(0), operation, Lba(from), sectors) };
            memory.serve(&request, &mut data)
        };
        let (good, bad) = (Status::Ok, Status::MediaError);
        assert_eq!(
            [(0, 8), (7, 2), (8, 1), (24, 9)].map(|(from, sectors)| serve(Operation::Read, from, sectors)),
            [good, bad, bad, bad]
        );
        // Of a request that changes a part of one nothing is done.
        for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
            assert_eq!(
                [(8, 7), (15, 2), (4, 8), (12, 16)].map(|(from, sectors)| serve(operation, from, sectors)),
                [bad; 4]
            );
        }
        assert_eq!([(0, 0), (8, 8)].map(|(from, sectors)| serve(Operation::Flush, from, sectors)), [good; 2]);
        assert!(told.0.lock().expect("no panic").is_empty());
        assert_eq!(serve(Operation::Write, 4, 12), good);
        assert_eq!(serve(Operation::Trim, 16, 8), good);
        assert_eq!(*told.0.lock().expect("no panic"), [(0, Some(1)), (1, Some(7)), (2, None)]);
        assert_eq!(serve(Operation::Read, 0, 24), good);
        assert_eq!(serve(Operation::Write, 8, 1), good);
        assert_eq!(serve(Operation::Read, 16, 9), bad);
    }
}
