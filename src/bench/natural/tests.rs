use std::collections::BTreeMap;

use super::*;

const SEED: i32 = 570_123_434;
const PEOPLE: i64 = 20_000;

fn people() -> impl Iterator<Item = Profile> {
    (1..=PEOPLE).map(|id| profile(id, SEED))
}

/// Changing any of these changes every result of the data set.
#[test]
fn the_profiles_are_the_ones_they_always_were() {
    let row = |p: &Profile| {
        format!(
            "{} | {} | {}/{} {} {} {} | {}",
            p.email, p.display_name, p.country, p.status, p.created_at, p.last_login, p.reputation, p.bio
        )
    };
    let rows: Vec<String> = [1, 2, 999, 1_000_000]
        .into_iter()
        .flat_map(|id| {
            let made = profile(id, SEED);
            let updated = updated(&made.view(), SEED);
            [row(&made), row(&updated)]
        })
        .chain([row(&profile(1, -1))])
        .collect();
    assert_eq!(rows, VECTORS);
}

const VECTORS: [&str; 9] = [
    "hansen1@a.example | Péter | US/active 1672531201805 1679142606686 11 | Violin maker by day, but I also repair radios. Teacher at a theatre. Translator at my own workshop.",
    "hansen1@a.example | Péter | US/active 1672531201805 1679281250079 346 | Learning astronomy (it’s wonderful). Ask me about the 1954 final; I’ll make tea! Bus driver at a small office. Retired sailor by day, but I also coach a chess club.",
    "nguyen2@inbox.example.org | Theo Nguyen | US/active 1672531203929 1672552863974 90530 | After 38 years as a cook I now climb far too rarely. Looking for people who write letters by hand in Cape Town. Views my own. After 24 years as a manager I now watch trains far too rarely. I collect maps on rainy weekends. Grandparent and not slowing down, 15 years in Lyon. Learning astronomy (my sister bet me I couldn’t).",
    "nguyen2@inbox.example.org | Theo Nguyen | US/active 1672531203929 1675061043633 90438 | Gardener by day, but I also keep bees. Data analyst by day, but I also bake bread.",
    "sofia+999@studio.example.com | Kim, Sofia | PT/active 1672552703889 1674053887152 743419 | Married to a pilot, 13 years in Malmö. Learning woodcarving (recommended). Born in Graz, in Cape Town since 1997. Gardener by day, but I also coach a chess club. I brew cider every morning.",
    "sofia+999@studio.example.com | Kim, Sofia | PT/active 1672552703889 1674420008892 743582 | Learning woodcarving (my sister bet me I couldn’t). Learning astronomy (slowly). Looking for people who collect maps in Graz. Father of twins.",
    "vikram_fischer_1000000@studio.example.com | Vikram V. Fischer | NL/active 1694131203174 1694217457135 21 | Ask me about the best ice cream in town; you were warned! Call me after six.",
    "vikram_fischer_1000000@studio.example.com | Vikram V. Fischer | NL/active 1694131203174 1694219717528 19 | Looking for people who brew cider in Cape Town.",
    "ines.sato1@home.example.net | I. Sato | US/pending 1672531204362 1684177930006 92322 | Looking for people who collect maps in Cape Town. Violin maker by day, but I also brew cider.",
];

#[test]
fn the_digits_of_an_address_are_the_id() {
    for person in people() {
        let (local, _) = person.email.split_once('@').expect("an address has a sign in its middle");
        let digits: String = local.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(digits, person.user_id.to_string(), "{}", person.email);
        assert!(person.email.is_ascii());
    }
}

#[test]
fn texts_have_forty_to_four_hundred_characters_and_both_ends_are_reached() {
    let lengths: Vec<usize> = people().map(|person| person.bio.chars().count()).collect();
    let (shortest, longest) = (lengths.iter().min().copied(), lengths.iter().max().copied());
    assert!(shortest.is_some_and(|least| (40..50).contains(&least)), "{shortest:?}");
    assert!(longest.is_some_and(|most| (330..=400).contains(&most)), "{longest:?}");
    assert!(people().any(|person| !person.bio.is_ascii()) && people().any(|person| !person.display_name.is_ascii()));
}

#[test]
fn a_few_countries_hold_most_people_and_every_country_has_some() {
    let mut count = BTreeMap::<String, i64>::new();
    people().for_each(|person| *count.entry(person.country.to_string()).or_default() += 1);
    let mut sizes: Vec<i64> = count.values().copied().collect();
    sizes.sort_unstable_by_key(|size| -size);
    assert_eq!(sizes.len() as u64, generate::COUNTRY_COUNT);
    assert!(sizes[..4].iter().sum::<i64>() * 2 > PEOPLE, "{sizes:?}");
    assert!((1.8..2.2).contains(&(sizes[0] as f64 / sizes[1] as f64)), "{sizes:?}");
}

#[test]
fn few_have_much_reputation() {
    let above = |least: i32| people().filter(|person| person.reputation >= least).count();
    assert!(above(500_000) > 0 && above(500_000) * 5 < PEOPLE as usize);
    assert!(above(100_000) * 2 < PEOPLE as usize);
}

#[test]
fn most_of_a_wave_comes_in_its_first_hour() {
    let minute = |id| (created_at(id, SEED) - BASE_MS) % WAVE_MS / MINUTE_MS;
    let early = (1..=PEOPLE).filter(|id| minute(*id) < 60).count();
    assert!(early as i64 >= PEOPLE * BURST_IDS / WAVE_IDS, "{early}");
    assert!((1..=PEOPLE).any(|id| minute(id) > 300));
}

#[test]
fn another_seed_makes_other_people() {
    let same = people().filter(|person| profile(person.user_id, 1).bio == person.bio).count();
    assert!(same * 20 < PEOPLE as usize, "{same}");
}
