//! Where an export is: the URIs of network block devices ("The NBD Uniform Resource
//! Indicator (URI) format", doc/uri.md of NetworkBlockDevice/nbd).

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// Where servers listen unless they say otherwise.
const PORT: u16 = 10809;

/// Which server, and which of its exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uri {
    pub server: Server,
    /// Its name; empty for the one that the server gives whoever names none.
    pub export: String,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// A host, or an address of one, and a port, as `ToSocketAddrs` takes them.
    Tcp(String, u16),
    /// A socket of this machine.
    Unix(PathBuf),
}

impl Uri {
    /// Reads `nbd://HOST[:PORT][/EXPORT]` and `nbd+unix:///[EXPORT]?socket=PATH`.
    pub fn read(text: &str) -> Result<Uri, String> {
        let form = "write nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH";
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("not the URI of an export; {form}"));
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, export) = place.split_once('/').unwrap_or((place, ""));
        let server = match scheme {
            "nbd" if !query.is_empty() => return Err(format!("nothing may follow the export; {form}")),
            "nbd" => tcp(authority).map_err(|wrong| format!("{wrong}; {form}"))?,
            "nbd+unix" if !authority.is_empty() => {
                return Err(format!("a host before the export of a socket; {form}"));
            }
            "nbd+unix" => {
                let path = query.strip_prefix("socket=").filter(|path| !path.is_empty());
                Server::Unix(decoded(path.ok_or_else(|| format!("no socket; {form}"))?)?.into())
            }
            "nbds" | "nbds+unix" => return Err("TLS is not supported".into()),
            _ => return Err(format!("{scheme}: no scheme of network block devices; {form}")),
        };
        Ok(Uri { server, export: decoded(export)? })
    }
}

fn tcp(authority: &str) -> Result<Server, String> {
    // The colons of an address in brackets are its own.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().map_err(|_| format!("{port:?} is no port, 0 to 65535"))?)
        }
        _ => (authority, PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() { Err("no host".into()) } else { Ok(Server::Tcp(host.to_owned(), port)) }
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| format!("{text}: not UTF-8"))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_say_where_an_export_is() {
        let tcp = |host: &str, port, export: &str| Uri {
            server: Server::Tcp(host.into(), port),
            export: export.into(),
        };
        assert_eq!(Uri::read("nbd://disks"), Ok(tcp("disks", 10809, "")));
        assert_eq!(Uri::read("nbd://127.0.0.1:99/a%20b/c"), Ok(tcp("127.0.0.1", 99, "a b/c")));
        assert_eq!(Uri::read("nbd://[::1]:99/"), Ok(tcp("::1", 99, "")));
        assert_eq!(Uri::read("nbd://[::1]/x"), Ok(tcp("::1", 10809, "x")));
        let unix = Uri { server: Server::Unix("/tmp/a b".into()), export: "flashkeel".into() };
        assert_eq!(Uri::read("nbd+unix:///flashkeel?socket=/tmp/a%20b"), Ok(unix));
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for (text, words) in [
            ("disk", "not the URI of an export"),
            ("nbd:///disk", "no host"),
            ("nbd://:10809/disk", "no host"),
            ("nbd://host:70000/", "\"70000\" is no port"),
            ("nbd://host:/", "\"\" is no port"),
            ("nbd://host/disk?socket=x", "nothing may follow"),
            ("nbd+unix:///disk", "no socket"),
            ("nbd+unix://host/disk?socket=x", "a host before"),
            ("nbds://host/disk", "TLS"),
            ("http://host/disk", "http: no scheme"),
            ("nbd://host/%ff", "not UTF-8"),
        ] {
            let why = Uri::read(text).expect_err(text);
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
