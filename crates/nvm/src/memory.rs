//! What the device holds, where its data is real.

use std::collections::BTreeMap;

use flashkeel_engine::{
    Arena, FoundPages, Keeper, Kept, LOGICAL_PAGE_SECTORS, Operation, PageBytes, Request, SECTOR_BYTES,
};

/// The bytes of the device, page by page; zeros where there is no page.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pages: BTreeMap<u64, Box<PageBytes>>,
    kept: Kept,
}

impl Memory {
    /// What was found, which is kept from now on.
    pub fn kept(keeper: Box<dyn Keeper>, found: FoundPages) -> Memory {
        let pages = found.into_iter().map(|(page, bytes)| (u64::from(page), bytes)).collect();
        Memory { pages, kept: Kept::by(keeper) }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for (page, _) in std::mem::take(&mut self.pages) {
            self.kept.keeper().into_iter().for_each(|keeper| keeper.clear(page as u32));
        }
    }

    /// Does what a request asks, of its bytes.
    pub fn serve(&mut self, request: &Request, data: &mut Arena) {
        for sector in 0..request.sectors {
            self.serve_sector(request, sector, data);
        }
        let changes = !matches!(request.operation, Operation::Read | Operation::Flush | Operation::Demote);
        if let Some(keeper) = self.kept.keeper().filter(|_| changes) {
            let end = request.lba.0 + u64::from(request.sectors);
            for page in request.lba.0 / LOGICAL_PAGE_SECTORS..end.div_ceil(LOGICAL_PAGE_SECTORS) {
                match self.pages.get(&page).filter(|bytes| bytes.iter().any(|&byte| byte != 0)) {
                    Some(bytes) => keeper.keep(page as u32, Some(bytes)),
                    None => keeper.clear(page as u32),
                }
            }
        }
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
