//! RFC 8785 on its own test vectors: the base of the canonical forms and the content digest.
#![allow(clippy::unwrap_used)]

use a2a_card::{CanonicalForm, bytes_digest, canonical_payload, content_digest};
use serde_json::Value;

/// The canonical text of a JSON text.
fn canonical(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap();
    serde_json_canonicalizer::to_string(&value).unwrap()
}

#[test]
fn numbers_are_written_as_appendix_b_says() {
    for (bits, text) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let number = f64::from_bits(bits);
        let written = serde_json_canonicalizer::to_string(&number).unwrap();
        assert_eq!(written, text, "{bits:016x}");
        // The same inside a card.
        let card = format!(r#"{{"name":"A","n":{text}}}"#);
        let payload = canonical_payload(card.as_bytes(), CanonicalForm::Plain).unwrap();
        let wanted = format!(r#"{{"n":{text},"name":"A"}}"#);
        assert_eq!(String::from_utf8(payload).unwrap(), wanted, "{bits:016x}");
    }
    for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(serde_json_canonicalizer::to_string(&none).is_err());
    }
}

#[test]
fn integers_are_written_as_doubles_are() {
    for (json, text) in [
        ("1e0", "1"),
        ("-0", "0"),
        ("4.50", "4.5"),
        ("2e-3", "0.002"),
        ("0.000000000000000000000000001", "1e-27"),
        ("333333333.33333329", "333333333.3333333"),
        ("1E30", "1e+30"),
        ("9007199254740994", "9007199254740994"),
        ("100000000000000000000", "100000000000000000000"),
        ("18446744073709550000", "18446744073709550000"),
    ] {
        assert_eq!(canonical(json), text);
    }
}

#[test]
fn the_example_of_section_3_2_is_written_as_there() {
    let json = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let wanted = concat!(
        r#"{"literals":[null,true,false],"#,
        r#""numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
    assert_eq!(canonical(json), wanted);
}

#[test]
fn names_are_sorted_by_utf_16() {
    let json = r#"{
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let wanted = concat!(
        r#"{"\r":"Carriage Return","1":"One","#,
        "\"\u{80}\":\"Control\",",
        r#""ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","#,
        "\"😀\":\"Emoji: Grinning Face\",",
        "\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
    assert_eq!(canonical(json), wanted);
}

#[test]
fn texts_are_escaped_only_where_they_must_be() {
    let json = r#""\u0000\u0008\u0009\u000a\u000c\u000d\u001f\u007f\u2028\/<&>é""#;
    let wanted = "\"\\u0000\\b\\t\\n\\f\\r\\u001f\u{7f}\u{2028}/<&>é\"";
    assert_eq!(canonical(json), wanted);
}

#[test]
fn a_card_of_the_vectors_is_digested_and_signed_in_that_form() {
    let card = r#"{"name": "\u20ac", "n": [1E30, 333333333.3333333, 2e-3], "\ud83d\ude00": 1, "\ufb33": 2}"#;
    let wanted = "{\"n\":[1e+30,333333333.3333333,0.002],\"name\":\"€\",\"😀\":1,\"\u{fb33}\":2}";
    let payload = canonical_payload(card.as_bytes(), CanonicalForm::Plain).unwrap();
    assert_eq!(String::from_utf8(payload).unwrap(), wanted);
    assert_eq!(
        content_digest(card.as_bytes()),
        bytes_digest(wanted.as_bytes())
    );
}
