//! The data sets a workload can run on: each turns an id and a seed into a profile, always the same one.
//!
//! `published` is that of the published results, whose checksums are known. `natural` looks like people: its answers
//! are compared between contenders only. Phases, plan and queries are the same for both; all that differs between them
//! is behind this type.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{generate, natural};
use crate::store::{Profile, ProfileView};

/// Which profiles a workload stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataSet {
    /// Every field a remainder of a number; e-mails in the order of ids. Results from before there were others hold it.
    #[default]
    Published,
    /// Names, addresses and texts of varied form, skewed countries, waves of new profiles.
    Natural,
}

impl DataSet {
    /// Every data set.
    pub const ALL: [Self; 2] = [Self::Published, Self::Natural];

    /// As shown in results and given on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Natural => "natural",
        }
    }

    /// The profile of `id`, 1-based.
    #[inline]
    pub fn profile(self, id: i64, seed: i32) -> Profile {
        match self {
            Self::Published => generate::profile(id, seed),
            Self::Natural => natural::profile(id, seed),
        }
    }

    /// What an update makes of `current`. Id, e-mail and creation time stay.
    #[inline]
    pub fn updated(self, current: &ProfileView<'_>, seed: i32) -> Profile {
        match self {
            Self::Published => generate::updated(current, seed),
            Self::Natural => natural::updated(current, seed),
        }
    }

    /// Replaces `text` with the e-mail of `id`; no two ids have the same.
    #[inline]
    pub fn email(self, id: i64, seed: i32, text: &mut String) {
        match self {
            Self::Published => generate::email(id, text),
            Self::Natural => natural::email(id, seed, text),
        }
    }

    /// The creation time of `id`; later for a larger id.
    #[inline]
    pub fn created_at(self, id: i64, seed: i32) -> i64 {
        match self {
            Self::Published => generate::created_at(id, seed),
            Self::Natural => natural::created_at(id, seed),
        }
    }
}

impl fmt::Display for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Bytes of user data in a profile: its text, and its other fields as wide as they are.
pub fn data_bytes(profile: &ProfileView<'_>) -> u64 {
    /// Id, creation time, last login, reputation, country, status.
    const FIXED: usize = 8 + 8 + 8 + 4 + 2 + 1;
    (FIXED + profile.email.len() + profile.display_name.len() + profile.bio.len()) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_data_set_gives_valid_profiles_whose_parts_come_out_alone() {
        for data in DataSet::ALL {
            let (mut emails, mut email) = (HashSet::new(), String::new());
            for id in (1..20_000).chain(4_294_967_290..4_294_967_300) {
                let profile = data.profile(id, -3);
                profile.view().validate().expect("it is valid");
                data.email(id, -3, &mut email);
                assert_eq!((profile.user_id, &profile.email), (id, &email), "{data}");
                assert_eq!(profile.created_at, data.created_at(id, -3), "{data} {id}");
                assert!(emails.insert(profile.email), "{data}: {email} is not the only one");
            }
        }
    }

    #[test]
    fn creation_times_follow_ids() {
        for data in DataSet::ALL {
            assert!((1..50_000).all(|id| data.created_at(id, 9) < data.created_at(id + 1, 9)), "{data}");
        }
    }

    #[test]
    fn an_update_keeps_what_a_profile_is_known_by_and_stays_valid() {
        for data in DataSet::ALL {
            for id in 1..500 {
                let made = data.profile(id, 4);
                let mut current = made.clone();
                for _ in 0..4 {
                    let last_login = current.last_login;
                    current = data.updated(&current.view(), 4);
                    current.view().validate().expect("an updated profile is valid");
                    assert!(current.last_login > last_login, "{data} {id}");
                }
                let known_by = |profile: &Profile| (profile.user_id, profile.email.clone(), profile.created_at);
                assert_eq!(known_by(&current), known_by(&made), "{data}");
            }
        }
    }

    #[test]
    fn data_bytes_count_every_field_once() {
        let profile =
            Profile { email: "a@b".into(), display_name: "ö".into(), bio: String::new(), ..generate::profile(1, 1) };
        assert_eq!(data_bytes(&profile.view()), 31 + 3 + 2);
    }
}
