//! Facets: the properties by which searches filter agents and whose values they count.

use std::ops::{Index, IndexMut};
use std::str::FromStr;

use super::endpoint::EndpointState;
use super::lifecycle::{LivenessState, ShownLifecycle};
use super::signature::SignatureState;
use super::text_enum::text_enum;
use super::trust::TrustLevel;

text_enum! {
    /// A property of agents by which searches filter and whose values they count. Its text names it in requests and
    /// responses. The order is that of the API contract.
    Facet {
        /// Tags of the skills, in lower case.
        Tag = "tag",
        /// Ids of the skills.
        Skill = "skill",
        /// `streaming`, `push_notifications`, `extended_agent_card`, and the URIs of extensions.
        Capability = "capability",
        Binding = "binding",
        /// Protocol versions of the interfaces, as `Major.Minor`.
        ProtocolVersion = "protocol_version",
        /// The provider's organization, in lower case.
        Provider = "provider",
        /// The domain that publishes the card.
        Domain = "domain",
        /// Authentication schemes, `none` included.
        Auth = "auth",
        InputMode = "input_mode",
        OutputMode = "output_mode",
        /// Labels that curators have set, each as `key=value`.
        Label = "label",
        /// The trust level, or `none`. A filter gives the lowest accepted level.
        Trust = "trust",
        /// The effective lifecycle.
        Lifecycle = "lifecycle",
        Liveness = "liveness",
        /// The result of checking the card's signatures.
        Signature = "signature",
        /// Whether the agent has neither an owner nor a sponsor: `true` or `false`.
        Unmanaged = "unmanaged",
        /// The result of the last check of the agent's endpoint.
        Endpoint = "endpoint",
    }
}

impl Facet {
    pub fn joined_names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|facet| facet.as_str()).collect();
        names.join(", ")
    }

    /// The agents' values that match a filter with these values. The error lists the valid values.
    pub fn resolve_filter_values(self, filter_values: Vec<String>) -> Result<Vec<String>, String> {
        match self {
            Self::Lifecycle => validate_enum_values::<ShownLifecycle>(filter_values),
            Self::Liveness => validate_enum_values::<LivenessState>(filter_values),
            Self::Signature => validate_enum_values::<SignatureState>(filter_values),
            Self::Endpoint => validate_enum_values::<EndpointState>(filter_values),
            Self::Unmanaged => match filter_values
                .iter()
                .all(|one| one == "true" || one == "false")
            {
                true => Ok(filter_values),
                false => Err("unmanaged must be true or false".to_owned()),
            },
            Self::Trust => expand_trust_levels(&filter_values),
            Self::Provider | Self::Domain => Ok(filter_values
                .iter()
                .map(|value| value.to_lowercase())
                .collect()),
            Self::InputMode | Self::OutputMode => Ok(expand_media_types(&filter_values)),
            Self::Tag
            | Self::Skill
            | Self::Capability
            | Self::Binding
            | Self::ProtocolVersion
            | Self::Auth
            | Self::Label => Ok(filter_values),
        }
    }
}

/// The values, each of which must be the text of an enum value.
fn validate_enum_values<T: FromStr<Err = String>>(
    values: Vec<String>,
) -> Result<Vec<String>, String> {
    for value in &values {
        value.parse::<T>()?;
    }
    Ok(values)
}

/// The media types that a filter by a whole kind finds, besides itself. Cards also have the kind's name alone.
const MEDIA_KINDS: [(&str, &[&str]); 3] = [
    (
        "image/*",
        &[
            "image",
            "image/png",
            "image/jpeg",
            "image/jpg",
            "image/gif",
            "image/webp",
            "image/svg+xml",
            "image/tiff",
            "image/bmp",
            "image/heic",
            "image/avif",
        ],
    ),
    (
        "audio/*",
        &[
            "audio",
            "audio/mpeg",
            "audio/mp3",
            "audio/wav",
            "audio/x-wav",
            "audio/wave",
            "audio/ogg",
            "audio/webm",
            "audio/mp4",
            "audio/aac",
            "audio/flac",
        ],
    ),
    (
        "video/*",
        &[
            "video",
            "video/mp4",
            "video/webm",
            "video/mpeg",
            "video/quicktime",
            "video/ogg",
            "video/x-matroska",
        ],
    ),
];

