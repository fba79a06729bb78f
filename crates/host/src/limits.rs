//! Bounds of what host policies may be given.

use flashkeel_engine::Span;

/// Longest wait that makes sense anywhere on a host.
const LONGEST: Span = Span::from_secs(3600);

/// Refuses a wait that is longer than any that makes sense.
///
/// # Errors
/// Says which key it is, and how long at most.
pub(crate) fn wait(key: &str, span: Span) -> Result<(), String> {
    if span > LONGEST { Err(format!("{key} is {span}; at most {LONGEST}")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use crate::coordinator::CoordinationConfig;
    use crate::mirror::hedge::HedgeConfig;
    use crate::mirror::windows::WindowsConfig;
    use crate::windowed::WindowSettings;

    fn read<T: DeserializeOwned>(settings: Value) -> Result<T, String> {
        serde_json::from_value(settings).map_err(|error| error.to_string())
    }

    /// Whether a setting may be so long.
    fn checked(key: &str, time: &str) -> Result<(), String> {
        match key {
            "time_maximum" | "settle" => read::<WindowSettings>(json!({ key: time }))?.validate(),
            // These are checked as they are read.
            "after" => read::<HedgeConfig>(json!({ "policy": "fixed", key: time })).map(drop),
            "rest of a copy" => {
                read::<WindowsConfig>(json!({ "policy": "alternate", "rest": time })).map(drop)
            }
            _ => read::<CoordinationConfig>(json!({ "count": 1, key: time }))?.validate(),
        }
    }

    /// Added to a time these would wrap.
    #[test]
    fn what_would_never_end_is_refused() {
        for key in ["time_maximum", "settle", "after", "rest of a copy", "window", "rest", "message_delay"] {
            assert_eq!(checked(key, "1h"), Ok(()), "{key}");
            let refused = checked(key, "18446744073s").expect_err(key);
            assert!(key.starts_with(refused.split([' ', ':']).next().unwrap_or_default()), "{refused}");
            assert!(refused.ends_with("is 18446744073s; at most 1h"), "{refused}");
        }
    }
}
