//! Pure: profiles that look like people, made from an id and a seed alone.
//!
//! Names, addresses and free text have many forms and lengths, some of it outside ASCII; a few countries hold most
//! people, few have much reputation, and new profiles come in waves. E-mails are in no order of ids, and unique: the
//! digits before the `@` are the id, and nothing else there is a digit.
//!
//! Each part of a profile has a stream of random numbers of its own, so that an e-mail or a creation time is made
//! without the rest. The inserts generate inside the clock: text is put together in place, from [`words`].

mod words;

use words::{Name, Piece};

use super::generate::{self, BASE_MS, DAY_MS, GOLDEN, mix};
use crate::store::{Country, Profile, ProfileView, REPUTATION_MAX, Status};

const MINUTE_MS: i64 = 60_000;
/// New profiles come in waves of so many, one each six hours. Most of a wave comes in its first hour at the latest.
const WAVE_IDS: i64 = 1000;
const WAVE_MS: i64 = 360 * MINUTE_MS;
const BURST_IDS: i64 = 800;
const BURST_MINUTES_MIN: i64 = 10;
const BURST_MINUTES_SPAN: u64 = 50;

/// A text goes on until it has so many characters; its last sentence may take it 100 further.
const BIO_CHARACTERS_MIN: u64 = 40;
const BIO_CHARACTERS_SPAN: u64 = 260;
/// Room for most texts.
const BIO_BYTES: usize = 256;

/// Set the streams of a profile apart.
#[derive(Clone, Copy)]
enum Part {
    Person = 1,
    Wave = 2,
    Moment = 3,
    Rest = 4,
    Update = 5,
}

/// The profile of `id`, 1-based.
pub(super) fn profile(id: i64, seed: i32) -> Profile {
    let person = Person::new(id, seed);
    let created_at = created_at(id, seed);
    let mut draws = Draws::new(id, seed, Part::Rest);
    Profile {
        user_id: id,
        email: person.email(String::with_capacity(48)),
        country: country(&mut draws),
        status: status(&mut draws),
        created_at,
        last_login: created_at + skewed(&mut draws, 300 * DAY_MS, 3) as i64,
        reputation: skewed(&mut draws, REPUTATION_MAX as u64, 4) as i32,
        display_name: person.display_name(),
        bio: bio(&mut draws),
    }
}

/// What an update makes of `current`. Last logins only grow, so that each update draws anew.
pub(super) fn updated(current: &ProfileView<'_>, seed: i32) -> Profile {
    let mut draws = Draws::new(current.user_id ^ current.last_login, seed, Part::Update);
    let status = if draws.below(8) == 0 { current.status.next() } else { current.status };
    let country = if draws.below(64) == 0 { country(&mut draws) } else { current.country };
    let reputation = current.reputation + draws.below(501) as i32 - 150;
    Profile {
        user_id: current.user_id,
        email: current.email.to_owned(),
        country,
        status,
        created_at: current.created_at,
        last_login: current.last_login + MINUTE_MS + skewed(&mut draws, 60 * DAY_MS, 2) as i64,
        reputation: reputation.clamp(0, REPUTATION_MAX),
        display_name: current.display_name.to_string(),
        bio: bio(&mut draws),
    }
}

/// Replaces `text` with the e-mail of `id`.
pub(super) fn email(id: i64, seed: i32, text: &mut String) {
    text.clear();
    *text = Person::new(id, seed).email(std::mem::take(text));
}

/// The creation time of `id`: later than that of every smaller id, whatever the draws.
pub(super) fn created_at(id: i64, seed: i32) -> i64 {
    let (wave, place) = (id / WAVE_IDS, id % WAVE_IDS);
    let burst_minutes = BURST_MINUTES_MIN + Draws::new(wave, seed, Part::Wave).below(BURST_MINUTES_SPAN) as i64;
    let burst_ms = burst_minutes * MINUTE_MS;
    let (begun, ms, place, ids) = if place < BURST_IDS {
        (0, burst_ms, place, BURST_IDS)
    } else {
        (burst_ms, WAVE_MS - burst_ms, place - BURST_IDS, WAVE_IDS - BURST_IDS)
    };
    let jitter = Draws::new(id, seed, Part::Moment).below((ms / ids) as u64);
    BASE_MS + wave * WAVE_MS + begun + place * ms / ids + jitter as i64
}

/// A stream of random numbers: `SplitMix64`.
struct Draws(u64);

impl Draws {
    fn new(id: i64, seed: i32, part: Part) -> Self {
        let seed = u64::from(seed as u32) << 3 | part as u64;
        Self(mix(seed.wrapping_mul(GOLDEN) ^ id as u64))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        drawn
    }

