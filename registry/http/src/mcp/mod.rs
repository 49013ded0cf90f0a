//! The registry as a server of the Model Context Protocol: the tools by which models find agents and read about them.

pub mod arguments;
pub mod bounds;
pub mod endpoint;
pub mod handler;
pub mod outcome;
pub mod schemas;
pub mod shapes;
#[cfg(test)]
mod tests;
pub mod tools;
pub mod words;

pub use endpoint::McpService;
pub use handler::{ToolServer, ToolSource, unknown_tool};
pub use schemas::{input_schema, output_schema};
pub use tools::tools;
