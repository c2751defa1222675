use std::cmp::Reverse;
use std::ops::Bound;

use super::memory_kv::MemoryKv;
use super::open;
use super::records::{Order, OrderStatus, Page, profile};
use crate::store::walk::PAGE_ENTRIES;
use crate::store::{Collection, Profile, Record, Scan};

fn orders() -> Collection<Order, MemoryKv> {
    let orders = open::<Order>();
    for id in 0..12 {
        let status = OrderStatus::ALL[id as usize % 3];
        let note = format!("note {}", id % 5);
        let order =
            Order { id, customer: id / 4, status, placed_at: id as i64 * 10, total_cents: id as i64 % 2 * 100, note };
        orders.insert(&order).expect("the order is new");
    }
    orders
}

#[test]
fn keys_narrow_a_scan_down() {
    let orders = orders();
    let by_status = || orders.scan(Order::STATUS_TOTAL);
    assert_eq!(by_status().prefix((OrderStatus::Paid,)).ids().expect("scans"), [1, 7, 4, 10]);
    assert_eq!(by_status().prefix((OrderStatus::Paid,)).descending().ids().expect("scans"), [10, 4, 7, 1]);
    assert_eq!(by_status().equals((OrderStatus::Open, Reverse(100))).ids().expect("scans"), [3, 9]);
    assert_eq!(by_status().prefix((OrderStatus::Open,)).limit(3).count().expect("counts"), 3);
    assert_eq!(by_status().count().expect("counts"), 12);
    let upwards = (OrderStatus::Paid, Reverse(0));
    assert_eq!(by_status().range(upwards..).limit(3).ids().expect("scans"), [4, 10, 5]);
    assert_eq!(by_status().range((Bound::Excluded(upwards), Bound::Unbounded)).limit(2).ids().expect("scans"), [5, 11]);
    assert_eq!(by_status().range(..upwards).count().expect("counts"), 6);
    assert_eq!(by_status().range(..=upwards).count().expect("counts"), 8);
}

#[test]
fn a_unique_pair_finds_one_and_scans_many() {
    let orders = orders();
    assert_eq!(orders.find(Order::PLACED, (1, 50)).expect("reads").map(|order| order.id), Some(5));
    assert_eq!(orders.find(Order::PLACED, (2, 50)).expect("reads"), None);
    let last = orders.scan(Order::PLACED).prefix((1,)).descending().first().expect("reads");
    assert_eq!(last.map(|order| order.id), Some(7));
}

#[test]
fn text_is_found_by_how_it_begins() {
    let orders = orders();
    let beginning = |text| orders.scan(Order::NOTE).starts_with(text).ids().expect("scans");
    assert_eq!(beginning("note 4"), [4, 9]);
    assert_eq!(beginning("note").len(), 12);
    assert_eq!(beginning("").len(), 12);
    assert_eq!(beginning("note 44"), [0; 0]);
    assert_eq!(orders.scan(Order::NOTE).equals("note").ids().expect("scans"), [0; 0]);
}

#[test]
fn the_ids_are_scanned_like_an_index() {
    let orders = orders();
    assert_eq!(orders.all().range(3..5).ids().expect("scans"), [3, 4]);
    assert_eq!(orders.all().descending().limit(2).ids().expect("scans"), [11, 10]);
    let mut seen = Vec::new();
    orders.all().range(..=2).for_each(|order| seen.push((order.id, order.note.len()))).expect("scans");
    assert_eq!(seen, [(0, 6), (1, 6), (2, 6)]);
}

#[test]
fn a_limit_of_nothing_visits_nothing() {
    let orders = orders();
    assert_eq!(orders.all().limit(0).records().expect("scans"), []);
    assert_eq!(orders.scan(Order::NOTE).limit(0).records().expect("scans"), []);
    assert_eq!(orders.scan(Order::NOTE).limit(0).ids().expect("scans"), [0; 0]);
    assert_eq!(orders.scan(Order::NOTE).limit(0).count().expect("counts"), 0);
}

#[test]
fn nothing_lies_behind_the_largest_key() {
    let pages = open::<Page>();
    for (path, hits) in [("/a", 0), ("/b", u64::MAX), ("/c", 7)] {
        pages.insert(&Page { path: path.to_owned(), parent: None, hits }).expect("the page is new");
    }
    let behind = |hits| (Bound::Excluded(Reverse(hits)), Bound::Unbounded);
    assert_eq!(pages.scan(Page::HITS).range(behind(7)).ids().expect("scans"), ["/a"]);
    assert_eq!(pages.scan(Page::HITS).range(behind(0)).ids().expect("scans"), [""; 0]);
    assert_eq!(pages.scan(Page::HITS).range(..=Reverse(0)).ids().expect("scans"), ["/b", "/c", "/a"]);
}

#[test]
fn pages_of_a_scan_join_without_a_gap() {
    let orders = orders();
    for descending in [false, true] {
        let scan = || if descending { orders.scan(Order::NOTE).descending() } else { orders.scan(Order::NOTE) };
        let mut joined = Vec::new();
        let mut page = scan().limit(5).records().expect("scans");
        while let Some(last) = page.last().cloned() {
            joined.append(&mut page);
            page = scan().after(&last.view()).limit(5).records().expect("scans");
        }
        assert_eq!(joined, scan().records().expect("scans"));
    }
}

#[test]
fn a_record_outside_the_range_does_not_widen_it() {
    let orders = orders();
    let order = |id| orders.get(id).expect("reads").expect("is there");
    let after = |id| {
        let order = order(id);
        let ids = |scan: Scan<'_, Order, MemoryKv, u64>| scan.range(4..7).after(&order.view()).ids().expect("scans");
        (ids(orders.all()), ids(orders.all().descending()))
    };
    assert_eq!(after(1), (vec![4, 5, 6], vec![]));
    assert_eq!(after(5), (vec![6], vec![4]));
    assert_eq!(after(9), (vec![], vec![6, 5, 4]));
}

#[test]
fn a_long_query_goes_on_behind_its_first_page() {
    let profiles = open::<Profile>();
    let count = 2 * PAGE_ENTRIES as i64 + 7;
    for id in 0..count {
        profiles.insert(&profile(id)).expect("the profile is new");
    }
    for limit in [PAGE_ENTRIES - 1, PAGE_ENTRIES, PAGE_ENTRIES + 1, 2 * PAGE_ENTRIES, usize::MAX] {
        let mut seen = Vec::new();
        let scan = profiles.scan(Profile::REPUTATION).descending().limit(limit);
        scan.for_each(|profile| seen.push(profile.user_id)).expect("scans");
        assert_eq!(seen, (0..count).rev().take(limit).collect::<Vec<_>>());
    }
}

#[test]
fn text_ids_come_back_from_behind_keys_of_any_length() {
    let pages = open::<Page>();
    for path in ["", "/", "/a", "/a\0", "/a/b"] {
        let parent = path.strip_suffix("/b").map(str::to_owned);
        pages.insert(&Page { path: path.to_owned(), parent, hits: path.len() as u64 }).expect("the page is new");
    }
    assert_eq!(pages.scan(Page::PARENT).equals(None).ids().expect("scans"), ["", "/", "/a", "/a\0"]);
    assert_eq!(pages.scan(Page::PARENT).equals(Some("/a")).ids().expect("scans"), ["/a/b"]);
    assert_eq!(pages.scan(Page::HITS).limit(2).ids().expect("scans"), ["/a/b", "/a\0"]);
    assert_eq!(pages.all().range("/".."/a/").ids().expect("scans"), ["/", "/a", "/a\0"]);
}
