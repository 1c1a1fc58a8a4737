//! Samples of a real server.

use mydyno_facts::Source;
use mydyno_samples::Sampler;

use crate::support::{Server, python};

#[test]
fn samples_of_a_server_are_what_python_reads_and_end_with_it() {
    let mut server = Server::start(&[]);
    let source = Source::live();
    let mut client = server.connect();
    let disks = vec!["definitely-no-disk".to_owned()];
    let mut sampler = Sampler::new(&source, Some(server.pid()), &disks);
    assert!(sampler.gaps().iter().any(|gap| gap.contains("definitely-no-disk")));
    client.query("SELECT COUNT(*) FROM information_schema.COLUMNS").unwrap();

    // The independent reading is valid only if the samples before and after it are equal.
    let expected = loop {
        let before = sampler.sample(0.0);
        let said = python(&format!(
            "import os;t=os.sysconf('SC_CLK_TCK');f=open('/proc/{pid}/stat').read().rsplit(')',1)[1].split();\
             io=dict(l.split(': ') for l in open('/proc/{pid}/io').read().splitlines());\
             rss=int(open('/proc/{pid}/statm').read().split()[1])*os.sysconf('SC_PAGE_SIZE');\
             print(int(f[11])/t,int(f[12])/t,f[17],f[7],f[9],io['read_bytes'],io['write_bytes'],rss)",
            pid = server.pid()
        ));
        let after = sampler.sample(1.0);
        let names = [
            "server.cpu.user_s",
            "server.cpu.system_s",
            "server.threads_now",
            "server.minor_faults",
            "server.major_faults",
            "server.io.read_bytes",
            "server.io.write_bytes",
            "server.rss_bytes",
        ];
        if names.iter().all(|n| before.values.get(*n) == after.values.get(*n)) {
            break names
                .iter()
                .zip(said.split(' '))
                .map(|(n, text)| (*n, before.values[*n], text.parse::<f64>().unwrap()))
                .collect::<Vec<_>>();
        }
    };
    for (name, sampled, said) in expected {
        assert!((sampled - said).abs() < 1e-9, "{name}: {sampled} is not {said}");
    }
    let total = sampler.sample(2.0);
    let ticks = total.values["server.cpu.user_s"] + total.values["server.cpu.system_s"];
    assert!((total.values["server.cpu.total_s"] - ticks).abs() <= 0.03, "the two CPU clocks disagree");

    assert!(sampler.server_lives());
    server.kill();
    assert!(!sampler.server_lives());
    let gone = sampler.sample(3.0);
    assert!(!gone.values.keys().any(|name| name.starts_with("server.")), "{:?}", gone.values);
    assert!(gone.values.contains_key("host.cpu.user_s"));
}
