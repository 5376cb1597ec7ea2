//! Choices by their names: a row for each.

/// Makes an enum whose values have names, by which they are read, written and serialised.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident $kind:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),*
        }

        impl $name {
            /// All values, in the order of their documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Returns the name as the command writes it.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text),*
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                <String as ::serde::Deserialize>::deserialize(deserializer)?.parse().map_err(::serde::de::Error::custom)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::error::Error;
            fn from_str(text: &str) -> $crate::error::Result<Self> {
                let found = $name::ALL.iter().find(|value| value.name() == text);
                found.copied().ok_or_else(|| $crate::error::Error::unknown($kind, text, $name::ALL.iter().map(|value| value.name())))
            }
        }
    };
}

pub(crate) use named;
