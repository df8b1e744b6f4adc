//! The specification's own design, as a measure for ours: std-only Rust, a thread per connection,
//! one request per connection, one write per event, a softmax over 256 logits per sampled token.
//!
//! It leaves out what costs nothing on the hot path: the full validation messages, the health
//! port, and the export of spans. Nothing in it is made slower than the specification asks.
//!
//!     tracer MODEL.safetensors PORT        (listens on 127.0.0.1)
//!
//! Build: rustc --edition 2021 -O -C target-cpu=native tracer.rs
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

const VOCABULARY: usize = 256;
const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_BODY_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 128;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, model, port] = &args[..] else { panic!("usage: tracer MODEL.safetensors PORT") };
    let weight = Arc::new(read_weight(model));
    let port: u16 = port.parse().expect("PORT is a number");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    for stream in listener.incoming().flatten() {
        let weight = weight.clone();
        thread::spawn(move || handle(stream, &weight));
    }
}

/// The data buffer behind the safetensors header: 256 rows of 256 little-endian f32.
fn read_weight(path: &str) -> Vec<f32> {
    let file = fs::read(path).expect("the model can be read");
    let header = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    file[8 + header..]
        .chunks(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

// HTTP

struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The error is the status to answer; 0 when nobody is left to answer.
fn read_request<R: BufRead>(reader: &mut R) -> Result<Request, u16> {
    let mut line = String::new();
    if reader.read_line(&mut line).map_err(|_| 0u16)? == 0 {
        return Err(0);
    }
    let mut words = line.trim_end().split(' ');
    let method = words.next().ok_or(400u16)?.to_string();
    let target = words.next().ok_or(400u16)?.to_string();
    let version = words.next().ok_or(400u16)?;
    if version != "HTTP/1.1" && version != "HTTP/1.0" {
        return Err(400);
    }
    let headers = read_headers(reader, line.len())?;
    let mut request = Request { method, target, headers, body: Vec::new() };
    request.body = read_body(reader, &request)?;
    Ok(request)
}

fn read_headers<R: BufRead>(
    reader: &mut R,
    mut total: usize,
) -> Result<Vec<(String, String)>, u16> {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).map_err(|_| 400u16)? == 0 {
            return Err(400);
        }
        total += line.len();
        if total > MAX_HEAD_BYTES {
            return Err(431);
        }
        let field = line.trim_end_matches(['\r', '\n']);
        if field.is_empty() {
            return Ok(headers);
        }
        let (name, value) = field.split_once(':').ok_or(400u16)?;
        headers.push((name.to_string(), value.trim().to_string()));
    }
}