    /// A number below `n`, which is far below 2³².
    #[inline]
    fn below(&mut self, n: u64) -> u64 {
        ((self.next() >> 32) * n) >> 32
    }

    #[inline]
    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    #[inline]
    fn word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// A number below `max`, the more often the smaller: `max` times a fraction to a power. In whole numbers, which are the
/// same on every machine.
fn skewed(draws: &mut Draws, max: u64, power: u32) -> u64 {
    let fraction = draws.next() >> 32;
    let raised = (1..power).fold(fraction, |raised, _| (raised * fraction) >> 32);
    ((u128::from(max) * u128::from(raised)) >> 32) as u64
}

/// For each country, how far it and those before it reach into 2³²: the second has half as many people as the first,
/// the third a third.
const COUNTRIES_REACH: [u64; generate::COUNTRY_COUNT as usize] = {
    let (mut reach, mut sum, mut rank) = ([0; generate::COUNTRY_COUNT as usize], 0, 0);
    while rank < reach.len() {
        sum += (1 << 40) / (rank as u64 + 1);
        reach[rank] = sum;
        rank += 1;
    }
    while rank > 0 {
        rank -= 1;
        reach[rank] = (reach[rank] << 16) / (sum >> 16);
    }
    reach
};

fn country(draws: &mut Draws) -> Country {
    let place = draws.next() >> 32;
    let rank = COUNTRIES_REACH.iter().position(|reach| place < *reach);
    generate::country(rank.unwrap_or_default() as u64)
}

fn status(draws: &mut Draws) -> Status {
    match draws.below(100) {
        0..78 => Status::Active,
        78..88 => Status::Pending,
        88..95 => Status::Suspended,
        _ => Status::Deleted,
    }
}

/// Who it is, and in which form their name and address are written.
struct Person {
    id: i64,
    given: &'static Name,
    family: &'static Name,
    domain: &'static str,
    email_form: u64,
    name_form: u64,
}

impl Person {
    fn new(id: i64, seed: i32) -> Self {
        let mut draws = Draws::new(id, seed, Part::Person);
        Self {
            id,
            given: draws.one_of(words::GIVEN),
            family: draws.one_of(words::FAMILY),
            domain: draws.word(words::DOMAINS),
            email_form: draws.below(7),
            name_form: draws.below(16),
        }
    }

    /// The digits of the id come once, and no other digit before the `@`: that makes it unique.
    fn email(&self, mut text: String) -> String {
        let (given, family) = (self.given.plain, self.family.plain);
        let mut digits = [0; generate::DIGITS_MAX];
        let id = generate::digits_of(self.id as u64, 1, &mut digits);
        let pieces: &[&str] = match self.email_form {
            0 => &[given, ".", family, id],
            1 => &[&given[..1], ".", family, ".", id],
            2 => &[given, "_", family, "_", id],
            3 => &[family, id],
            4 => &[id, ".", given],
            5 => &[given, "+", id],
            _ => &[family, "-", given, "+news", id],
        };
        pieces.iter().chain(&["@", self.domain]).for_each(|piece| text.push_str(piece));
        text
    }

    fn display_name(&self) -> String {
        let (given, family) = (self.given.shown, self.family.shown);
        let initial = given.split_at(given.chars().next().map_or(0, char::len_utf8)).0;
        match self.name_form {
            0..9 => [given, " ", family].concat(),
            9 => [initial, ". ", family].concat(),
            10 => [family, ", ", given].concat(),
            11 => [self.given.plain, ".", self.family.plain].concat(),
            12 => ["Dr. ", given, " ", family].concat(),
            13 => [given, " “", self.family.plain, "”"].concat(),
            14 => [given, " ", initial, ". ", family].concat(),
            _ => given.to_owned(),
        }
    }
}

/// Sentences until there are enough characters: 40 to 400.
fn bio(draws: &mut Draws) -> String {
    let enough = BIO_CHARACTERS_MIN + skewed(draws, BIO_CHARACTERS_SPAN, 2);
    let mut text = String::with_capacity(BIO_BYTES);
    let mut characters = 0;
    loop {
        let begin = text.len();
        for piece in *draws.one_of(words::SENTENCES) {
            match *piece {
                Piece::Text(fixed) => text.push_str(fixed),
                Piece::OneOf(words) => text.push_str(draws.word(words)),
                Piece::Number(from, to) => {
                    let mut digits = [0; generate::DIGITS_MAX];
                    text.push_str(generate::digits_of(from + draws.below(to - from), 1, &mut digits));
                }
            }
        }
        characters += text[begin..].chars().count() as u64;
        if characters >= enough {
            return text;
        }
        text.push(' ');
        characters += 1;
    }
}

#[cfg(test)]
mod tests;
