//! A folder's files over http on this machine: browsers load modules, and offer WebGPU, in no other way.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use tiny_http::{Header, Request, Response};

/// A server on a port of the system's choice; it stops when it is dropped.
pub struct Server {
    server: Arc<tiny_http::Server>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a folder.
    pub fn start(folder: &Path) -> Result<Server> {
        let server = tiny_http::Server::http("127.0.0.1:0")
            .map_err(|error| anyhow!("cannot serve the page: {error}"))?;
        let port = server.server_addr().to_ip().context("the server has no port")?.port();
        let server = Arc::new(server);
        let (serving, folder) = (server.clone(), folder.to_path_buf());
        let thread = std::thread::spawn(move || {
            for request in serving.incoming_requests() {
                // A browser that no longer listens is no fault.
                let _ = answer(&folder, request);
            }
        });
        Ok(Server { server, port, thread: Some(thread) })
    }

    /// Returns the server's address.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Serves for as long as the process lives.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(folder: &Path, request: Request) -> std::io::Result<()> {
    let Some((kind, bytes)) = file(folder, request.url()) else {
        return request.respond(Response::from_string("not found").with_status_code(404));
    };
    let response = Response::from_data(bytes);
    match Header::from_bytes("Content-Type", kind) {
        Ok(header) => request.respond(response.with_header(header)),
        Err(()) => request.respond(response),
    }
}

/// Returns a file's type and bytes, if the folder has the file that a link asks for.
fn file(folder: &Path, url: &str) -> Option<(&'static str, Vec<u8>)> {
    let path = place(url)?;
    let kind = match path.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript",
        "wasm" => "application/wasm",
        _ => return None,
    };
    Some((kind, fs::read(folder.join(path)).ok()?))
}

/// Returns the path below the folder that a link names; `None` for a link that leads out of it.
fn place(url: &str) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.trim_start_matches('/');
    let path = Path::new(if path.is_empty() { "index.html" } else { path });
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_in_the_folder() {
        assert_eq!(place("/?steps=100"), Some(PathBuf::from("index.html")));
        assert_eq!(place("/abide_web.js"), Some(PathBuf::from("abide_web.js")));
        for outside in ["/../Cargo.toml", "/a/../../b", "/./../x"] {
            assert_eq!(place(outside), None, "{outside}");
        }
    }
}
