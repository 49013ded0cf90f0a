//! Lists of objects in requests.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a list of objects. A derived struct would also accept an array of its members in order, which no API document
/// allows.
pub(crate) fn deserialize_objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<StrictObject<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}

struct StrictObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StrictObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = StrictObject<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(StrictObject)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::BulkRegistration;

    #[test]
    fn an_array_in_the_place_of_an_object_is_refused() {
        let read = |registration| {
            let body = json!({"registrations": [{"domain": "a.example"}, registration]});
            serde_json::from_value::<BulkRegistration>(body)
        };
        let error = read(json!(["b.example", null])).unwrap_err();
        assert!(error.to_string().contains("expected an object"), "{error}");
        let both = read(json!({"domain": "b.example"})).unwrap();
        assert_eq!(both.registrations[1].domain.as_deref(), Some("b.example"));
    }
}
