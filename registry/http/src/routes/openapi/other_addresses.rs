//! Operations that are also served at a further address: each is described there as well, under its own name, which is
//! the name of the route in the attributes of its handler.

use utoipa::openapi::OpenApi;

use crate::routes::openapi::operations::methods_mut;

struct OtherAddress {
    /// The path that its handler is described at.
    of: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    description: &'static str,
}

const OTHER_ADDRESSES: &[OtherAddress] = &[
    OtherAddress {
        of: "/v1/agents/{agent}/card",
        path: "/agents/{agent}/.well-known/agent-card.json",
        id: "agent_card_well_known",
        summary: "Get the approved card at the path that SDK resolvers use",
        description: "As `/v1/agents/{agent}/card`, of which it takes the parameters.",
    },
    OtherAddress {
        of: "/v1/agents/{agent}/card",
        path: "/agents/{agent}/.well-known/agent.json",
        id: "agent_card_well_known_0_2",
        summary: "Get the approved card at the path that SDK resolvers of protocol version 0.2 use",
        description: "As `/v1/agents/{agent}/card`, of which it takes the parameters.",
    },
    OtherAddress {
        of: "/agents/{agent}/as/{form}/.well-known/agent-card.json",
        path: "/agents/{agent}/as/{form}/.well-known/agent.json",
        id: "agent_card_as_well_known_0_2",
        summary: "Get the approved card, converted, at the path that SDK resolvers of protocol version 0.2 use",
        description: "As `/v1/agents/{agent}/card` with `as`.",
    },
    OtherAddress {
        of: "/.well-known/agent-card.json",
        path: "/.well-known/agent.json",
        id: "own_card_0_2",
        summary: "Get the registry's own agent card at the path that SDK resolvers of protocol version 0.2 use",
        description: "",
    },
    OtherAddress {
        of: "/ard/search",
        path: "/ard/c/{collection}/search",
        id: "ard_collection_search",
        summary: "Search entries of a collection (ARD)",
        description: "",
    },
    OtherAddress {
        of: "/ard/explore",
        path: "/ard/c/{collection}/explore",
        id: "ard_collection_explore",
        summary: "Count values over all matches in a collection (ARD)",
        description: "",
    },
    OtherAddress {
        of: "/ard/agents",
        path: "/ard/c/{collection}/agents",
        id: "ard_collection_list",
        summary: "List entries of a collection (ARD)",
        description: "",
    },
    OtherAddress {
        of: "/ard/agents/{identifier}",
        path: "/ard/c/{collection}/agents/{identifier}",
        id: "ard_collection_retrieve",
        summary: "Get an entry of a collection by its identifier (ARD)",
        description: "",
    },
];

pub fn add(document: &mut OpenApi) {
    let paths = &mut document.paths.paths;
    for other in OTHER_ADDRESSES {
        let Some(mut item) = paths.get(other.of).cloned() else {
            continue;
        };
        for operation in methods_mut(&mut item) {
            let description = Some(other.description).filter(|text| !text.is_empty());
            operation.operation_id = Some(other.id.to_owned());
            operation.summary = Some(other.summary.to_owned());
            operation.description = description.map(str::to_owned);
        }
        paths.insert(other.path.to_owned(), item);
    }
}
