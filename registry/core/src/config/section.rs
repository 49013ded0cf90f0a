//! A macro for sections of the configuration.

/// Defines a section of the configuration, or a table of one. What stands behind a key is its default; the default of
/// any other key is that of its type.
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
