//! A headless Chromium, driven by the DevTools protocol:
//! <https://chromedevtools.github.io/devtools-protocol/>.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine as _;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// WebGPU without a GPU: Chromium's own adapter on the CPU. There is no sandbox, because as root there can be
/// none, and the pages are our own.
const FLAGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--remote-debugging-port=0",
    "--window-size=800,1000",
];

/// The longest that Chromium may take to start and to answer.
const ANSWER: Duration = Duration::from_secs(60);

/// Interval at which a page is asked for its state.
const LOOK: Duration = Duration::from_millis(200);

/// A page in a browser of its own; dropping the page ends the browser.
pub struct Page {
    socket: WebSocket<TcpStream>,
    session: String,
    last: u64,
    /// The page's writings to its console, to explain what went wrong.
    console: Vec<String>,
    _browser: Browser,
}

/// A process and its profile; both go when this is dropped.
struct Browser {
    process: Child,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Page {
    /// Starts a browser with an empty page.
    pub fn open(program: &Path) -> Result<Page> {
        let profile = tempfile::tempdir().context("cannot make a folder for the browser's profile")?;
        let mut command = Command::new(program);
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let errors = process.stderr.take().context("the browser has no output")?;
        let browser = Browser { process, _profile: profile };
        let address = address(errors)?;
        let host =
            address.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).context("no host")?;
        let stream =
            TcpStream::connect(host).with_context(|| format!("cannot reach the browser at {host}"))?;
        stream.set_read_timeout(Some(ANSWER)).context("cannot bound the wait for the browser")?;
        let (socket, _) =
            tungstenite::client(&address, stream).map_err(|error| anyhow!("{address}: {error}"))?;
        let mut page =
            Page { socket, session: String::new(), last: 0, console: Vec::new(), _browser: browser };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = page.call("Target.attachToTarget", attach)?;
        page.session = attached["sessionId"].as_str().context("the browser attached to no page")?.to_owned();
        page.call("Page.enable", json!({}))?;
        page.call("Runtime.enable", json!({}))?;
        Ok(page)
    }

    /// Loads a page.
    pub fn load(&mut self, url: &str) -> Result<()> {
        // The address is the new page's own only once the browser has answered.
        self.call("Page.navigate", json!({ "url": url })).map(drop)
    }

    /// Waits until the body's `data-state` is `wanted`; returns an error where the page has failed.
    pub fn wait_for(&mut self, wanted: &str, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut state = String::new();
        while begun.elapsed() < limit {
            state = self.value("document.body?.dataset.state ?? ''")?;
            match state.as_str() {
                state if state == wanted => return Ok(()),
                "failed" => {
                    let message = self.text("message")?;
                    bail!("the page says: {message}{}", self.printed());
                }
                _ => std::thread::sleep(LOOK),
            }
        }
        let steps = self.text("steps")?;
        bail!(
            "after {} s the page is `{state}` at step {steps}, not {wanted}{}",
            limit.as_secs(),
            self.printed()
        );
    }

    /// Presses a button.
    pub fn press(&mut self, id: &str) -> Result<()> {
        self.value(&format!("document.getElementById('{id}').click()")).map(drop)
    }

    /// Returns an element's text.
    pub fn text(&mut self, id: &str) -> Result<String> {
        self.value(&format!("document.getElementById('{id}').textContent"))
    }

    /// Returns the text that an expression gives in the page.
    pub fn value(&mut self, expression: &str) -> Result<String> {
        let answer =
            self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }))?;
        if let Some(fault) = answer["exceptionDetails"]["text"].as_str() {
            bail!("`{expression}` in the page: {fault}");
        }
        Ok(answer["result"]["value"].as_str().unwrap_or_default().to_owned())
    }

    /// Takes a picture of the page, as a PNG file's bytes.
    pub fn screenshot(&mut self) -> Result<Vec<u8>> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }))?;
        let data = answer["data"].as_str().context("the browser made no picture")?;
        base64::engine::general_purpose::STANDARD.decode(data).context("the browser's picture is damaged")
    }

    /// Calls a method and waits for its answer; the page's writings meanwhile are kept.
    fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last += 1;
        let mut request = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        self.socket
            .send(Message::text(request.to_string()))
            .with_context(|| format!("cannot ask for {method}"))?;
        loop {
            let message =
                self.socket.read().with_context(|| format!("no answer to {method}{}", self.printed()))?;
            let Message::Text(text) = message else { continue };
            let answer: Value = serde_json::from_str(&text).context("the browser's answer is no JSON")?;
            if answer["id"] == json!(self.last) {
                return match answer.get("error") {
                    Some(error) => Err(anyhow!("{method}: {error}")),
                    None => Ok(answer["result"].clone()),
                };
            }
            self.console.extend(written(&answer));
        }
    }

    fn printed(&self) -> String {
        let lines = self.console.iter().map(|line| format!("\n  console: {line}"));
        lines.collect()
    }
}

/// Returns an event's text for the page's console, if it has one.
fn written(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Runtime.consoleAPICalled" => {
            let words =
                parameters["args"].as_array()?.iter().map(|argument| match argument["value"].as_str() {
                    Some(text) => text.to_owned(),
                    None => argument["description"].as_str().unwrap_or_default().to_owned(),
                });
            Some(words.collect::<Vec<_>>().join(" "))
        }
        "Runtime.exceptionThrown" => {
            let details = &parameters["exceptionDetails"];
            let text = details["exception"]["description"].as_str().or(details["text"].as_str())?;
            Some(text.to_owned())
        }
        _ => None,
    }
}

/// Returns the address at which the browser can be driven, which the browser says among its first words.
fn address(errors: impl std::io::Read + Send + 'static) -> Result<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    // Read for as long as the browser lives, because a browser whose words nobody reads stops in the middle
    // of one.
    std::thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let begun = Instant::now();
    let mut said = String::new();
    while let Ok(line) = receiver.recv_timeout(ANSWER.saturating_sub(begun.elapsed())) {
        if let Some((_, address)) = line.split_once("DevTools listening on ") {
            return Ok(address.trim().to_owned());
        }
        said = format!("{said}\n  {line}");
    }
    bail!("the browser did not start:{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_writes_is_read() {
        let event = json!({
            "method": "Runtime.consoleAPICalled",
            "params": { "args": [{ "type": "string", "value": "it" }, { "type": "object", "description": "Error: broke" }] }
        });
        assert_eq!(written(&event).as_deref(), Some("it Error: broke"));
        let event = json!({
            "method": "Runtime.exceptionThrown",
            "params": { "exceptionDetails": { "text": "Uncaught", "exception": { "description": "RangeError: x" } } }
        });
        assert_eq!(written(&event).as_deref(), Some("RangeError: x"));
        assert_eq!(written(&json!({ "method": "Page.loadEventFired", "params": {} })), None);
    }

    #[test]
    fn the_address_is_found_among_other_words() {
        let words = "one\nDevTools listening on ws://127.0.0.1:9/devtools/browser/x\ntwo\n";
        assert_eq!(address(words.as_bytes()).unwrap(), "ws://127.0.0.1:9/devtools/browser/x");
        let error = address("no display\n".as_bytes()).unwrap_err().to_string();
        assert!(error.contains("no display"), "{error}");
    }
}
