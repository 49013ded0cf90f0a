//! The value of an enum column. A later version of the program may write to the same database, including values that
//! this version does not know. Such a value can be read, and affects only its own row.

use std::ops::Deref;

use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::text_enum::TextEnum;
use sea_orm::sea_query::{ArrayType, ColumnType, Nullable, StringLen, ValueType, ValueTypeErr};
use sea_orm::{
    ColIdx, DbErr, IntoActiveValue, QueryResult, TryFromU64, TryGetError, TryGetable, Value,
};
use serde::{Serialize, Serializer};

use super::StoreError;
use super::error::CorruptRow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEnum<T>(pub OpenEnum<T>);

impl<T: TextEnum> StoredEnum<T> {
    pub fn from_text(text: String) -> Self {
        Self(OpenEnum::from_text(text))
    }

    /// The value, or [`super::StoreErrorKind::CorruptRow`] if this program does not know it.
    pub fn require_known(
        &self,
        table: &'static str,
        column: &'static str,
        id: impl ToString,
    ) -> Result<T, StoreError> {
        self.known_value().ok_or_else(|| {
            StoreError::corrupt_row(CorruptRow {
                table,
                column,
                id: id.to_string(),
                value: self.as_str().to_owned(),
            })
        })
    }
}

impl<T> Deref for StoredEnum<T> {
    type Target = OpenEnum<T>;

    fn deref(&self) -> &OpenEnum<T> {
        &self.0
    }
}

impl<T> From<T> for StoredEnum<T> {
    fn from(value: T) -> Self {
        Self(OpenEnum::Known(value))
    }
}

/// Compares known values only: an unknown value does not equal any value.
impl<T: PartialEq> PartialEq<T> for StoredEnum<T> {
    fn eq(&self, other: &T) -> bool {
        self.0 == *other
    }
}

impl<T: TextEnum> Serialize for StoredEnum<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: TextEnum> From<StoredEnum<T>> for Value {
    fn from(stored: StoredEnum<T>) -> Self {
        stored.as_str().into()
    }
}

impl<T: TextEnum> TryGetable for StoredEnum<T> {
    fn try_get_by<I: ColIdx>(row: &QueryResult, column: I) -> Result<Self, TryGetError> {
        String::try_get_by(row, column).map(Self::from_text)
    }
}

impl<T: TextEnum> ValueType for StoredEnum<T> {
    fn try_from(value: Value) -> Result<Self, ValueTypeErr> {
        <String as ValueType>::try_from(value).map(Self::from_text)
    }

    fn type_name() -> String {
        <String as ValueType>::type_name()
    }

    fn array_type() -> ArrayType {
        ArrayType::String
    }

    fn column_type() -> ColumnType {
        ColumnType::String(StringLen::None)
    }
}

impl<T: TextEnum> Nullable for StoredEnum<T> {
    fn null() -> Value {
        Value::String(None)
    }
}

impl<T: TextEnum> IntoActiveValue<Self> for StoredEnum<T> {
    fn into_active_value(self) -> sea_orm::ActiveValue<Self> {
        sea_orm::ActiveValue::Set(self)
    }
}

/// The conversion always fails: it is called only for keys that the database assigns, and an enum column is never such
/// a key.
impl<T: TextEnum> TryFromU64 for StoredEnum<T> {
    fn try_from_u64(_: u64) -> Result<Self, DbErr> {
        Err(DbErr::ConvertFromU64("a text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreErrorKind;
    use a2a_registry_domain::lifecycle::Hold;

    #[test]
    fn a_value_of_a_later_version_is_kept_and_named() {
        let known: StoredEnum<Hold> = ValueType::try_from("denied".into()).unwrap();
        assert_eq!(known, StoredEnum(OpenEnum::Known(Hold::Denied)));
        assert_eq!(known, Hold::Denied);
        assert_eq!(
            known.require_known("holds", "hold", 7).unwrap(),
            Hold::Denied
        );

        let later: StoredEnum<Hold> = ValueType::try_from("moon_phase".into()).unwrap();
        assert_eq!(later.known_value(), None);
        assert_ne!(later, Hold::Denied);
        assert!(later.could_be(Hold::Denied) && known.could_be(Hold::Denied));
        assert!(!known.could_be(Hold::Operator));
        assert_eq!(serde_json::to_value(&later).unwrap(), "moon_phase");
        // The text does not change when it is written back.
        assert_eq!(Value::from(later.clone()), Value::from("moon_phase"));
        let error = later.require_known("holds", "hold", 7).unwrap_err();
        assert_eq!(
            error.kind(),
            &StoreErrorKind::CorruptRow(CorruptRow {
                table: "holds",
                column: "hold",
                id: "7".into(),
                value: "moon_phase".into(),
            })
        );
    }
}