/// The media types in lower case, with the usual types of each whole kind, and without duplicates.
fn expand_media_types(filter_values: &[String]) -> Vec<String> {
    let mut expanded: Vec<String> = Vec::new();
    for value in filter_values {
        let value = value.to_lowercase();
        let kind = MEDIA_KINDS.iter().find(|(kind, _)| *kind == value);
        let types = kind.map_or(&[][..], |(_, types)| *types);
        for media_type in std::iter::once(&*value).chain(types.iter().copied()) {
            if expanded.iter().all(|known| known != media_type) {
                expanded.push(media_type.to_owned());
            }
        }
    }
    expanded
}

/// The trust levels from the lowest of these up.
fn expand_trust_levels(levels: &[String]) -> Result<Vec<String>, String> {
    let levels: Result<Vec<TrustLevel>, String> = levels
        .iter()
        .map(|level| level.parse::<TrustLevel>())
        .collect();
    let levels = levels.map_err(|_| "trust must be one of L0, L1, L2, L3, L4".to_owned())?;
    let found = TrustLevel::ALL.iter();
    let found = found.filter(|level| levels.iter().any(|least| least <= *level));
    Ok(found.map(ToString::to_string).collect())
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FacetMap<T>([T; Facet::ALL.len()]);

impl<T> FacetMap<T> {
    pub fn from_fn(mut value_of: impl FnMut(Facet) -> T) -> Self {
        Self(std::array::from_fn(|place| value_of(Facet::ALL[place])))
    }

    pub fn entries(&self) -> impl Iterator<Item = (Facet, &T)> {
        Facet::ALL.iter().copied().zip(&self.0)
    }

    pub fn entries_mut(&mut self) -> impl Iterator<Item = (Facet, &mut T)> {
        Facet::ALL.iter().copied().zip(&mut self.0)
    }
}

impl<T> Index<Facet> for FacetMap<T> {
    type Output = T;

    fn index(&self, facet: Facet) -> &T {
        &self.0[facet as usize]
    }
}

impl<T> IndexMut<Facet> for FacetMap<T> {
    fn index_mut(&mut self, facet: Facet) -> &mut T {
        &mut self.0[facet as usize]
    }
}

impl<T: Default, const N: usize> From<[(Facet, T); N]> for FacetMap<T> {
    /// The map with these values, and with the default value of all other facets.
    fn from(values: [(Facet, T); N]) -> Self {
        let mut map = Self::from_fn(|_| T::default());
        for (facet, value) in values {
            map[facet] = value;
        }
        map
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn found(facet: Facet, filter: &[&str]) -> Result<Vec<String>, String> {
        facet.resolve_filter_values(filter.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn a_map_has_one_value_for_each_facet() {
        let mut map = FacetMap::from_fn(Facet::as_str);
        for &facet in Facet::ALL {
            assert_eq!(map[facet], facet.as_str());
        }
        map[Facet::Trust] = "changed";
        let changed = map
            .entries()
            .filter(|(facet, name)| **name != facet.as_str());
        assert_eq!(changed.collect::<Vec<_>>(), [(Facet::Trust, &"changed")]);
    }

    #[test]
    fn filters_find_only_values_that_exist() {
        for facet in [
            Facet::Lifecycle,
            Facet::Liveness,
            Facet::Signature,
            Facet::Unmanaged,
            Facet::Endpoint,
            Facet::Trust,
        ] {
            assert_eq!(found(facet, &[]), Ok(Vec::new()));
            assert!(found(facet, &["elsewhere"]).is_err(), "{facet}");
        }
        assert_eq!(
            found(Facet::Signature, &["valid", "unknown"]),
            Ok(vec!["valid".to_owned(), "unknown".to_owned()])
        );
        let from_two = ["L2", "L3", "L4"].map(str::to_owned);
        assert_eq!(found(Facet::Trust, &["L2"]), Ok(from_two.to_vec()));
        let images = found(Facet::InputMode, &["IMAGE/*", "image/png", "text/plain"]).unwrap();
        assert!(images.contains(&"image/jpeg".to_owned()), "{images:?}");
        let once = images.iter().filter(|value| *value == "image/png");
        assert_eq!(once.count(), 1, "{images:?}");
        assert_eq!(images.last().map(String::as_str), Some("text/plain"));
        // All kinds together leave room below the maximum number of values of a search.
        let all = found(Facet::OutputMode, &["image/*", "audio/*", "video/*"]).unwrap();
        assert_eq!(all.len(), 32);
        assert_eq!(
            found(Facet::Domain, &["A.Example"]),
            Ok(vec!["a.example".to_owned()])
        );
    }
}
