//! A macro for configuration sections, and the description of their keys.

use serde::Serialize;

/// A key of a section, with its doc comment: the printed configuration explains each key with it.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    pub name: &'static str,
    /// The lines of its doc comment, as the compiler passes them on: each begins with a space.
    pub doc: &'static [&'static str],
}

/// A section, or a table of one, whose keys are described.
pub trait DescribedSection: Serialize + Default {
    /// Every key, in the order of the struct.
    const KEYS: &'static [ConfigKey];
}

/// Defines a configuration section, or a table of one. The value after a key is its default; any other key has the
/// default of its type. The doc comments of the keys are kept, and stand above the keys in a printed configuration:
/// they say what a key means, its unit and its bounds.
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[serde($($serde:tt)*)])*
                $visibility:vis $key:ident: $type:ty $(= $default:expr)?,
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $doc])*
                $(#[serde($($serde)*)])*
                $visibility $key: $type,
            )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $crate::config::section::section!(@default $($default)?),)+
                }
            }
        }

        impl $crate::config::section::DescribedSection for $name {
            const KEYS: &'static [$crate::config::section::ConfigKey] = &[
                $($crate::config::section::ConfigKey {
                    name: stringify!($key),
                    doc: &[$($doc),*],
                },)+
            ];
        }
    };
    (@default) => {
        Default::default()
    };
    (@default $default:expr) => {
        $default
    };
}

pub(crate) use section;
