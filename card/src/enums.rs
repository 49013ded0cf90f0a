//! A macro for enums whose values have one fixed name each.

/// Defines an enum whose values each have one fixed name, by which they are stored, displayed and parsed.
///
/// A last line `error NAME = SENTENCE;` makes texts parseable, with that error for any other text.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }

        $(
            $(#[$error_meta:meta])*
            error $error:ident = $sentence:tt;
        )?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The fixed name of the value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The value with this name; case-sensitive.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        $(
            $(#[$error_meta])*
            #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
            #[error($sentence)]
            pub struct $error(pub String);

            impl std::str::FromStr for $name {
                type Err = $error;

                fn from_str(name: &str) -> Result<Self, $error> {
                    Self::from_name(name).ok_or_else(|| $error(name.to_owned()))
                }
            }
        )?
    };
}
