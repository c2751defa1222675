//! The vocabulary of natural profiles, and the grammar of their texts.
//!
//! ```text
//! bio      = sentence, { " ", sentence }
//! sentence = { fixed text | one of a list | number }
//! ```
//!
//! Do not add or reorder: every profile would change.

/// A name as it is shown, and as it is written in an address: small ASCII letters alone.
pub(super) struct Name {
    pub(super) shown: &'static str,
    pub(super) plain: &'static str,
}

/// Part of a sentence.
pub(super) enum Piece {
    Text(&'static str),
    OneOf(&'static [&'static str]),
    /// From the first up to, and without, the second.
    Number(u64, u64),
}

macro_rules! names {
    ($($shown:literal $plain:literal),* $(,)?) => { &[$(Name { shown: $shown, plain: $plain }),*] };
}

pub(super) const GIVEN: &[Name] = names![
    "Anna" "anna", "Ben" "ben", "Chloé" "chloe", "Dmitri" "dmitri", "Elena" "elena", "Farid" "farid",
    "Göran" "goran", "Hana" "hana", "Ines" "ines", "João" "joao", "Kateřina" "katerina", "Lars" "lars",
    "Maria" "maria", "Noah" "noah", "Olga" "olga", "Péter" "peter", "Quentin" "quentin", "Rosa" "rosa",
    "Søren" "soren", "Tomás" "tomas", "Umut" "umut", "Valentina" "valentina", "Wei" "wei", "Xenia" "xenia",
    "Yuki" "yuki", "Zoë" "zoe", "Amara" "amara", "Björn" "bjorn", "Carlos" "carlos", "Deniz" "deniz",
    "Emma" "emma", "Fiona" "fiona", "George" "george", "Hiroshi" "hiroshi", "Ivan" "ivan", "Jana" "jana",
    "Khalid" "khalid", "Lucía" "lucia", "Mateusz" "mateusz", "Nadia" "nadia", "Oliver" "oliver", "Priya" "priya",
    "Rafael" "rafael", "Sofia" "sofia", "Theo" "theo", "Ursula" "ursula", "Vikram" "vikram", "Wanda" "wanda",
];

pub(super) const FAMILY: &[Name] = names![
    "Abbott" "abbott", "Berg" "berg", "Çelik" "celik", "Dubois" "dubois", "Eriksson" "eriksson",
    "Fernández" "fernandez", "García" "garcia", "Hansen" "hansen", "Ito" "ito", "Jansen" "jansen",
    "Kowalski" "kowalski", "Löwe" "loewe", "Müller" "mueller", "Novák" "novak", "O’Brien" "obrien",
    "Papadopoulos" "papadopoulos", "Quist" "quist", "Rossi" "rossi", "Schmidt" "schmidt", "Tanaka" "tanaka",
    "Ueda" "ueda", "Varga" "varga", "Wójcik" "wojcik", "Xu" "xu", "Yılmaz" "yilmaz", "Zimmermann" "zimmermann",
    "Ahmed" "ahmed", "Brown" "brown", "Costa" "costa", "de Vries" "devries", "Evans" "evans", "Fischer" "fischer",
    "Gupta" "gupta", "Horvat" "horvat", "Ivanova" "ivanova", "Johansson" "johansson", "Kim" "kim", "Lindgren" "lindgren",
    "Moreau" "moreau", "Nguyen" "nguyen", "Okafor" "okafor", "Pereira" "pereira", "Reyes" "reyes", "Sato" "sato",
    "Taylor" "taylor", "van den Heuvel" "vandenheuvel", "Weber" "weber", "Zhang" "zhang",
];

/// The first ones are the large providers.
pub(super) const DOMAINS: &[&str] = &[
    "mail.example",
    "mail.example",
    "mail.example",
    "mail.example",
    "post.example",
    "post.example",
    "post.example",
    "inbox.example.org",
    "inbox.example.org",
    "web.example.net",
    "web.example.net",
    "uni-nord.example",
    "firm.example.com",
    "studio.example.com",
    "town.example.org",
    "alumni.uni-nord.example",
    "home.example.net",
    "a.example",
];

