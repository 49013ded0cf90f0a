//! A macro for configuration sections.

/// Defines a configuration section, or a table of one. The value after a key is its default; any other key has the
/// default of its type.
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$key_meta:meta])* $visibility:vis $key:ident: $type:ty $(= $default:expr)?,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$key_meta])* $visibility $key: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $crate::config::section::section!(@default $($default)?),)+
                }
            }
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
