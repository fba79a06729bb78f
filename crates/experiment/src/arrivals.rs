//! Arrivals that a layer of configuration has no more use for.

use flashkeel_config::{Kind, Node};

const WORKLOAD: &str = "workload";

/// Takes out of `below` the arrivals of each workload that `over` makes closed: pacing decides
/// then when requests come. What `over` says of arrivals itself is left to be refused. Returns
/// a note for each.
pub(crate) fn drop_from(below: &mut Node, over: &Node) -> Vec<String> {
    let mut places = vec![WORKLOAD.to_owned()];
    if let Some(Kind::Table(tenants)) = over.get("stack.tenants").map(|tenants| &tenants.kind) {
        places.extend(tenants.keys().map(|index| format!("stack.tenants.{index}.{WORKLOAD}")));
    }
    let each = places.iter().filter_map(|place| drop_one(below.get_mut(place)?, over.get(place)?));
    each.collect()
}

/// Does the same for one workload.
pub(crate) fn drop_one(below: &mut Node, over: &Node) -> Option<String> {
    let closes = is_closed(over) && !is_closed(below);
    if !closes || over.get("source.arrivals").is_some() {
        return None;
    }
    let arrivals = below.get_mut("source")?.remove("arrivals")?;
    Some(format!("pacing is closed: the arrivals of {} are left out", arrivals.origin))
}

fn is_closed(workload: &Node) -> bool {
    let pacing = workload.get("pacing");
    let policy = pacing.and_then(|pacing| pacing.get("policy").or(Some(pacing)));
    policy.and_then(Node::as_str) == Some("closed")
}