fn read_body<R: BufRead>(reader: &mut R, request: &Request) -> Result<Vec<u8>, u16> {
    let length = match request.header("content-length") {
        Some(digits) => digits.parse::<usize>().map_err(|_| 400u16)?,
        None if request.method == "POST" => return Err(411),
        None => return Ok(Vec::new()),
    };
    if length > MAX_BODY_BYTES {
        return Err(413);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map_err(|_| 400u16)?;
    Ok(body)
}

fn write_response<W: Write>(out: &mut W, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    out.write_all(response.as_bytes())
}

// JSON

enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Arr(#[allow(dead_code)] Vec<Json>),
    Obj(Vec<(String, Json)>),
}

impl Json {
    fn get(&self, key: &str) -> Option<&Json> {
        let Json::Obj(members) = self else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> String {
        if let Some(Json::Str(text)) = self.get(key) {
            return text.clone();
        }
        String::new()
    }

    fn integer(&self, key: &str) -> Option<i64> {
        if let Some(Json::Int(number)) = self.get(key) {
            return Some(*number);
        }
        None
    }
}

fn parse_json(text: &str) -> Result<Json, String> {
    let mut parser = Parser { text, bytes: text.as_bytes(), at: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip_space();
    if parser.at == text.len() {
        return Ok(value);
    }
    Err("trailing bytes".into())
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(format!("{} expected", byte as char));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Result<Json, String> {
        self.skip_space();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too deep".into());
        }
        let value = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Json::Str(self.string()?),
            Some(b't') => self.word("true", Json::Bool(true))?,
            Some(b'f') => self.word("false", Json::Bool(false))?,
            Some(b'n') => self.word("null", Json::Null)?,
            Some(byte) if byte == b'-' || byte.is_ascii_digit() => self.number()?,
            _ => return Err("a value expected".into()),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, String> {
        if !self.text[self.at..].starts_with(word) {
            return Err(format!("{word} expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut members = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Obj(members));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            members.push((name, self.value()?));
            self.skip_space();
            if self.peek() != Some(b',') {
                self.expect(b'}')?;
                return Ok(Json::Obj(members));
            }
            self.at += 1;
        }
    }

    fn array(&mut self) -> Result<Json, String> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Arr(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.peek() != Some(b',') {
                self.expect(b']')?;
                return Ok(Json::Arr(items));
            }
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let start = self.at;
        let mut is_float = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'0'..=b'9' | b'-' | b'+' => {}
                b'.' | b'e' | b'E' => is_float = true,
                _ => break,
            }
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        if is_float {
            return digits.parse().map(Json::Float).map_err(|_| "not a number".into());
        }
        digits.parse().map(Json::Int).map_err(|_| "not a number".into())
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            match self.peek() {
                None => return Err("the text ends in a string".into()),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(byte) if byte < 0x20 => return Err("a control byte in a string".into()),
                Some(_) => out.push_str(self.plain_run()),
            }
        }
    }

    fn plain_run(&mut self) -> &str {
        let start = self.at;
        while self.peek().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn escape(&mut self) -> Result<char, String> {
        self.at += 2;
        Ok(match self.bytes.get(self.at - 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte as char,
            Some(b'u') => self.unicode_escape()?,
            _ => return Err("a bad escape".into()),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, String> {
        let mut code = self.hex4()?;
        if (0xD800..0xDC00).contains(&code) {
            self.expect(b'\\')?;
            self.expect(b'u')?;
            let low = self.hex4()?;
            if !(0xDC00..0xE000).contains(&low) {
                return Err("half a surrogate pair".into());
            }
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        char::from_u32(code).ok_or_else(|| "a lone surrogate".into())
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).ok_or("four hex digits expected")?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| "four hex digits expected".into())
    }
}

fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

// Decoding

struct Pcg32 {
    state: u64,
    increment: u64,
}

impl Pcg32 {
    fn new(seed: u64, sequence: u64) -> Self {
        let mut rng = Pcg32 { state: 0, increment: (sequence << 1) | 1 };
        rng.next_u32();
        rng.state = rng.state.wrapping_add(seed);
        rng.next_u32();
        rng
    }

    fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(6364136223846793005).wrapping_add(self.increment);
        ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
    }

    fn uniform(&mut self) -> f64 {
        let high = (self.next_u32() >> 5) as u64;
        let low = (self.next_u32() >> 6) as u64;
        ((high << 26) + low) as f64 / (1u64 << 53) as f64
    }
}

fn sample(logits: &[f32], temperature: f64, rng: &mut Pcg32) -> u8 {
    if temperature == 0.0 {
        let best =
            (1..VOCABULARY).fold(0, |best, j| if logits[j] > logits[best] { j } else { best });
        return best as u8;
    }
    let most = logits.iter().cloned().fold(f32::NEG_INFINITY, f32::max) as f64;
    let weights: Vec<f64> =
        logits.iter().map(|&z| ((z as f64 - most) / temperature).exp()).collect();
    let total: f64 = weights.iter().sum();
    let u = rng.uniform();
    let mut reached = 0.0;
    for (id, weight) in weights.iter().enumerate() {
        reached += weight / total;
        if reached > u {
            return id as u8;
        }
    }
    255
}

struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    fn push(&mut self, byte: u8) -> String {
        self.pending.push(byte);
        let mut out = String::new();
        loop {
            let error = match std::str::from_utf8(&self.pending) {
                Ok(text) => {
                    out.push_str(text);
                    self.pending.clear();
                    return out;
                }
                Err(error) => error,
            };
            let valid = error.valid_up_to();
            out.push_str(std::str::from_utf8(&self.pending[..valid]).unwrap());
            let Some(length) = error.error_len() else {
                self.pending.drain(..valid);
                return out;
            };
            out.push('\u{FFFD}');
            self.pending.drain(..valid + length);
        }
    }

    fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        text
    }
}

fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

// The endpoint

struct Completion {
    id: String,
    created: u64,
    model: String,
    prompt: String,
    max_tokens: usize,
    temperature: f64,
    seed: u64,
    stream: bool,
}

impl Completion {
    fn from_json(body: &Json) -> Self {
        Completion {
            id: format!("cmpl-{:016x}{:016x}", random_u64(), random_u64()),
            created: SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(),
            model: body.text("model"),
            prompt: body.text("prompt"),
            max_tokens: body.integer("max_tokens").unwrap_or(16) as usize,
            temperature: match body.get("temperature") {
                Some(Json::Float(number)) => *number,
                Some(Json::Int(number)) => *number as f64,
                _ => 1.0,
            },
            seed: body.integer("seed").map_or_else(random_u64, |seed| seed as u64),
            stream: matches!(body.get("stream"), Some(Json::Bool(true))),
        }
    }
}

/// The ids that a request generates, one at a time: a copied row of logits each.
struct Tokens<'a> {
    weight: &'a [f32],
    previous: u8,
    temperature: f64,
    rng: Pcg32,
}

impl<'a> Tokens<'a> {
    fn new(wanted: &Completion, weight: &'a [f32]) -> Self {
        Tokens {
            weight,
            previous: *wanted.prompt.as_bytes().last().unwrap_or(&0),
            temperature: wanted.temperature,
            rng: Pcg32::new(wanted.seed, 54),
        }
    }

    fn next_id(&mut self) -> u8 {
        let start = self.previous as usize * VOCABULARY;
        let row = self.weight[start..start + VOCABULARY].to_vec();
        self.previous = sample(&row, self.temperature, &mut self.rng);
        self.previous
    }
}

fn handle(stream: TcpStream, weight: &[f32]) {
    let _ = stream.set_nodelay(true);
    let mut out = stream.try_clone().unwrap();
    let _ = match read_request(&mut BufReader::new(stream)) {
        Ok(request) => answer(&mut out, &request, weight),
        Err(0) => Ok(()),
        Err(status) => write_response(&mut out, &format!("{status} E"), ""),
    };
}

fn answer(out: &mut TcpStream, request: &Request, weight: &[f32]) -> io::Result<()> {
    let path = request.target.split('?').next().unwrap();
    if path == "/healthz" {
        return write_response(out, "200 OK", "{\"ok\":true}");
    }
    if path != "/v1/completions" || request.method != "POST" {
        return write_response(out, "404 Not Found", "");
    }
    let text = String::from_utf8_lossy(&request.body);
    let Ok(body) = parse_json(&text) else { return write_response(out, "400 Bad Request", "") };
    let wanted = Completion::from_json(&body);
    if wanted.stream {
        return write_stream(out, &wanted, Tokens::new(&wanted, weight));
    }
    write_plain(out, &wanted, Tokens::new(&wanted, weight))
}

fn write_stream(out: &mut TcpStream, wanted: &Completion, mut tokens: Tokens) -> io::Result<()> {
    out.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
          Connection: close\r\n\r\n",
    )?;
    let mut utf8 = Utf8Stream { pending: vec![] };
    for count in 1..=wanted.max_tokens {
        let mut piece = utf8.push(tokens.next_id());
        let mut reason = "null";
        if count == wanted.max_tokens {
            piece.push_str(&utf8.finish());
            reason = "\"length\"";
        }
        let event = format!(
            "data: {{\"id\":\"{}\",\"object\":\"text_completion\",\"created\":{},\"model\":{},\
             \"choices\":[{{\"index\":0,\"text\":{},\"finish_reason\":{reason}}}]}}\n\n",
            wanted.id,
            wanted.created,
            json_string(&wanted.model),
            json_string(&piece)
        );
        out.write_all(event.as_bytes())?;
    }
    out.write_all(b"data: [DONE]\n\n")
}

fn write_plain(out: &mut TcpStream, wanted: &Completion, mut tokens: Tokens) -> io::Result<()> {
    let mut utf8 = Utf8Stream { pending: vec![] };
    let mut text = String::new();
    for _ in 0..wanted.max_tokens {
        text.push_str(&utf8.push(tokens.next_id()));
    }
    text.push_str(&utf8.finish());
    let (prompt, count) = (wanted.prompt.len(), wanted.max_tokens);
    let body = format!(
        "{{\"id\":\"{}\",\"object\":\"text_completion\",\"created\":{},\"model\":{},\"choices\":\
         [{{\"index\":0,\"text\":{},\"finish_reason\":\"length\"}}],\"usage\":{{\
         \"prompt_tokens\":{prompt},\"completion_tokens\":{count},\"total_tokens\":{}}}}}",
        wanted.id,
        wanted.created,
        json_string(&wanted.model),
        json_string(&text),
        prompt + count
    );
    write_response(out, "200 OK", &body)
}
