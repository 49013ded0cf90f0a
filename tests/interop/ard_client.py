"""A client of ARD 0.91 with the standard library alone, written from the standard and not from this registry.

    ard_client.py ORIGIN TEXT [TOKEN]

finds the registry of an origin by its catalog, searches page after page, filters, counts, lists and retrieves, and
judges every answer as the standard's own tester does. It prints one JSON object; `errors` says what is wrong.
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

ORIGIN, TEXT = sys.argv[1], sys.argv[2]
TOKEN = sys.argv[3] if len(sys.argv) > 3 else None
URN = re.compile(r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$")
REGISTRY = "application/ai-registry+json"
errors = []


def wrong(text):
    errors.append(text)


def call(url, body=None):
    """The status and the JSON of an answer."""
    headers = {"Accept": "application/json"}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    request = urllib.request.Request(url, data=data, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as failure:
        return failure.code, json.loads(failure.read())


def judge_entry(entry, where):
    if not URN.fullmatch(entry.get("identifier", "")):
        wrong(f"{where}: identifier {entry.get('identifier')!r}")
    for member in ("displayName", "type"):
        if not isinstance(entry.get(member), str) or not entry[member]:
            wrong(f"{where}: no {member}")
    if ("url" in entry) == ("data" in entry):
        wrong(f"{where}: not exactly one of url and data")
    questions = entry.get("representativeQueries")
    if questions is not None and not (2 <= len(questions) <= 5 and all(isinstance(one, str) for one in questions)):
        wrong(f"{where}: representativeQueries {questions!r}")
    trust = entry.get("trustManifest")
    if trust is not None:
        publisher = entry["identifier"].split(":")[2]
        if trust.get("identity") != f"did:web:{publisher}":
            wrong(f"{where}: identity {trust.get('identity')!r} of another publisher than {publisher}")


def base_of(catalog):
    for entry in catalog.get("entries", []):
        judge_entry(entry, "catalog")
        if entry["type"] == REGISTRY:
            url = entry["url"].rstrip("/")
            return re.sub(r"/(search|explore|agents)$", "", url)
    wrong("the catalog names no registry")
    sys.exit(json.dumps({"errors": errors}))


def search(base, query, size=3):
    """All results of a query, page after page."""
    found, token, pages = [], None, 0
    while True:
        body = {"query": query, "federation": "none", "pageSize": size}
        if token:
            body["pageToken"] = token
        status, page = call(f"{base}/search", body)
        if status != 200 or not isinstance(page.get("results"), list):
            wrong(f"search {query}: {status} {page}")
            return found, pages
        if set(page) - {"results", "pageToken"}:
            wrong(f"search: members {sorted(page)}")
        if len(page["results"]) > size:
            wrong(f"search: {len(page['results'])} results on a page of {size}")
        for result in page["results"]:
            judge_entry(result, "result")
            score = result.get("score")
            if type(score) is not int or not 0 <= score <= 100:
                wrong(f"result: score {score!r}")
            if not re.match(r"^https?://", result.get("source", "")):
                wrong(f"result: source {result.get('source')!r}")
            if "representativeQueries" in result:
                wrong("result: it has questions")
        found.extend(page["results"])
        pages += 1
        token = page.get("pageToken")
        if token is None:
            return found, pages


def retrieve(base, identifier):
    return call(f"{base}/agents/{urllib.parse.quote(identifier, safe='')}")


def expect_error(answer, status, code, what):
    if answer[0] != status or answer[1].get("errorCode") != code or not answer[1].get("message"):
        wrong(f"{what}: {answer}")


def main():
    status, catalog = call(f"{ORIGIN}/.well-known/ard.json")
    if status != 200 or not isinstance(catalog.get("entries"), list):
        wrong(f"catalog: {status}")
    base = base_of(catalog)
    results, pages = search(base, {"text": TEXT})
    scores = [result["score"] for result in results]
    if scores != sorted(scores, reverse=True):
        wrong(f"scores {scores}")
    found = [result["identifier"] for result in results]
    if len(found) != len(set(found)):
        wrong(f"twice: {found}")
    filtered, _ = search(base, {"text": TEXT, "filter": {"tags": ["logistics"], "metadata.a2aStreaming": "true"}})
    for result in filtered:
        if "logistics" not in result["tags"] or result["metadata"]["a2aStreaming"] is not True:
            wrong(f"filtered: {result['identifier']}")
    status, explored = call(
        f"{base}/explore", {"query": {"text": TEXT}, "resultType": {"facets": [{"field": "tags", "limit": 2}]}}
    )
    if status != 200 or explored.get("resultType") != "facets":
        wrong(f"explore: {status} {explored}")
    facet = explored["facets"]["tags"]
    whole = sum(bucket["count"] for bucket in facet["buckets"]) + facet["otherCount"]
    if whole != sum(len(result.get("tags", [])) for result in results):
        wrong(f"facets: {facet}")
    listed, token = [], ""
    while True:
        status, page = call(f"{base}/agents?pageSize=5{token}")
        if status != 200 or not isinstance(page.get("items"), list):
            wrong(f"list: {status} {page}")
            break
        listed.extend(entry["identifier"] for entry in page["items"])
        if "pageToken" not in page:
            if page["total"] != len(listed):
                wrong(f"list: total {page['total']} of {len(listed)}")
            break
        token = "&pageToken=" + urllib.parse.quote(page["pageToken"], safe="")
    for identifier in listed:
        status, entry = retrieve(base, identifier)
        if status != 200 or entry.get("identifier") != identifier or "score" in entry or "source" in entry:
            wrong(f"retrieve {identifier}: {status} {entry}")
        else:
            judge_entry(entry, "entry")
    expect_error(retrieve(base, "urn:air:ard-conformance.invalid:no:such"), 404, "NOT_FOUND", "unknown")
    expect_error(retrieve(base, "word"), 400, "INVALID_ARGUMENT", "no identifier")
    expect_error(call(f"{base}/search", {"query": {}}), 400, "INVALID_ARGUMENT", "no text")
    print(
        json.dumps(
            {
                "found": found,
                "pages": pages,
                "filtered": [result["identifier"] for result in filtered],
                "listed": listed,
                "errors": errors,
            }
        )
    )


main()