const JOB: &[&str] = &[
    "Nurse",
    "Carpenter",
    "Structural engineer",
    "Teacher",
    "Translator",
    "Bus driver",
    "Baker",
    "Data analyst",
    "Gardener",
    "Photographer",
    "Midwife",
    "Electrician",
    "Retired sailor",
    "Student of law",
    "Sound designer",
    "Violin maker",
    "Archivist",
    "Chemist",
    "Café owner",
    "Software developer",
];
const PLACE_OF_WORK: &[&str] = &[
    "a small office",
    "the city hospital",
    "a school by the river",
    "a family business",
    "the public library",
    "a start-up nobody has heard of",
    "the university",
    "the railways",
    "my own workshop",
    "a theatre",
];
const CITY: &[&str] = &[
    "Zürich",
    "Malmö",
    "São Paulo",
    "Kraków",
    "Łódź",
    "Århus",
    "Québec",
    "東京",
    "Leeds",
    "Porto",
    "Utrecht",
    "Lyon",
    "İzmir",
    "Galway",
    "Graz",
    "Turin",
    "Brno",
    "Pune",
    "Oaxaca",
    "Haifa",
    "Cape Town",
    "Bergen",
    "Αθήνα",
    "Austin",
];
const HOBBY: &[&str] = &[
    "restore old bicycles",
    "bake bread",
    "play the cello",
    "collect maps",
    "climb",
    "keep bees",
    "sing in a choir",
    "repair radios",
    "paint birds",
    "row",
    "write letters by hand",
    "grow tomatoes",
    "coach a chess club",
    "photograph lighthouses",
    "brew cider",
    "translate poems",
    "watch trains",
    "dance tango",
];
const WHEN: &[&str] = &[
    "on rainy weekends",
    "every morning",
    "whenever the children sleep",
    "in winter",
    "with my neighbours",
    "far too rarely",
    "since school",
    "badly but gladly",
    "at night",
    "with friends",
];
const SUBJECT: &[&str] = &[
    "Portuguese",
    "the accordion",
    "woodcarving",
    "statistics",
    "sign language",
    "astronomy",
    "how to cook dal",
    "sailing",
    "calligraphy",
    "first aid",
    "the history of salt",
    "Rust",
];
const COMMENT: &[&str] = &[
    "slowly",
    "harder than it looks",
    "third attempt",
    "recommended",
    "send help",
    "my sister bet me I couldn’t",
    "no end in sight",
    "it’s wonderful",
];
const TOPIC: &[&str] = &[
    "timetables",
    "sourdough",
    "knots",
    "tax law",
    "cloud formations",
    "old synthesizers",
    "the best ice cream in town",
    "night trains",
    "moss",
    "typefaces",
    "the 1954 final",
    "databases",
];
const CLAUSE: &[&str] = &[
    "I have opinions",
    "bring time",
    "or better don’t",
    "seriously",
    "I’ll make tea",
    "you were warned",
    "answers within a week",
];
const FAMILY_LIFE: &[&str] = &[
    "Mother of three",
    "Father of twins",
    "Uncle, twice over",
    "Proud owner of two cats",
    "Married to a pilot",
    "One dog (Möhre), no car",
    "Grandparent and not slowing down",
    "Living with four flatmates",
];
const CLOSING: &[&str] = &[
    "Views my own.",
    "Be kind!",
    "☕ & books.",
    "No cold calls, please.",
    "Call me after six.",
    "🚲 all year round.",
    "Ça va bien.",
    "More about me: ask.",
    "Hej!",
    "Here for the photos, mostly…",
];

use Piece::{Number, OneOf, Text};

/// The forms of a sentence; none is longer than 99 characters.
pub(super) const SENTENCES: &[&[Piece]] = &[
    &[OneOf(JOB), Text(" at "), OneOf(PLACE_OF_WORK), Text(".")],
    &[OneOf(JOB), Text(" by day, but I also "), OneOf(HOBBY), Text(".")],
    &[Text("I "), OneOf(HOBBY), Text(" "), OneOf(WHEN), Text(".")],
    &[Text("Born in "), OneOf(CITY), Text(", in "), OneOf(CITY), Text(" since "), Number(1975, 2023), Text(".")],
    &[Text("Learning "), OneOf(SUBJECT), Text(" ("), OneOf(COMMENT), Text(").")],
    &[Text("Ask me about "), OneOf(TOPIC), Text("; "), OneOf(CLAUSE), Text("!")],
    &[OneOf(FAMILY_LIFE), Text(".")],
    &[OneOf(FAMILY_LIFE), Text(", "), Number(2, 31), Text(" years in "), OneOf(CITY), Text(".")],
    &[
        Text("After "),
        Number(3, 40),
        Text(" years as a "),
        OneOf(&["cook", "clerk", "trainee", "manager", "soldier"]),
        Text(" I now "),
        OneOf(HOBBY),
        Text(" "),
        OneOf(WHEN),
        Text("."),
    ],
    &[Text("Looking for people who "), OneOf(HOBBY), Text(" in "), OneOf(CITY), Text(".")],
    &[OneOf(CLOSING)],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_addresses_are_small_letters() {
        for name in GIVEN.iter().chain(FAMILY) {
            assert!(
                !name.plain.is_empty() && name.plain.bytes().all(|byte| byte.is_ascii_lowercase()),
                "{}",
                name.shown
            );
        }
    }

    #[test]
    fn no_sentence_is_longer_than_texts_have_room_for() {
        let longest = |piece: &Piece| match piece {
            Text(fixed) => fixed.chars().count(),
            OneOf(all) => all.iter().map(|one| one.chars().count()).max().expect("a list of words is not empty"),
            Number(_, to) => to.to_string().len(),
        };
        for sentence in SENTENCES {
            assert!(sentence.iter().map(longest).sum::<usize>() <= 99);
        }
    }
}
