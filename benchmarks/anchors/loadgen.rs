//! A load generator for completions, plain and streamed, against 127.0.0.1.
//!
//! Every connection is a thread that blocks: the kernel wakes it, and no loop of ours stands
//! between an answer's arrival and its time stamp. Times count from before the connection is
//! opened, unless said otherwise.
//!
//!     loadgen turns PORT CONNECTIONS SECONDS BODY [keep]
//!         Each connection posts BODY, reads the answer to its end and starts again. Prints one
//!         JSON object. `keep` asks for kept connections (answers must carry Content-Length).
//!     loadgen burst PORT STREAMS BODY
//!         Opens all connections, then posts on all of them at once; `{stream}` in BODY becomes the
//!         stream's number. Times count from that moment. Prints one JSON object per stream.
//!     loadgen probe PORT SECONDS PERIOD_MS BODY
//!         Sends GET /healthz and POST BODY by turns, one every PERIOD_MS, each on a connection
//!         and a thread of its own: a late answer holds up no other request. A latency counts from
//!         when the request was due, so that a late start is not hidden either.
//!         Prints one JSON object with every latency.
//!
//! Build: rustc --edition 2021 -O -C target-cpu=native loadgen.rs
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

const READ_BYTES: usize = 256 * 1024;
const BURST_READ_BYTES: usize = 32 * 1024; // thousands of threads read at once
const STACK_BYTES: usize = 128 * 1024;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const BURST_TIMEOUT: Duration = Duration::from_secs(60);
const ERROR_PAUSE: Duration = Duration::from_millis(1);
const MOST_SECONDS: f64 = 600.0;
const MOST_CONNECTIONS: usize = 10_000;
const USAGE: &str = "usage: loadgen turns|burst|probe PORT ... (see the head of loadgen.rs)";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["turns", port, connections, seconds, body] => {
            turns(number(port), count(connections), seconds_of(seconds), body, false)
        }
        ["turns", port, connections, seconds, body, "keep"] => {
            turns(number(port), count(connections), seconds_of(seconds), body, true)
        }
        ["burst", port, streams, body] => burst(number(port), count(streams), body),
        ["probe", port, seconds, period, body] => {
            probe(number(port), seconds_of(seconds), number(period), body)
        }
        _ => fail(USAGE),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| fail(&format!("{text:?} is not a number; {USAGE}")))
}

fn count(text: &str) -> usize {
    match number(text) {
        count @ 1..=MOST_CONNECTIONS => count,
        _ => fail(&format!("{text} is not a count from 1 to {MOST_CONNECTIONS}")),
    }
}

fn seconds_of(text: &str) -> f64 {
    let seconds: f64 = number(text);
    if seconds > 0.0 && seconds <= MOST_SECONDS {
        return seconds;
    }
    fail(&format!("{text} is not a time from 0 to {MOST_SECONDS} seconds"))
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2)
}

fn post(body: &str, keep: bool) -> String {
    let connection = if keep { "keep-alive" } else { "close" };
    let length = body.len();
    format!("POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: {connection}\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn connect(port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(timeout))?;
    Ok(socket)
}

fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}

// turns

/// What one thread of `turns`, or all of them, have seen.
#[derive(Default)]
struct Tally {
    requests: u64,
    events: u64,
    bytes: u64,
    errors: u64,
    first_byte: Vec<u64>,
    total: Vec<u64>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.requests += other.requests;
        self.events += other.events;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.first_byte.extend(other.first_byte);
        self.total.extend(other.total);
    }

    fn print(mut self, seconds: f64) {
        self.first_byte.sort_unstable();
        self.total.sort_unstable();
        println!(
            "{{\"requests_s\":{:.1},\"events_s\":{:.1},\"mb_s\":{:.2},\"first_byte_p50_us\":{},\"first_byte_p99_us\":{},\"total_p50_us\":{},\"total_p99_us\":{},\"requests\":{},\"events\":{},\"seconds\":{seconds:.4},\"errors\":{}}}",
            self.requests as f64 / seconds,
            self.events as f64 / seconds,
            self.bytes as f64 / seconds / 1e6,
            percentile(&self.first_byte, 0.5),
            percentile(&self.first_byte, 0.99),
            percentile(&self.total, 0.5),
            percentile(&self.total, 0.99),
            self.requests,
            self.events,
            self.errors,
        );
    }
}

fn percentile(sorted: &[u64], q: f64) -> u64 {
    if sorted.is_empty() {
        return 0;
    }
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

fn turns(port: u16, connections: usize, seconds: f64, body: &str, keep: bool) {
    let request = Arc::new(post(body, keep));
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let request = request.clone();
            thread::spawn(move || take_turns(port, &request, keep, end))
        })
        .collect();
    let mut all = Tally::default();
    for thread in threads {
        all.add(thread.join().unwrap());
    }
    all.print(start.elapsed().as_secs_f64());
}

fn take_turns(port: u16, request: &str, keep: bool, end: Instant) -> Tally {
    let mut tally = Tally::default();
    let mut buffer = vec![0u8; READ_BYTES];
    let mut kept: Option<TcpStream> = None;
    while Instant::now() < end {
        let start = Instant::now();
        match one_turn(port, request, keep, &mut buffer, &mut kept, start, &mut tally) {
            Ok(()) => {
                tally.requests += 1;
                tally.total.push(micros(start));
            }
            Err(_) => {
                tally.errors += 1;
                thread::sleep(ERROR_PAUSE); // nobody listens: do not spin
            }
        }
    }
    tally
}

