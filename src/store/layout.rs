//! What the trees of a collection are made of, for an engine that stores columns: read off the record's own schema and
//! the types of its keys, so that a record states its shape once.

use postcard_schema::schema::{DataModelType, DataModelVariant, NamedType};

use super::index::AnyIndex;
use super::keys::Key;
use super::record::Record;
use crate::engine::{Field, Layout};

/// Of the tree of the records: see `codec.rs` for the bytes.
pub(super) fn of_records<R: Record>() -> Layout {
    let mut value = vec![Field::BigEndian(1)];
    put_fields(R::SCHEMA, &mut value);
    let layout = Layout { key: fields_of::<R::Id>(), value };
    // Types nested deeper than any layout are stored as bytes.
    if layout.is_sound() { layout } else { Layout::opaque() }
}

/// Of the tree of an index: see `index.rs` for the bytes.
pub(super) fn of_index<R: Record>(index: &dyn AnyIndex<R>) -> Layout {
    let mut key = Vec::new();
    index.put_key_fields(&mut key);
    let id = fields_of::<R::Id>();
    if index.is_unique() {
        return Layout { key, value: id };
    }
    for field in id {
        put(field, &mut key);
    }
    Layout { key, value: Vec::new() }
}

fn fields_of<K: Key>() -> Vec<Field> {
    let mut fields = Vec::new();
    K::put_fields(&mut fields);
    fields
}

/// Adds a field; behind one that takes all that is left there is none.
pub(super) fn put(field: Field, fields: &mut Vec<Field>) {
    if fields.last() != Some(&Field::Rest) {
        fields.push(field);
    }
}

/// Adds what a value of this type is in the postcard encoding. Fields of fields become columns of their own, as far as
/// all values have them.
fn put_fields(schema: &NamedType, fields: &mut Vec<Field>) {
    match schema.ty {
        DataModelType::Bool | DataModelType::I8 | DataModelType::U8 => put(Field::BigEndian(1), fields),
        DataModelType::U16 | DataModelType::U32 | DataModelType::U64 | DataModelType::Usize => {
            put(Field::Varint, fields);
        }
        DataModelType::I16 | DataModelType::I32 | DataModelType::I64 | DataModelType::Isize => {
            put(Field::ZigZag, fields);
        }
        DataModelType::F32 => put(Field::LittleEndian(4), fields),
        DataModelType::F64 => put(Field::LittleEndian(8), fields),
        DataModelType::Char | DataModelType::String | DataModelType::ByteArray => put(Field::Prefixed, fields),
        DataModelType::Unit | DataModelType::UnitStruct => {}
        DataModelType::NewtypeStruct(inner) => put_fields(inner, fields),
        DataModelType::Tuple(parts) | DataModelType::TupleStruct(parts) => put_tuple(parts, fields),
        DataModelType::Struct(parts) => parts.iter().for_each(|part| put_fields(part.ty, fields)),
        DataModelType::Option(inner) => put(Field::Option(Box::new(group([*inner]))), fields),
        DataModelType::Seq(inner) => put(Field::Sequence(Box::new(group([*inner]))), fields),
        DataModelType::Map { key, val } => put(Field::Sequence(Box::new(group([*key, *val]))), fields),
        DataModelType::Enum(variants) if variants.iter().all(|variant| is_unit(variant.ty)) => {
            put(Field::Varint, fields);
        }
        DataModelType::Enum(variants) => {
            put(Field::OneOf(variants.iter().map(|variant| variant_group(variant.ty)).collect()), fields);
        }
        // Numbers of more than 64 bits, and schemas.
        DataModelType::I128 | DataModelType::U128 | DataModelType::Schema => put(Field::Rest, fields),
    }
}

/// A few bytes in a row are one number, as in `[u8; 2]`.
fn put_tuple(parts: &[&NamedType], fields: &mut Vec<Field>) {
    let is_bytes = parts.iter().all(|part| matches!(part.ty, DataModelType::U8));
    if is_bytes && (1..=8).contains(&parts.len()) {
        put(Field::BigEndian(parts.len() as u8), fields);
    } else {
        for part in parts {
            put_fields(part, fields);
        }
    }
}

fn group<'a>(parts: impl IntoIterator<Item = &'a NamedType>) -> Field {
    let mut fields = Vec::new();
    parts.into_iter().for_each(|part| put_fields(part, &mut fields));
    Field::Group(fields)
}

fn is_unit(variant: &DataModelVariant) -> bool {
    matches!(variant, DataModelVariant::UnitVariant)
}

fn variant_group(variant: &DataModelVariant) -> Field {
    match variant {
        DataModelVariant::UnitVariant => group([]),
        DataModelVariant::NewtypeVariant(inner) => group([*inner]),
        DataModelVariant::TupleVariant(parts) => group(parts.iter().copied()),
        DataModelVariant::StructVariant(parts) => group(parts.iter().map(|part| part.ty)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Profile;

    #[test]
    fn a_profile_and_its_indexes_are_made_of_columns() {
        let big = Field::BigEndian;
        let expected = Layout {
            key: vec![big(8)],
            value: vec![
                big(1),
                Field::ZigZag,
                Field::Prefixed,
                big(2),
                Field::Varint,
                Field::ZigZag,
                Field::ZigZag,
                Field::ZigZag,
                Field::Prefixed,
                Field::Prefixed,
            ],
        };
        assert_eq!(of_records::<Profile>(), expected);
        let index = |index: &dyn AnyIndex<Profile>| of_index(index);
        assert_eq!(index(&Profile::EMAIL), Layout { key: vec![Field::Terminated(0)], value: vec![big(8)] });
        assert_eq!(index(&Profile::COUNTRY_STATUS), Layout { key: vec![big(2), big(1), big(8)], value: vec![] });
        assert_eq!(index(&Profile::REPUTATION), Layout { key: vec![big(4), big(8)], value: vec![] });
    }
}
