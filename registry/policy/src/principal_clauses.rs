//! Clauses about the principal: `when` and `unless` conditions that refer to nothing else. A policy is a predicate
//! over principals times one over resources, so its clauses are sorted into the two before an agent is evaluated.

use cedar_policy::Policy as CedarPolicy;
use serde_json::{Value, json};

use crate::principal::PrincipalScope;

/// The conditions of a policy, in Cedar's JSON form.
#[derive(Debug)]
pub(crate) struct SplitConditions {
    /// The principals that the clauses about the principal let pass.
    pub(crate) scope: PrincipalScope,
    /// The clauses about the resource, and those about nothing.
    pub(crate) resource: Vec<Value>,
}

/// Maximum number of characters of a rewrite in an error message.
const MAX_REWRITE_CHARS: usize = 400;

impl SplitConditions {
    /// Sorts the conditions of a policy. The order of the two kinds does not matter: clauses about the principal
    /// cannot fail, and a policy whose other clauses fail is one about its principals only.
    ///
    /// # Errors What is wrong with a clause, and how to write it instead.
    pub(crate) fn from_conditions(conditions: &Value) -> Result<Self, String> {
        let (mut scopes, mut resource) = (Vec::new(), Vec::new());
        for condition in conditions.as_array().into_iter().flatten() {
            let (kind, body) = (
                condition["kind"].as_str().unwrap_or_default(),
                &condition["body"],
            );
            match ClauseSubject::of_expression(body)? {
                ClauseSubject::Resource => resource.push(condition.clone()),
                ClauseSubject::Both => return Err(mixed_clause_error(kind, body)),
                ClauseSubject::Principal => {
                    let scope = parse_principal_expression(body).ok_or_else(|| {
                        "a clause about the principal may have `principal in Group::\"…\"` and `principal == \
                         Account::\"…\"`, joined by `&&`, `||` and `!`"
                            .to_owned()
                    })?;
                    scopes.push(match kind {
                        "unless" => scope.complement(),
                        _ => scope,
                    });
                }
            }
        }
        Ok(Self {
            scope: PrincipalScope::intersection(scopes),
            resource,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseSubject {
    Principal,
    /// The resource, or nothing.
    Resource,
    Both,
}

impl ClauseSubject {
    /// The variables that an expression uses. Cedar's JSON form writes each as `{"Var": name}`.
    fn of_expression(expression: &Value) -> Result<Self, String> {
        let mut variables = Vec::new();
        collect_variables(expression, &mut variables);
        let is_other = |name: &&str| !["principal", "resource"].contains(name);
        if let Some(other) = variables.iter().copied().find(is_other) {
            return Err(format!(
                "a condition must refer to the principal or to the resource, but this one uses `{other}`; put actions in \
                 the scope, as in `action == Action::\"invoke\"`"
            ));
        }
        Ok(
            match (
                variables.contains(&"principal"),
                variables.contains(&"resource"),
            ) {
                (true, true) => Self::Both,
                (true, false) => Self::Principal,
                (false, _) => Self::Resource,
            },
        )
    }
}

fn collect_variables<'a>(expression: &'a Value, variables: &mut Vec<&'a str>) {
    match expression {
        Value::Object(members) => {
            variables.extend(members.get("Var").and_then(Value::as_str));
            for member in members.values() {
                collect_variables(member, variables);
            }
        }
        Value::Array(parts) => {
            for part in parts {
                collect_variables(part, variables);
            }
        }
        _ => {}
    }
}

/// The principals for which an expression holds; `None` if it is not one of those that need no entity data.
fn parse_principal_expression(expression: &Value) -> Option<PrincipalScope> {
    let (operator, operands) = expression.as_object()?.iter().next()?;
    let (left, right) = (&operands["left"], &operands["right"]);
    let both = || {
        Some(vec![
            parse_principal_expression(left)?,
            parse_principal_expression(right)?,
        ])
    };
    match operator.as_str() {
        "Value" => Some(match operands.as_bool()? {
            true => PrincipalScope::Everybody,
            false => PrincipalScope::Nobody,
        }),
        "!" => Some(parse_principal_expression(&operands["arg"])?.complement()),
        "&&" => Some(PrincipalScope::intersection(both()?)),
        "||" => Some(PrincipalScope::union(both()?)),
        "==" => parse_equality(left, right),
        "!=" => Some(parse_equality(left, right)?.complement()),
        "in" if is_principal(left) => parse_in_expression(right),
        "contains" if is_principal(right) => {
            let entities = entity_set(left)?.into_iter();
            let equal = entities.map(|(kind, id)| PrincipalScope::from_equal_entity(&kind, id));
            Some(PrincipalScope::union(equal.collect()))
        }
        "is" if is_principal(left) => {
            let kind = PrincipalScope::from_entity_type(operands["entity_type"].as_str()?);
            match operands.get("in") {
                None => Some(kind),
                Some(within) => Some(PrincipalScope::intersection(vec![
                    kind,
                    parse_in_expression(within)?,
                ])),
            }
        }
        _ => None,
    }
}

fn parse_equality(left: &Value, right: &Value) -> Option<PrincipalScope> {
    let entity = match (is_principal(left), is_principal(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    let (kind, id) = entity_literal(entity)?;
    Some(PrincipalScope::from_equal_entity(&kind, id))
}

/// Reads what stands behind `principal in`: an entity, or a list of some.
fn parse_in_expression(within: &Value) -> Option<PrincipalScope> {
    let entities = match entity_literal(within) {
        Some(one) => vec![one],
        None => entity_set(within)?,
    };
    let scopes = entities
        .into_iter()
        .map(|(kind, id)| PrincipalScope::from_in_entity(&kind, id));
    Some(PrincipalScope::union(scopes.collect()))
}

fn is_principal(expression: &Value) -> bool {
    expression["Var"] == "principal"
}

/// The type and the identifier of an entity that is written out.
fn entity_literal(expression: &Value) -> Option<(String, String)> {
    let entity = &expression["Value"]["__entity"];
    let text = |member: &str| entity[member].as_str().map(str::to_owned);
    Some((text("type")?, text("id")?))
}

fn entity_set(expression: &Value) -> Option<Vec<(String, String)>> {
    let parts = expression["Set"].as_array()?;
    parts.iter().map(entity_literal).collect()
}

/// The error about a clause that refers to the principal and to the resource, with a rewrite.
fn mixed_clause_error(kind: &str, body: &Value) -> String {
    let rewrite =
        separated_clauses(kind, body).map(
            |(principal, resource, is_one_policy)| match is_one_policy {
                true => format!("write `{principal} {resource}`"),
                false => {
                    format!("write two policies, one with `{principal}` and one with `{resource}`")
                }
            },
        );
    let rewrite = rewrite.filter(|text| text.chars().count() <= MAX_REWRITE_CHARS);
    format!(
        "a clause must be about the principal or about the resource, and this one is about both; {}",
        rewrite.unwrap_or_else(|| format!(
            "write two clauses, `{kind} {{ principal … }} {kind} {{ resource … }}`, or two policies"
        ))
    )
}

/// Separates a mixed clause: its part about the principal, that about the resource, and whether both belong in one
/// policy. `None` unless each operand of its outermost operator is about one of the two.
fn separated_clauses(kind: &str, body: &Value) -> Option<(String, String, bool)> {
    let (operator, _) = body.as_object()?.iter().next()?;
    if operator != "&&" && operator != "||" {
        return None;
    }
    let mut operands = Vec::new();
    collect_operands(operator, body, &mut operands);
    let mut parts: [Option<Value>; 2] = [None, None];
    for operand in operands {
        let part = match ClauseSubject::of_expression(operand).ok()? {
            ClauseSubject::Principal => &mut parts[0],
            ClauseSubject::Resource => &mut parts[1],
            ClauseSubject::Both => return None,
        };
        *part = Some(match part.take() {
            None => operand.clone(),
            Some(left) => json!({operator.as_str(): {"left": left, "right": operand}}),
        });
    }
    let [principal, resource] = parts;
    let is_one_policy = (kind == "when") == (operator == "&&");
    Some((
        clause_text(kind, &principal?)?,
        clause_text(kind, &resource?)?,
        is_one_policy,
    ))
}

/// Adds the operands of a chain of the same operator, in their order.
fn collect_operands<'a>(operator: &str, expression: &'a Value, operands: &mut Vec<&'a Value>) {
    match expression.get(operator) {
        Some(chain) => {
            collect_operands(operator, &chain["left"], operands);
            collect_operands(operator, &chain["right"], operands);
        }
        None => operands.push(expression),
    }
}

/// A clause in Cedar's own style.
fn clause_text(kind: &str, body: &Value) -> Option<String> {
    let policy = json!({
        "effect": "permit",
        "principal": {"op": "All"},
        "action": {"op": "All"},
        "resource": {"op": "All"},
        "conditions": [{"kind": kind, "body": body}],
    });
    let text = CedarPolicy::from_json(None, policy).ok()?.to_string();
    let begin = text.find(&format!("{kind} {{"))?;
    Some(text[begin..].trim_end_matches(';').to_owned())
}
