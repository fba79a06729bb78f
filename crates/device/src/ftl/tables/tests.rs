//! The tables by themselves: no time, no operations, no tasks.

use flashkeel_engine::{Stream, Time};

use super::{BlockState, Blocks, Entry, Lane, Map, Reserves, Tables};
use crate::address::{BlockId, Home, Lpn, NONE, Ppn};
use crate::flash::{Geometry, WearConfig};
use crate::ftl::gc::movement::Manner;
use crate::ftl::gc::rotation::Order;
use crate::ftl::gc::{GcLayout, InvocationConfig, VictimConfig};
use crate::ftl::slc::SlcLayout;
use crate::ftl::tables::SparesLayout;
use crate::ftl::{AllocationConfig, PartitionLayout, Policies, Shape, TaskLayouts, UpdateConfig};
use crate::sched::Task;

/// One partition of four chips with 16 blocks each, its map in memory.
fn layout(has_volatile_buffer: bool) -> PartitionLayout {
    PartitionLayout {
        geometry: Geometry {
            channels: 2,
            chips_per_channel: 2,
            blocks_per_chip: 16,
            pages_per_block: 8,
            units_per_page: 2,
        },
        chips: 4,
        lpns: 512,
        map_pages: 1,
        cached_map_pages: 1,
        stripe_width: 1,
        static_stripes: None,
        has_volatile_buffer,
        domains: 1,
        reserves: Reserves { host: 0, map: 0, map_margin: 0 },
        gc: GcLayout {
            start_below: 1,
            stop_above: 1,
            force_below: 1,
            jobs: 1,
            pages_in_flight: 1,
            manner: Manner::Queued,
            order: Order::Any,
            erases_in_pauses: false,
            most_ahead: 1,
        },
        tasks: TaskLayouts::at_rest(),
        spares: None,
        slc: SlcLayout::default(),
        policies: Policies {
            allocation: AllocationConfig::default(),
            wear: WearConfig::default(),
            victim: VictimConfig::default(),
            invocation: InvocationConfig::default(),
            update: UpdateConfig::default(),
        },
    }
}

/// Buffers a page as the front does; its entry.
fn buffer(tables: &mut Tables, lane: &mut Lane, lpn: Lpn) -> u32 {
    let first = tables.map.ppns();
    let entry = Entry::new(lpn, Home::UNMAPPED, NONE, 0, Time::ZERO);
    let id = tables.entries.push(lane, entry, Some(first));
    tables.supersede(lpn, id);
    id
}

/// Programs what is buffered into one flash page, as long as there is any.
fn flush(tables: &mut Tables, lane: &mut Lane) {
    while lane.len > 0 {
        let count = lane.len.min(tables.shape.units_per_page);
        let mut next = tables.entries.take(lane, count);
        let Tables { points, blocks, .. } = tables;
        let place = points.allocate(Task::Host, 0, 0, blocks, |_| 0).expect("a free block");
        let page = tables.shape.page_of(place.block, place.page);
        let mut ppn = tables.shape.first_unit(page);
        while next != NONE {
            let (entry, following) = tables.entries.release(next);
            if tables.is_newest_copy(&entry) {
                tables.install(entry.lpn, entry.from, ppn);
            }
            (ppn.0, next) = (ppn.0 + 1, following);
        }
        let exhausted = tables.points.is_exhausted(Task::Host, place.chip, place.block);
        tables.blocks.end_program(place.block, exhausted);
    }
}

#[test]
fn any_order_of_writes_trims_and_flushes_leaves_every_page_one_home() {
    for is_volatile in [false, true] {
        let layout = layout(is_volatile);
        let mut tables = Tables::new(&layout, &Shape::new(&layout, 0));
        let mut random = Stream::new(3, "tables");
        let (mut lane, mut written) = (Lane::EMPTY, [false; 64]);
        for _ in 0..600 {
            let lpn = Lpn(random.below(64) as u32);
            match random.below(8) {
                0 => flush(&mut tables, &mut lane),
                1 => {
                    tables.unmap(lpn);
                    written[lpn.0 as usize] = false;
                }
                _ => {
                    buffer(&mut tables, &mut lane, lpn);
                    written[lpn.0 as usize] = true;
                }
            }
            tables.check();
            let is_mapped = |lpn| tables.map.home(Lpn(lpn)) != Home::UNMAPPED;
            assert!((0..64).all(|lpn| is_mapped(lpn) == written[lpn as usize]), "volatile: {is_volatile}");
        }
        flush(&mut tables, &mut lane);
        tables.check();
        let in_flash = |lpn| tables.map.flash_home(Lpn(lpn)).is_some();
        assert!((0..64).all(|lpn| in_flash(lpn) == written[lpn as usize]));
    }
}

#[test]
fn what_is_saved_and_restored_is_the_same() {
    let layout = layout(false);
    let shape = Shape::new(&layout, 0);
    let mut tables = Tables::new(&layout, &shape);
    let mut lane = Lane::EMPTY;
    for lpn in [5, 9, 5, 0, 7, 9, 9, 1] {
        buffer(&mut tables, &mut lane, Lpn(lpn));
    }
    flush(&mut tables, &mut lane);
    let mut saved = Vec::new();
    tables.save(&mut saved).expect("memory takes it");
    let mut restored = Tables::new(&layout, &shape);
    restored.restore(&mut saved.as_slice()).expect("what was saved");
    restored.check();
    assert!((0..64).all(|lpn| restored.map.home(Lpn(lpn)) == tables.map.home(Lpn(lpn))));
    assert!(restored.points.open_blocks().eq(tables.points.open_blocks()));
    assert_eq!(restored.free_blocks(), tables.free_blocks());
    // Cut short it is refused.
    let mut other = Tables::new(&layout, &shape);
    assert!(other.restore(&mut &saved[..saved.len() - 1]).is_err());
}

