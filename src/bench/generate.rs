//! Pure: the published data set. A seed and an id make a profile, always the same one; a seed and a profile make its
//! update.
//!
//! Two 64-bit numbers, `a` and `b`, are drawn from the id and the seed; every field is a remainder of one of them.
//! The inserts generate inside the clock, so text is put together by hand, once, into strings of the right size.

use crate::store::{Country, Profile, ProfileView, REPUTATION_MAX, Status, Text};

/// Countries, in the order the generator numbers them.
const COUNTRIES: [&[u8; 2]; 32] = [
    b"US", b"DE", b"GB", b"FR", b"NL", b"SE", b"NO", b"DK", b"FI", b"ES", b"IT", b"PT", b"PL", b"CZ", b"TR", b"JP",
    b"KR", b"SG", b"IN", b"BR", b"CA", b"AU", b"MX", b"AR", b"ZA", b"IL", b"IE", b"CH", b"AT", b"BE", b"RO", b"GR",
];
/// Number of countries the generator uses.
pub(super) const COUNTRY_COUNT: u64 = COUNTRIES.len() as u64;
const TOPICS: [&str; 5] =
    ["storage engines", "distributed systems", "analytics", "developer tools", "backend services"];

/// 2023-01-01T00:00:00Z in Unix milliseconds.
pub(super) const BASE_MS: i64 = 1_672_531_200_000;
pub(super) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const ID_DIGITS: usize = 12;

/// Added before each step of the mixer.
pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Sets the update's draw apart from the insert's.
const UPDATE: u64 = 0xD1B5_4A32_D192_ED03;

/// The profile of `id`, 1-based.
pub fn profile(id: i64, seed: i32) -> Profile {
    let (a, b) = draws(id, seed);
    let mut digits = [0; DIGITS_MAX];
    let padded = digits_of(id as u64, ID_DIGITS, &mut digits);
    Profile {
        user_id: id,
        email: email_with(id, padded, String::with_capacity(4 + padded.len() + 14)),
        country: country(a),
        status: status(a >> 8),
        created_at: created_at_with(id, a),
        last_login: BASE_MS + (b % (90 * DAY_MS)) as i64,
        reputation: (b % 1_000_000) as i32,
        display_name: joined(&["User ", padded]),
        bio: bio(padded, a, b),
    }
}

/// What an update makes of `current`.
pub fn updated(current: &ProfileView<'_>, seed: i32) -> Profile {
    let drawn = mix((current.user_id as u64).wrapping_add(widened(seed)).wrapping_add(UPDATE));
    let reputation = current.reputation + (drawn % 501) as i32 - 250;
    Profile {
        status: if current.user_id % 4 == 0 { current.status.next() } else { current.status },
        reputation: reputation.clamp(0, REPUTATION_MAX),
        last_login: current.last_login + (7 * DAY_MS + drawn % DAY_MS) as i64,
        bio: updated_bio(current.bio),
        user_id: current.user_id,
        email: current.email.to_owned(),
        country: current.country,
        created_at: current.created_at,
        display_name: current.display_name.to_string(),
    }
}

fn updated_bio(bio: Text<'_>) -> String {
    const TAIL: &str = " updated";
    let mut updated = String::with_capacity(bio.len() + TAIL.len());
    bio.each(|piece| updated.push_str(piece));
    updated.push_str(TAIL);
    updated
}

/// Replaces `text` with the e-mail of `id`.
pub fn email(id: i64, text: &mut String) {
    text.clear();
    let mut digits = [0; DIGITS_MAX];
    let padded = digits_of(id as u64, ID_DIGITS, &mut digits);
    *text = email_with(id, padded, std::mem::take(text));
}

/// The creation time of `id`, without the rest of its profile.
pub fn created_at(id: i64, seed: i32) -> i64 {
    created_at_with(id, draws(id, seed).0)
}

/// The country a number stands for.
pub(super) fn country(number: u64) -> Country {
    let code = COUNTRIES[(number % COUNTRY_COUNT) as usize];
    Country::try_from(*code).expect("the generator's countries are two capital letters")
}

/// The status a number stands for.
pub(super) fn status(number: u64) -> Status {
    Status::ALL[(number % Status::ALL.len() as u64) as usize]
}

