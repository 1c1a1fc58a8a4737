//! Measures the cost of an audit's facts on a server: `cargo run --release -p mydyno-samples --example audit_cost -- SOCKET USER`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example speaks to its user")]

use std::time::Instant;

use mydyno_facts::{Options, Source, collect_with};
use mydyno_samples::Sampler;
use mydyno_wire::{Client, ConnectOptions, Endpoint};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (socket, user) = (arguments.next().unwrap(), arguments.next().unwrap_or_else(|| "root".to_owned()));
    let mut client = Client::connect(&ConnectOptions::new(Endpoint::Unix(socket.into()), user)).unwrap();
    let pid = client.peer_pid();
    let source = Source::live();
    let mut sampler = Sampler::new(&source, pid, &[]);
    for options in [Options::default(), Options::audit(), Options::audit()] {
        let before = sampler.sample(0.0);
        let started = Instant::now();
        let facts = collect_with(&source, Some(&mut client), pid, &options);
        let took = started.elapsed();
        let after = sampler.sample(1.0);
        let used = after.values["server.cpu.total_s"] - before.values["server.cpu.total_s"];
        println!(
            "{:?}: {} facts in {:.0} ms (window {:?}), server CPU {:.0} ms",
            options.depth,
            facts.facts.len(),
            took.as_secs_f64() * 1e3,
            options.window,
            used * 1e3
        );
        if std::env::var_os("SHOW").is_some() && options.window.is_some() {
            for (id, fact) in facts.facts.iter().filter(|(id, _)| !id.starts_with("host.")) {
                println!("{id} = {} {} {:?}", fact.value, fact.unit, fact.status);
            }
            return;
        }
    }
}
