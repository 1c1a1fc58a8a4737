//! TPC-C's work in all its forms on every engine, with the conditions after it: `make test-engines`.

use crate::engine::wanted;
use crate::engines::{Loaded, PASSWORD};
use crate::fixture::Ended;
use crate::home::Home;

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_form_of_tpcc_runs_on_every_engine_and_its_conditions_hold() {
    let mut failed = Vec::new();
    for name in wanted() {
        let home = Home::new();
        let engine = Loaded::start(name);
        let way = engine.socket();
        let tpcc = |step: &str, rest: &[&str]| {
            let mut args = vec!["bench", "tpcc", step];
            args.extend(way.iter().map(String::as_str));
            args.extend(["--no-defaults", "--user=bench", "--schema=tpcc", "--quiet"]);
            args.extend(rest);
            if step != "check" {
                args.push("--allow-load");
            }
            Ended::from(home.command(&args).env("MYSQL_PWD", PASSWORD).output().unwrap())
        };
        let must = |what: &str, ended: Ended, failed: &mut Vec<String>| {
            println!("{name} {what}: {}", ended.status);
            if ended.status != 0 {
                failed.push(format!("{name} {what}: {ended:?}"));
            }
        };
        must("prepare", tpcc("prepare", &["--statements=procedure"]), &mut failed);
        let load = ["--connections=4", "--time=2s", "--warmup=0s", "--no-observe"];
        for form in [
            &["--statements=single"][..],
            &["--statements=batched"],
            &["--statements=procedure"],
            &["--text"],
            &["--text", "--statements=batched"],
            &["--delivery-connections=1"],
        ] {
            must(&form.join(" "), tpcc("run", &[&load, form].concat()), &mut failed);
        }
        let waits = ["--wait", "--terminals=30", "--time=4s", "--warmup=0s", "--no-observe"];
        must("--wait", tpcc("run", &waits), &mut failed);
        must("check", tpcc("check", &[]), &mut failed);
        for driver in ["--as=sysbench-tpcc", "--as=go-tpc"] {
            must(driver, tpcc("run", &[&load, &[driver][..]].concat()), &mut failed);
        }
        must("prepare --as=hammerdb", tpcc("prepare", &["--as=hammerdb"]), &mut failed);
        must("--as=hammerdb", tpcc("run", &[&load, &["--as=hammerdb"][..]].concat()), &mut failed);
        let after = tpcc("check", &[]);
        let text = format!("{}{}", after.stdout, after.stderr);
        if after.status != 1 || !text.contains("s_ytd") || text.contains("condition 1:") {
            failed.push(format!("{name}, check after other drivers: {after:?}"));
        }
        must("cleanup", tpcc("cleanup", &[]), &mut failed);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