fn one_turn(
    port: u16,
    request: &str,
    keep: bool,
    buffer: &mut [u8],
    kept: &mut Option<TcpStream>,
    start: Instant,
    tally: &mut Tally,
) -> io::Result<()> {
    let mut socket = match kept.take() {
        Some(socket) => socket,
        None => connect(port, ANSWER_TIMEOUT)?,
    };
    socket.write_all(request.as_bytes())?;
    let (mut received, mut wanted, mut last) = (0, usize::MAX, 0u8);
    while received < wanted {
        let count = socket.read(buffer)?;
        if count == 0 {
            break;
        }
        let data = &buffer[..count];
        if received == 0 {
            tally.first_byte.push(micros(start));
            if !data.starts_with(b"HTTP/1.1 200") {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if keep {
                wanted = answer_length(data)?;
            }
        }
        tally.events += count_blank_lines(data, &mut last);
        tally.bytes += count as u64;
        received += count;
    }
    if received == 0 || (keep && received < wanted) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if keep {
        *kept = Some(socket);
    }
    Ok(())
}

/// An event ends with a blank line. The head's CRLF CRLF is none: its LFs do not touch.
fn count_blank_lines(data: &[u8], last: &mut u8) -> u64 {
    let mut count = 0;
    for &byte in data {
        if byte == b'\n' && *last == b'\n' {
            count += 1;
        }
        *last = byte;
    }
    count
}

/// The bytes of an answer, head and body, as its Content-Length says.
fn answer_length(data: &[u8]) -> io::Result<usize> {
    let text = String::from_utf8_lossy(data).to_ascii_lowercase();
    let head = text.find("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)? + 4;
    let field = text.find("content-length: ").ok_or(io::ErrorKind::InvalidData)? + 16;
    let digits = text[field..].split('\r').next().unwrap_or("");
    let body: usize = digits.parse().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(head + body)
}

// burst

fn burst(port: u16, streams: usize, body: &str) {
    let ready = Arc::new(Barrier::new(streams));
    let threads: Vec<_> = (0..streams)
        .map(|stream| {
            let (ready, request) =
                (ready.clone(), post(&body.replace("{stream}", &stream.to_string()), false));
            let work = move || one_stream(port, stream, &request, &ready);
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(work)
                .unwrap_or_else(|error| fail(&error.to_string()))
        })
        .collect();
    for thread in threads {
        println!("{}", thread.join().unwrap());
    }
}

fn one_stream(port: u16, stream: usize, request: &str, ready: &Barrier) -> String {
    let socket = connect(port, BURST_TIMEOUT);
    ready.wait();
    let start = Instant::now();
    match socket.and_then(|socket| read_stream(socket, request, start)) {
        Ok((answer, first)) => describe(stream, &answer, first, micros(start)),
        Err(error) => {
            format!("{{\"stream\":{stream},\"status\":0,\"error\":\"{}\"}}", error.kind())
        }
    }
}

fn read_stream(mut socket: TcpStream, request: &str, start: Instant) -> io::Result<(Vec<u8>, u64)> {
    socket.write_all(request.as_bytes())?;
    let (mut answer, mut buffer, mut first) = (Vec::new(), vec![0u8; BURST_READ_BYTES], 0);
    loop {
        let count = socket.read(&mut buffer)?;
        if count == 0 {
            return Ok((answer, first));
        }
        if answer.is_empty() {
            first = micros(start);
        }
        answer.extend_from_slice(&buffer[..count]);
    }
}

fn describe(stream: usize, answer: &[u8], first: u64, total: u64) -> String {
    let answer = String::from_utf8_lossy(answer);
    let status = answer.get(9..12).unwrap_or("0");
    let events = answer.matches("\n\n").count();
    let done = answer.ends_with("data: [DONE]\n\n");
    let text: String = answer.split("data: ").skip(1).map(text_of).collect();
    format!("{{\"stream\":{stream},\"status\":{status},\"first_us\":{first},\"total_us\":{total},\"events\":{events},\"done\":{done},\"text\":\"{text}\"}}")
}

/// The text of an event as it was written: still escaped, without its quotes.
fn text_of(event: &str) -> &str {
    let Some((_, rest)) = event.split_once("\"text\":\"") else { return "" };
    let mut escaped = false;
    for (index, character) in rest.char_indices() {
        match character {
            '"' if !escaped => return &rest[..index],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    ""
}

// probe

fn probe(port: u16, seconds: f64, period_ms: u64, body: &str) {
    let health = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let requests = [Arc::new(health.to_string()), Arc::new(post(body, false))];
    let count = (seconds * 1000.0 / period_ms as f64) as usize;
    let mut due = Instant::now();
    let mut probes = Vec::new();
    for turn in 0..count.min(MOST_CONNECTIONS) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let request = requests[turn % 2].clone();
        let work = move || ask(port, &request).map(|()| micros(due));
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
        probes.push(thread.unwrap_or_else(|error| fail(&error.to_string())));
        due += Duration::from_millis(period_ms);
    }
    let mut latencies = [Vec::new(), Vec::new()];
    let mut errors = 0;
    for (turn, thread) in probes.into_iter().enumerate() {
        match thread.join().unwrap() {
            Ok(latency) => latencies[turn % 2].push(latency),
            Err(_) => errors += 1,
        }
    }
    println!(
        "{{\"healthz_us\":{:?},\"plain_us\":{:?},\"errors\":{errors}}}",
        latencies[0], latencies[1]
    );
}

fn ask(port: u16, request: &str) -> io::Result<()> {
    let mut socket = connect(port, ANSWER_TIMEOUT)?;
    socket.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    if answer.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    Err(io::ErrorKind::InvalidData.into())
}
