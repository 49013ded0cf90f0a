//! A macro for enums that are stored and shown as text: in the database, in JSON and on the command line.

use std::str::FromStr;

pub trait TextEnum: Copy + FromStr {
    fn text(self) -> &'static str;
}

/// Defines an enum whose variants each have one fixed text. The macro takes the text as a token: a `literal` fragment
/// would hide it from the derive that writes the `OpenAPI` schema, which would then show the variants' own names.
macro_rules! text_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:tt),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
                 serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text of this value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl $crate::text_enum::TextEnum for $name {
            fn text(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    other => Err(format!("`{other}` is not one of {}", [$($text),+].join(", "))),
                }
            }
        }
    };
}

pub(crate) use text_enum;
