//! The registry as a server of the Model Context Protocol: the tools by which models find agents and read about them.

mod arguments;
mod bounds;
pub(crate) mod endpoint;
mod handler;
mod outcome;
mod schemas;
mod shapes;
#[cfg(test)]
mod tests;
mod tools;
mod words;

pub use endpoint::McpService;
pub use handler::{ToolServer, ToolSource, unknown_tool};
pub use schemas::{input_schema, output_schema};
pub use tools::tools;
