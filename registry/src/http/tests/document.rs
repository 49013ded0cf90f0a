//! The checked-in `OpenAPI` document is the one the handlers make.

use std::path::Path;

use super::super::{openapi_document, operations};
use super::Registry;

#[test]
fn the_checked_in_document_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/openapi.json");
    let made = openapi_document();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(
        kept == made,
        "openapi/openapi.json is behind the handlers: run this test with UPDATE_EXPECT=1"
    );
}

#[test]
fn every_operation_is_named_once_and_tagged() {
    let document: serde_json::Value = serde_json::from_str(&openapi_document()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let all = operations();
    for (index, operation) in all.iter().enumerate() {
        assert!(
            all[..index].iter().all(|other| other.id != operation.id),
            "{operation:?}"
        );
        let method = operation.method.to_lowercase();
        let described = &document["paths"][&operation.path][&method];
        assert!(described["tags"][0].is_string(), "{operation:?}");
        assert!(described["summary"].is_string(), "{operation:?}");
        let default = &described["responses"]["default"]["content"];
        assert!(
            default["application/problem+json"].is_object(),
            "{operation:?}"
        );
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (name, member) in members {
                    match member.as_str() {
                        Some(target) if name == "$ref" => found.push(target.to_owned()),
                        _ => references(member, found),
                    }
                }
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| references(item, found))
            }
            _ => {}
        }
    }
    let document: serde_json::Value = serde_json::from_str(&openapi_document()).unwrap();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
}

#[actix_web::test]
async fn the_document_and_its_page_are_served() {
    let registry = Registry::new().await;
    let document = registry.get("/openapi.json").await;
    assert_eq!(document.body, openapi_document());
    let folder = registry.get("/docs").await;
    assert_eq!(
        (folder.status.as_u16(), folder.header("location")),
        (308, "docs/")
    );
    let page = registry.get("/docs/").await;
    assert_eq!(page.status, 200);
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(
        page.header("content-security-policy")
            .contains("script-src 'self';"),
        "{page:?}"
    );
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "{text}"
    );
    // Everything the page loads is there, and no script stands in the page itself.
    let mut loaded = 0;
    for part in text
        .split(['"', '\''])
        .filter(|part| part.ends_with(".js") || part.ends_with(".css"))
    {
        let file = registry
            .get(&format!("/docs/{}", part.trim_start_matches("./")))
            .await;
        assert_eq!(file.status, 200, "{part}");
        loaded += 1;
    }
    assert!(loaded >= 3);
    assert!(
        text.split("<script")
            .skip(1)
            .all(|script| script.contains("src=")),
        "{text}"
    );
    let start = registry.get("/docs/swagger-initializer.js").await;
    assert!(String::from_utf8_lossy(&start.body).contains("../openapi.json"));
    registry
        .get("/docs/../../etc/passwd")
        .await
        .problem(404, "not-found");
}
