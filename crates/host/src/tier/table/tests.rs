//! What a table takes of memory, and the order in which frames leave.

use super::{List, Stamp, Table};

#[test]
fn a_frame_takes_16_bytes_at_most_whatever_is_below() {
    for frames in [1u64 << 14, 1_000_000, 8_388_608] {
        for lower in [frames, u64::from(u32::MAX) - 1] {
            let table = Table::new(lower, frames, true);
            assert!(table.bytes() as u64 <= 16 * frames, "{} for {frames}", table.bytes());
        }
    }
}

/// A clean copy of each page.
fn filled(table: &mut Table, pages: std::ops::Range<u64>) {
    for page in pages {
        let frame = table.begin_fill(page);
        table.end_fill(frame, 0, 1, true);
    }
}

#[test]
fn what_was_used_last_leaves_last() {
    let mut table = Table::new(1000, 100, false);
    filled(&mut table, 0..100);
    for page in [3, 0, 1] {
        let frame = table.get(page).expect("it is there");
        table.touch(frame);
    }
    let order: Vec<u64> = (0..100)
        .map(|_| {
            let frame = table.oldest(List::Clean).expect("one is left");
            let page = table.page(frame);
            table.drop_clean(frame);
            page
        })
        .collect();
    let expected: Vec<u64> = [2].into_iter().chain(4..100).chain([3, 0, 1]).collect();
    assert_eq!(order, expected);
    assert_eq!((table.oldest(List::Clean), table.free()), (None, 100));
}

#[test]
fn stamps_begin_anew_in_the_same_order() {
    let mut table = Table::new(1000, 100, false);
    filled(&mut table, 0..50);
    table.clock = Stamp::LAST - 10;
    filled(&mut table, 50..100);
    for page in 0..100 {
        let frame = table.oldest(List::Clean).expect("one is left");
        assert_eq!(table.page(frame), page);
        table.drop_clean(frame);
    }
}

#[test]
fn the_least_and_the_most_used_are_known() {
    let mut table = Table::new(1000, 10, false);
    assert_eq!(table.clean_uses().range(), None);
    filled(&mut table, 0..3);
    let frame = table.get(1).expect("it is there");
    (0..300).for_each(|_| table.touch(frame));
    assert_eq!(table.clean_uses().range(), Some((1, 255)));
    table.drop_clean(frame);
    assert_eq!(table.clean_uses().range(), Some((1, 1)));
}

#[test]
fn a_page_that_is_written_again_elsewhere_keeps_its_uses() {
    for copies in [false, true] {
        let mut table = Table::new(1000, 10, copies);
        for sequence in 1..=3 {
            table.get(7).into_iter().for_each(|frame| table.touch(frame));
            let frame = table.begin_write(7, sequence);
            table.end_write(frame, sequence);
        }
        let frame = table.get(7).expect("it is there");
        assert_eq!(table.uses(frame), 3);
    }
}

#[test]
fn a_copy_that_was_read_before_a_change_does_not_come_in() {
    let mut table = Table::new(1000, 10, false);
    // A read begins before change 1, and ends behind it.
    table.begin_read(5);
    table.begin_lower(5, 1);
    table.end_lower(5, 1);
    assert!(!table.is_missing(5, 0));
    table.end_read(5);
    // One is on its way up when change 2 comes.
    assert!(table.is_missing(5, 1));
    let frame = table.begin_fill(5);
    table.begin_lower(5, 2);
    table.end_fill(frame, 1, 1, true);
    table.end_lower(5, 2);
    assert_eq!((table.get(5), table.free()), (None, 10));
}
