//! A user profile: nine fields, validated when they are made.

use std::cmp::Reverse;
use std::fmt;

use postcard_schema::Schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::columns::Columns;
use super::error::{Error, Result};
use super::index::{AnyIndex, Index, UniqueIndex};
use super::record::Record;
use super::text::Text;
use crate::key_as;

/// Longest text field, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Largest reputation.
pub const REPUTATION_MAX: i32 = 1_000_000;

/// Two capital letters. `D` is not a country, so it can never match `DE`.
///
/// In forms that people read, such as JSON, it is the code as text; on disk it is its two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Schema)]
pub struct Country([u8; 2]);

impl Country {
    /// From a two-letter code such as `DE`.
    pub fn new(code: &str) -> Result<Self> {
        <[u8; 2]>::try_from(code.as_bytes())
            .ok()
            .and_then(|bytes| Self::try_from(bytes).ok())
            .ok_or_else(|| Error::invalid("country", code, "two capital letters, such as DE"))
    }

    /// The code as text.
    #[expect(clippy::missing_panics_doc, reason = "a country is made of ASCII letters")]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a country is made of ASCII letters")
    }
}

impl TryFrom<[u8; 2]> for Country {
    type Error = &'static str;

    fn try_from(bytes: [u8; 2]) -> std::result::Result<Self, &'static str> {
        if bytes.iter().all(u8::is_ascii_uppercase) { Ok(Self(bytes)) } else { Err("a country is two capital letters") }
    }
}

impl From<Country> for [u8; 2] {
    fn from(country: Country) -> Self {
        country.0
    }
}

impl Serialize for Country {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { self.as_str().serialize(serializer) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Country {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let code = std::borrow::Cow::<str>::deserialize(deserializer)?;
            Self::new(&code).map_err(de::Error::custom)
        } else {
            <[u8; 2]>::deserialize(deserializer).and_then(|bytes| Self::try_from(bytes).map_err(de::Error::custom))
        }
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

key_as!(Country => [u8; 2], |country| country.0, |bytes| Country::try_from(bytes).ok());

/// Where an account stands. The numbers are on disk: do not renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Schema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In use.
    Active = 0,
    /// Locked for now.
    Suspended = 1,
    /// Marked as deleted.
    Deleted = 2,
    /// Not confirmed yet.
    Pending = 3,
}

impl Status {
    /// Every status, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Active, Self::Suspended, Self::Deleted, Self::Pending];

    /// From its word.
    pub fn new(word: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| Error::invalid("status", word, "one of active, suspended, deleted, pending"))
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Deleted => "deleted",
            Self::Pending => "pending",
        }
    }

    /// The next status, cyclic.
    #[must_use]
    pub fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

key_as!(Status => u8, |status| status as u8, |number| Status::ALL.get(usize::from(number)).copied());

/// A user profile that owns its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Profile {
    /// Primary key.
    pub user_id: i64,
    /// Unique.
    pub email: String,
    /// Country of residence.
    pub country: Country,
    /// Where the account stands.
    pub status: Status,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds.
    pub last_login: i64,
    /// 0 to [`REPUTATION_MAX`].
    pub reputation: i32,
    /// Name to show.
    pub display_name: String,
    /// Free text.
    pub bio: String,
}

/// A profile that borrows its text from the bytes it was read from. Same fields, same encoding as [`Profile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ProfileView<'a> {
    /// Primary key.
    pub user_id: i64,
    /// Unique.
    pub email: &'a str,
    /// Country of residence.
    pub country: Country,
    /// Where the account stands.
    pub status: Status,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds.
    pub last_login: i64,
    /// 0 to [`REPUTATION_MAX`].
    pub reputation: i32,
    /// Name to show.
    pub display_name: Text<'a>,
    /// Free text.
    pub bio: Text<'a>,
}

impl Profile {
    /// The one profile with an e-mail.
    pub const EMAIL: UniqueIndex<Self, String> = Index::new("email", |profile| profile.email);
    /// By country, then status.
    pub const COUNTRY_STATUS: Index<Self, (Country, Status)> =
        Index::new("country_status", |profile| (profile.country, profile.status));
    /// By time of creation.
    pub const CREATED_AT: Index<Self, i64> = Index::new("created_at", |profile| profile.created_at);
    /// By reputation, highest first.
    pub const REPUTATION: Index<Self, Reverse<i32>> = Index::new("reputation", |profile| Reverse(profile.reputation));

    /// The same profile, borrowed.
    pub fn view(&self) -> ProfileView<'_> {
        ProfileView {
            user_id: self.user_id,
            email: &self.email,
            country: self.country,
            status: self.status,
            created_at: self.created_at,
            last_login: self.last_login,
            reputation: self.reputation,
            display_name: Text::from(self.display_name.as_str()),
            bio: Text::from(self.bio.as_str()),
        }
    }
}

impl Record for Profile {
    type Id = i64;
    type View<'a> = ProfileView<'a>;

    const COLLECTION: &'static str = "profiles";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] =
        &[&Self::EMAIL, &Self::COUNTRY_STATUS, &Self::CREATED_AT, &Self::REPUTATION];

    fn view(&self) -> ProfileView<'_> {
        self.view()
    }

    fn id(view: &ProfileView<'_>) -> i64 {
        view.user_id
    }

    #[inline]
    fn read_columns<'a>(columns: &mut Columns<'a>) -> Option<ProfileView<'a>> {
        Some(ProfileView {
            user_id: columns.field()?,
            email: columns.field()?,
            country: Country::try_from(columns.bytes()?).ok()?,
            status: Status::ALL.get(columns.field::<u32>()? as usize).copied()?,
            created_at: columns.field()?,
            last_login: columns.field()?,
            reputation: columns.field()?,
            display_name: columns.text()?,
            bio: columns.text()?,
        })
    }

    fn validate(view: &ProfileView<'_>) -> Result<()> {
        view.validate()
    }
}

impl ProfileView<'_> {
    /// The same profile, owned.
    pub fn to_profile(&self) -> Profile {
        Profile {
            user_id: self.user_id,
            email: self.email.to_owned(),
            country: self.country,
            status: self.status,
            created_at: self.created_at,
            last_login: self.last_login,
            reputation: self.reputation,
            display_name: self.display_name.to_string(),
            bio: self.bio.to_string(),
        }
    }

    /// Refuses a profile that breaks a rule of its fields. Country and status cannot be wrong: their types say so.
    pub fn validate(&self) -> Result<()> {
        if self.email.is_empty() {
            return Err(Error::invalid("email", self.email, "at least one character"));
        }
        if !(0..=REPUTATION_MAX).contains(&self.reputation) {
            return Err(Error::invalid("reputation", self.reputation, "0 to 1,000,000"));
        }
        for (field, text) in [("email", Text::from(self.email)), ("display_name", self.display_name), ("bio", self.bio)]
        {
            if text.len() > TEXT_BYTES_MAX {
                return Err(Error::invalid(field, format!("{} bytes long", text.len()), "at most 1 MiB"));
            }
        }
        Ok(())
    }
}
