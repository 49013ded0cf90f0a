//! Operations that are also served at another path: each is documented there too, under its own name, which is the
//! route name in the attributes of the handler.

use utoipa::openapi::OpenApi;

use crate::routes::openapi::operations::operations_mut;

struct AlternatePath {
    /// Path at which the handler is documented.
    described_path: &'static str,
    path: &'static str,
    operation_id: &'static str,
    summary: &'static str,
    description: &'static str,
}

const ALTERNATE_PATHS: &[AlternatePath] = &[
    AlternatePath {
        described_path: "/v1/agents/{agent}/card",
        path: "/agents/{agent}/.well-known/agent-card.json",
        operation_id: "agent_card_well_known",
        summary: "Get the approved card at the path that SDK resolvers use",
        description: "Like `/v1/agents/{agent}/card`, with the same parameters.",
    },
    AlternatePath {
        described_path: "/v1/agents/{agent}/card",
        path: "/agents/{agent}/.well-known/agent.json",
        operation_id: "agent_card_well_known_0_2",
        summary: "Get the approved card at the path that SDK resolvers of protocol version 0.2 use",
        description: "Like `/v1/agents/{agent}/card`, with the same parameters.",
    },
    AlternatePath {
        described_path: "/agents/{agent}/as/{form}/.well-known/agent-card.json",
        path: "/agents/{agent}/as/{form}/.well-known/agent.json",
        operation_id: "agent_card_as_well_known_0_2",
        summary: "Get the converted approved card at the path that SDK resolvers of protocol version 0.2 use",
        description: "Like `/v1/agents/{agent}/card` with `as`.",
    },
    AlternatePath {
        described_path: "/.well-known/agent-card.json",
        path: "/.well-known/agent.json",
        operation_id: "own_card_0_2",
        summary: "Get the registry's own agent card at the path that SDK resolvers of protocol version 0.2 use",
        description: "",
    },
    AlternatePath {
        described_path: "/ard/search",
        path: "/ard/c/{collection}/search",
        operation_id: "ard_collection_search",
        summary: "Search entries of a collection (ARD)",
        description: "",
    },
    AlternatePath {
        described_path: "/ard/explore",
        path: "/ard/c/{collection}/explore",
        operation_id: "ard_collection_explore",
        summary: "Count facet values over all matches in a collection (ARD)",
        description: "",
    },
    AlternatePath {
        described_path: "/ard/agents",
        path: "/ard/c/{collection}/agents",
        operation_id: "ard_collection_list",
        summary: "List entries of a collection (ARD)",
        description: "",
    },
    AlternatePath {
        described_path: "/ard/agents/{identifier}",
        path: "/ard/c/{collection}/agents/{identifier}",
        operation_id: "ard_collection_retrieve",
        summary: "Get an entry of a collection by its identifier (ARD)",
        description: "",
    },
];

pub fn add_alternate_paths(document: &mut OpenApi) {
    let paths = &mut document.paths.paths;
    for alternate in ALTERNATE_PATHS {
        let Some(mut item) = paths.get(alternate.described_path).cloned() else {
            continue;
        };
        for operation in operations_mut(&mut item) {
            let description = Some(alternate.description).filter(|text| !text.is_empty());
            operation.operation_id = Some(alternate.operation_id.to_owned());
            operation.summary = Some(alternate.summary.to_owned());
            operation.description = description.map(str::to_owned);
        }
        paths.insert(alternate.path.to_owned(), item);
    }
}
