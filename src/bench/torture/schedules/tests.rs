use super::*;
use crate::bench::torture::sound_cases;

#[test]
fn threads_get_what_they_were_promised_in_every_order() {
    let cases = sound_cases(|session| (0..40).for_each(|seed| round(session, seed)));
    assert_eq!(cases, 40 * SUBJECTS.len() as u64);
}