#[test]
fn valid_pages_are_counted_across_words() {
    let mut map = Map::new(300, 300);
    (0..300).step_by(3).for_each(|page| map.set_valid(Ppn(page), Lpn(page)));
    assert_eq!(map.valid_of_each(100), [34, 33, 33]);
}

#[test]
fn room_is_that_of_data_where_there_is_the_least() {
    let mut layout = layout(false);
    layout.stripe_width = 2;
    let tables = Tables::new(&layout, &Shape::new(&layout, 0));
    assert_eq!(2 * tables.spare_units(), tables.free_units(), "the rest is for parity");
    (layout.stripe_width, layout.domains) = (1, 4);
    let mut tables = Tables::new(&layout, &Shape::new(&layout, 0));
    let Tables { points, blocks, .. } = &mut tables;
    for _ in 0..17 {
        let place = points.allocate(Task::Host, 0, 0, blocks, |_| 0).expect("a free block");
        blocks.end_program(place.block, points.is_exhausted(Task::Host, place.chip, place.block));
    }
    // Three of the sixteen blocks of a domain are in use.
    assert_eq!(tables.spare_units(), 4 * 13 * 16);
}

/// Opens a block of a chip and fills it with pages of which so many are valid.
fn fill(blocks: &mut Blocks, chip: u32, valid: u32) -> BlockId {
    let block = blocks.open(chip);
    blocks.gain(block, valid);
    blocks.close(block);
    block
}

/// Empties and erases a full block.
fn erase(blocks: &mut Blocks, block: BlockId) {
    blocks.choose(block);
    blocks.lose(block, blocks.valid(block));
    blocks.free(block);
}

#[test]
fn data_are_cold_after_a_round_of_all_domains() {
    let mut blocks = Blocks::new(4, 8, 4, 1);
    let first = fill(&mut blocks, 0, 1);
    (1..4).for_each(|chip| _ = fill(&mut blocks, chip, 1));
    // Four are full, and have been since the first was.
    assert_eq!(blocks.least_worn_cold(0), Some(first));
    let second = fill(&mut blocks, 0, 1);
    erase(&mut blocks, first);
    assert_eq!(blocks.least_worn_cold(0), None, "it has just been filled");
    for others in 1..4 {
        let block = fill(&mut blocks, others, 1);
        erase(&mut blocks, block);
    }
    assert_eq!(blocks.least_worn_cold(0), Some(second));
}

#[test]
fn a_block_without_data_holds_no_cold_data() {
    let mut blocks = Blocks::new(1, 8, 1, 1);
    fill(&mut blocks, 0, 0);
    let second = fill(&mut blocks, 0, 1);
    fill(&mut blocks, 0, 1);
    fill(&mut blocks, 0, 1);
    let cold = blocks.least_worn_cold(0);
    assert_ne!(cold, Some(BlockId(0)));
    let block = fill(&mut blocks, 0, 1);
    erase(&mut blocks, block);
    assert_eq!(blocks.least_worn_cold(0), Some(second));
}

/// Once it was not, where a trim that had made room for it was lost with the power: later writes had
/// room that was not there.
#[test]
fn a_block_found_to_have_retired_has_taken_room_though_all_of_it_is_held_again() {
    let spares = SparesLayout { rated_cycles: 1.0, blocks: 0, shrinks_by: Some(14) };
    let layout = PartitionLayout { spares: Some(spares), ..layout(false) };
    let mut tables = Tables::new(&layout, &Shape::new(&layout, 0));
    let mut lane = Lane::EMPTY;
    (0..512).for_each(|lpn| _ = buffer(&mut tables, &mut lane, Lpn(lpn)));
    flush(&mut tables, &mut lane);
    let block = tables.blocks.open(0);
    tables.blocks.close(block);
    tables.blocks.choose(block);
    tables.blocks.retire(block);
    tables.count_retired(block);
    tables.check();
    (0..14).for_each(|lpn| tables.unmap(Lpn(lpn)));
    assert!(!tables.takes(Lpn(0)), "there is less room than there was");
    tables.unmap(Lpn(14));
    assert!(tables.takes(Lpn(0)));
}

#[test]
fn a_retired_block_is_no_part_of_the_spread() {
    let mut blocks = Blocks::new(1, 2, 1, 1);
    let retired = fill(&mut blocks, 0, 0);
    blocks.choose(retired);
    blocks.retire(retired);
    assert_eq!(blocks.state(retired), BlockState::Retired);
    for _ in 0..10 {
        let block = fill(&mut blocks, 0, 0);
        erase(&mut blocks, block);
    }
    assert_eq!((blocks.erase_range(0), blocks.erase_spread(0)), ((10, 10), 0));
}

#[test]
fn as_many_programs_may_be_under_way_as_a_block_has_pages() {
    let mut blocks = Blocks::new(1, 1, 1, 256);
    let block = blocks.open(0);
    const PAGES: u32 = 256 * 1024;
    (0..PAGES).for_each(|_| blocks.begin_program(block));
    let is_full = (0..PAGES).map(|_| blocks.end_program(block, true));
    assert_eq!(is_full.filter(|&is_full| is_full).count(), 1);
    assert_eq!(blocks.state(block), BlockState::Full);
}