fn draws(id: i64, seed: i32) -> (u64, u64) {
    let a = mix((id as u64).wrapping_add(widened(seed)));
    (a, mix(a.wrapping_add(GOLDEN)))
}

/// The bits of the seed, zero-extended.
fn widened(seed: i32) -> u64 {
    u64::from(seed as u32)
}

/// One step of `SplitMix64`.
pub(super) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn created_at_with(id: i64, a: u64) -> i64 {
    BASE_MS + id * 1000 + (a % 997) as i64
}

fn email_with(id: i64, padded: &str, mut text: String) -> String {
    let mut digits = [0; DIGITS_MAX];
    for piece in ["user", padded, "@example", digits_of(id as u64 % 97, 2, &mut digits), ".com"] {
        text.push_str(piece);
    }
    text
}

fn bio(padded_id: &str, a: u64, b: u64) -> String {
    let id = padded_id.trim_start_matches('0');
    let mut digits = [0; DIGITS_MAX];
    let segment = digits_of(b % 10_000, 4, &mut digits);
    joined(&[
        "Profile ",
        id,
        " prefers ",
        TOPICS[(a % TOPICS.len() as u64) as usize],
        " and has segment ",
        segment,
        ".",
    ])
}

/// `concat` allocates once, for the sum of the lengths.
fn joined(pieces: &[&str]) -> String {
    pieces.concat()
}

/// Digits of the largest `u64`.
pub(super) const DIGITS_MAX: usize = 20;

/// `value` in decimal, padded with zeros to at least `width` digits, written into the end of `digits`.
pub(super) fn digits_of(value: u64, width: usize, digits: &mut [u8; DIGITS_MAX]) -> &str {
    let mut rest = value;
    let mut start = DIGITS_MAX;
    while rest > 0 || DIGITS_MAX - start < width {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    std::str::from_utf8(&digits[start..]).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: i32 = 570_123_434;

    fn row(profile: &Profile) -> String {
        let p = profile;
        format!("{} {}/{} {} {} {} | {}", p.email, p.country, p.status, p.created_at, p.last_login, p.reputation, p.bio)
    }

    #[test]
    fn the_published_samples_come_out() {
        let samples = [
            (
                1,
                false,
                "user000000000001@example01.com NO/active 1672531201300 1678393734062 534062 | Profile 1 prefers developer tools and has segment 4062.",
            ),
            (
                1,
                true,
                "user000000000001@example01.com NO/active 1672531201300 1679075623883 533884 | Profile 1 prefers developer tools and has segment 4062. updated",
            ),
            (
                4,
                false,
                "user000000000004@example04.com PL/suspended 1672531204609 1672941877403 677403 | Profile 4 prefers analytics and has segment 7403.",
            ),
            (
                4,
                true,
                "user000000000004@example04.com PL/deleted 1672531204609 1673552924744 677648 | Profile 4 prefers analytics and has segment 7403. updated",
            ),
            (
                97,
                false,
                "user000000000097@example00.com US/active 1672531297759 1673724400922 200922 | Profile 97 prefers developer tools and has segment 0922.",
            ),
        ];
        for (id, is_updated, expected) in samples {
            let mut made = profile(id, SEED);
            assert_eq!(made.display_name, format!("User {id:012}"));
            if is_updated {
                made = updated(&made.view(), SEED);
            }
            assert_eq!(row(&made), expected);
        }
    }

    #[test]
    fn an_id_longer_than_its_padding_keeps_every_digit() {
        let mut text = "left over".to_owned();
        email(1_234_567_890_123, &mut text);
        assert_eq!(text, format!("user1234567890123@example{:02}.com", 1_234_567_890_123_i64 % 97));
        assert_eq!(profile(1_234_567_890_123, SEED).email, text);
    }

    #[test]
    fn reputation_stays_inside_its_bounds_however_often_it_is_updated() {
        for id in [1, 2, 4, 8] {
            for extreme in [0, REPUTATION_MAX] {
                let mut current = Profile { reputation: extreme, ..profile(id, SEED) };
                for _ in 0..5 {
                    current = updated(&current.view(), SEED);
                    current.view().validate().expect("an updated profile is valid");
                }
            }
        }
    }

    #[test]
    fn the_creation_time_alone_is_that_of_the_profile() {
        for id in 1..200 {
            assert_eq!(created_at(id, -7), profile(id, -7).created_at);
        }
    }
}
