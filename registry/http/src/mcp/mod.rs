//! The registry as a Model Context Protocol server: tools by which models find agents and read about them.

pub mod arguments;
pub mod endpoint;
pub mod handler;
pub mod result_types;
pub mod schemas;
#[cfg(test)]
mod tests;
pub mod text_limits;
pub mod text_rendering;
pub mod tool_result;
pub mod tools;

pub use endpoint::McpService;
pub use handler::{ToolServer, ToolSource, unknown_tool_error};
pub use schemas::{tool_input_schema, tool_output_schema};
pub use tools::registry_tools;
