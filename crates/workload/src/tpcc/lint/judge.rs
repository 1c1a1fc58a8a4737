//! Compares what the tables show with the specification and with the profiles of public drivers.

use std::collections::BTreeMap;

use mydyno_model::tpcc_lint::{LintRow, LintState};

use super::questions::Answers;
use super::skew::Keys;
use crate::tpcc::profile::{PROFILES, Profile, Skew};
use crate::tpcc::{CUSTOMERS, DISTRICTS, ITEMS, ORDERS};

/// Order lines from which the rule for low stock shows: one line in ten leaves less than ten pieces without it.
const LINES_FOR_STOCK_RULE: f64 = 1_000.0;

/// Share of the lines that may have another amount by chance or by single faults: the others then tell the driver's rule.
const FEW_LINES: f64 = 0.02;

/// A share of the hottest keys belongs to NURand or to equally likely keys when its distance from the expected share is at
/// most this part of the distance between the two. In runs of each profile it was 0.03 (2 warehouses, 10,000 orders).
const NEAR: f64 = 0.2;

/// Standard errors by which a share may lie outside its limits.
const ERRORS_ALLOWED: f64 = 4.0;

/// The conclusions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Rows of the table of warehouses.
    pub warehouses: u64,
    /// New orders since the load.
    pub orders_since_load: u64,
    /// The properties.
    pub rows: Vec<LintRow>,
    /// Names of the profiles that no finding contradicts.
    pub like: Vec<String>,
}

/// Compares the answers with the specification.
pub fn judge(answers: &Answers) -> Judged {
    let mut lint = Lint { answers, rows: Vec::new(), possible: PROFILES.to_vec() };
    let warehouses = lint.number("warehouses", 0).unwrap_or(0.0);
    let orders = lint.number("orders", 0).unwrap_or(0.0);
    lint.population(warehouses);
    lint.lines(warehouses, orders);
    lint.skews();
    lint.stock();
    lint.payments_and_deliveries(warehouses, orders);
    lint.hidden();
    lint.conditions();
    let like =
        if orders > 0.0 { lint.possible.iter().map(|p| p.name.to_owned()).collect() } else { Vec::new() };
    Judged { warehouses: warehouses as u64, orders_since_load: orders as u64, rows: lint.rows, like }
}

struct Lint<'a> {
    answers: &'a Answers,
    rows: Vec<LintRow>,
    possible: Vec<Profile>,
}

/// Quantity and number of order lines, or of what stock counted, by warehouse.
type Sums = BTreeMap<String, (f64, f64)>;

impl Lint<'_> {
    fn cells(&self, id: &str) -> Option<&Vec<Vec<Option<String>>>> {
        self.answers.get(id)?.as_ref().ok()
    }

    fn number(&self, id: &str, column: usize) -> Option<f64> {
        self.cells(id)?.first()?.get(column)?.as_ref()?.parse().ok()
    }

    /// The reason why a statement has no answer.
    fn why(&self, id: &str) -> String {
        match self.answers.get(id) {
            Some(Err(error)) => error.clone(),
            _ => "no row".to_owned(),
        }
    }

    fn row(&mut self, id: &str, about: &str, found: String, specification: &str, state: LintState) {
        self.rows.push(LintRow {
            id: id.to_owned(),
            about: about.to_owned(),
            found,
            specification: specification.to_owned(),
            state,
        });
    }

    fn keep(&mut self, fits: impl Fn(&Profile) -> bool) {
        self.possible.retain(fits);
    }

    fn population(&mut self, warehouses: f64) {
        let expected = [
            ("items", ITEMS as f64),
            ("rows of stock", ITEMS as f64 * warehouses),
            ("districts", DISTRICTS as f64 * warehouses),
            ("customers", (DISTRICTS * CUSTOMERS) as f64 * warehouses),
            ("orders of the load", (DISTRICTS * ORDERS) as f64 * warehouses),
        ];
        let wrong: Vec<String> = expected
            .iter()
            .enumerate()
            .filter_map(|(column, (what, wanted))| {
                let found = self.number("sizes", column)?;
                ((found - wanted).abs() > 0.5).then(|| format!("{found} {what} instead of {wanted}"))
            })
            .collect();
        let (found, state) = match (self.cells("sizes").is_some(), wrong.is_empty()) {
            (false, _) => (self.why("sizes"), LintState::Unknown),
            (true, true) => (format!("as for {warehouses} warehouses"), LintState::AsSpecified),
            (true, false) => (wrong.join(", "), LintState::Differs),
        };
        self.row("population", "rows of the load", found, "clause 1.2.1", state);
        self.share(
            "original-items",
            "items whose data hold ORIGINAL",
            "original",
            (0.1, 0.1),
            "10 % (4.3.3.1)",
        );
        self.share("bad-credit", "customers of bad credit", "credit", (0.1, 0.1), "10 % (4.3.3.1)");
    }

    /// A share of a statement that answers with a number of cases and the number of all.
    fn share(&mut self, id: &str, about: &str, question: &str, limits: (f64, f64), rule: &str) {
        let (Some(cases), Some(all)) = (self.number(question, 0), self.number(question, 1)) else {
            let why = self.why(question);
            return self.row(id, about, why, rule, LintState::Unknown);
        };
        self.share_of(id, about, cases, all, limits, rule);
    }

    fn share_of(&mut self, id: &str, about: &str, cases: f64, all: f64, limits: (f64, f64), rule: &str) {
        if all < 1.0 {
            return self.row(id, about, NO_WORK.to_owned(), rule, LintState::Unknown);
        }
        let share = cases / all;
        let error = |p: f64| ERRORS_ALLOWED * (p * (1.0 - p) / all).max(0.0).sqrt();
        let holds = share >= limits.0 - error(limits.0) && share <= limits.1 + error(limits.1);
        let state = if holds { LintState::AsSpecified } else { LintState::Differs };
        let found =
            if cases < 0.5 { format!("none of {all}") } else { format!("{:.2} % of {all}", share * 100.0) };
        self.row(id, about, found, rule, state);
    }

    fn lines(&mut self, warehouses: f64, orders: f64) {
        let rule = "9.5 to 10.5 on average (5.5.1.5)";
        match self.number("orders", 1) {
            Some(lines) if orders > 0.0 => {
                let mean = lines / orders;
                // Uniform from 5 to 15: a standard deviation of √10.
                let error = ERRORS_ALLOWED * (10.0 / orders).sqrt();
                let holds = (9.5 - error..=10.5 + error).contains(&mean);
                let state = if holds { LintState::AsSpecified } else { LintState::Differs };
                self.row("lines-per-order", "lines of an order", format!("{mean:.2}"), rule, state);
            }
            _ => {
                self.row("lines-per-order", "lines of an order", NO_WORK.to_owned(), rule, LintState::Unknown)
            }
        }
        let (id, about, rule) = (
            "remote-lines",
            "order lines of other warehouses",
            "0.95 to 1.05 % with several warehouses (5.5.1.5)",
        );
        if warehouses < 1.5 {
            self.row(id, about, "there is one warehouse".to_owned(), rule, LintState::Unknown);
        } else {
            self.share(id, about, "lines", (0.0095, 0.0105), rule);
            if let (Some(all), Some(remote)) = (self.number("lines", 1), self.number("lines", 0)) {
                // Without any in 2,000 lines, one of a hundred is out of the question: 0.99^2000 < 10^-8.
                if remote > 0.5 {
                    self.keep(|profile| profile.remote_lines_percent > 0);
                } else if all >= 2_000.0 {
                    self.keep(|profile| profile.remote_lines_percent == 0);
                }
            }
        }
        let (id, about, rule) = ("all-local", "orders with a wrong o_all_local", "none (2.4.2.2)");
        match self.number("all_local", 0) {
            Some(_) if orders < 0.5 => self.row(id, about, NO_WORK.to_owned(), rule, LintState::Unknown),
            Some(wrong) => self.row(id, about, format!("{wrong} of {orders}"), rule, same(wrong < 0.5)),
            None => {
                let why = self.why("all_local");
                self.row(id, about, why, rule, LintState::Unknown);
            }
        }
        self.amounts();
    }

    fn amounts(&mut self) {
        let (id, about, rule) = ("line-amount", "amount of an order line", "quantity × price (2.4.2.2)");
        match (self.number("amounts", 0), self.number("amounts", 1)) {
            (Some(plain), Some(all)) if all > 0.5 => {
                // A customer without discount in a place without taxes gives the same amount by chance.
                let taxed = all - plain;
                let (is_plain, is_taxed) = (taxed < FEW_LINES * all, plain < FEW_LINES * all);
                self.keep(|profile| if profile.taxes_lines { is_taxed } else { is_plain });
                let found = if taxed < 0.5 {
                    "quantity × price".to_owned()
                } else if is_taxed {
                    "with discount and taxes, as in the specification's sample program".to_owned()
                } else {
                    format!(
                        "quantity × price in {plain} of {all} lines of one district, other amounts in the rest"
                    )
                };
                self.row(id, about, found, rule, same(taxed < 0.5));
            }
            (None, _) => {
                let why = self.why("amounts");
                self.row(id, about, why, rule, LintState::Unknown);
            }
            _ => self.row(id, about, NO_WORK.to_owned(), rule, LintState::Unknown),
        }
    }

    fn skews(&mut self) {
        for (keys, question, id, about, rule) in [
            (
                Keys::Items,
                "items",
                "item-skew",
                "accesses on the hottest 1 % of the items",
                "NURand(8191) (2.1.6)",
            ),
            (
                Keys::Customers,
                "customers",
                "customer-skew",
                "orders of the hottest 1 % of the customers",
                "NURand(1023) (2.1.6)",
            ),
        ] {
            let Some(cells) = self.cells(question) else {
                let why = self.why(question);
                self.row(id, about, why, rule, LintState::Unknown);
                continue;
            };
            let number = |cell: Option<&Option<String>>| cell?.as_ref()?.parse::<u64>().ok();
            let counts: BTreeMap<u64, u64> =
                cells.iter().filter_map(|row| Some((number(row.first())?, number(row.get(1))?))).collect();
            let draws: u64 = counts.iter().map(|(count, keys)| count.saturating_mul(*keys)).sum();
            if draws == 0 {
                self.row(id, about, NO_WORK.to_owned(), rule, LintState::Unknown);
                continue;
            }
            let here = keys.hottest(counts);
            let (nurand, uniform) = keys.expected(draws);
            let found = format!("{:.1} % of {draws}", here * 100.0);
            let rule = format!(
                "{:.1} % by {rule} in as many, {:.1} % if all were equally likely",
                nurand * 100.0,
                uniform * 100.0
            );
            if nurand < 1.3 * uniform {
                self.row(id, about, found + ": too few to tell", &rule, LintState::Unknown);
                continue;
            }
            let skew = nearest(here, (nurand, uniform), draws);
            self.keep(|profile| {
                let of_profile = if keys == Keys::Items { profile.items } else { profile.customers };
                skew == Some(of_profile)
            });
            let found = if skew.is_some() { found } else { found + ": between the two" };
            self.row(id, about, found, &rule, same(skew == Some(Skew::NuRand)));
        }
    }

    /// Sums by warehouse of an answer: its key, and two columns.
    fn sums(&self, question: &str) -> Option<Sums> {
        let number = |cell: Option<&Option<String>>| cell?.as_ref()?.parse::<f64>().ok();
        let row = |row: &Vec<Option<String>>| {
            Some((row.first()?.clone()?, (number(row.get(1))?, number(row.get(2))?)))
        };
        Some(self.cells(question)?.iter().filter_map(row).filter(|(_, sums)| sums.1 > 0.5).collect())
    }

    fn stock(&mut self) {
        let (id, about) = ("stock-sums", "s_ytd and s_order_cnt");
        let rule = "quantity and number of the lines that a warehouse supplied (2.4.2.2)";
        let lines = self.number("lines", 1).unwrap_or(0.0);
        match (self.sums("stock"), self.sums("lines_by_supplier"), self.sums("lines_by_home")) {
            _ if lines < 0.5 => self.row(id, about, NO_WORK.to_owned(), rule, LintState::Unknown),
            (Some(stock), Some(by_supplier), Some(by_home)) => {
                let (found, profile_fits): (&str, fn(&Profile) -> bool) = if stock.is_empty() {
                    ("never written", |profile| !profile.writes_stock_sums)
                } else if stock == by_supplier && stock == by_home {
                    ("as supplied", |profile| profile.writes_stock_sums)
                } else if stock == by_supplier {
                    ("as supplied", |profile| profile.writes_stock_sums && profile.takes_remote_stock)
                } else if stock == by_home {
                    ("those of the lines' home warehouse: remote stock is not touched", |profile| {
                        profile.writes_stock_sums && !profile.takes_remote_stock
                    })
                } else {
                    (
                        "neither those of the supplying nor of the home warehouse: updates are missing, or several drivers worked here",
                        |profile| profile.writes_stock_sums,
                    )
                };
                self.keep(profile_fits);
                self.row(id, about, found.to_owned(), rule, same(found == "as supplied"));
            }
            _ => {
                let why = self.why("stock");
                self.row(id, about, why, rule, LintState::Unknown);
            }
        }
        let (id, about, rule) =
            ("stock-rule", "lowest s_quantity", "10: 91 come in before fewer are left (2.4.2.2)");
        let lowest = self.cells("stock").map(|rows| {
            rows.iter()
                .filter_map(|row| row.get(4)?.as_ref()?.parse::<f64>().ok())
                .fold(f64::INFINITY, f64::min)
        });
        match lowest.filter(|lowest| lowest.is_finite()) {
            None => {
                let why = self.why("stock");
                self.row(id, about, why, rule, LintState::Unknown);
            }
            Some(lowest) if lowest >= 10.0 && lines < LINES_FOR_STOCK_RULE => {
                self.row(
                    id,
                    about,
                    format!("{lowest} after {lines} lines: too few to tell"),
                    rule,
                    LintState::Unknown,
                );
            }
            Some(lowest) => {
                let keeps_ten = lowest >= 10.0;
                self.keep(|profile| profile.keeps_ten_pieces == keeps_ten);
                self.row(id, about, format!("{lowest}"), rule, same(keeps_ten));
            }
        }
    }

    fn payments_and_deliveries(&mut self, warehouses: f64, orders: f64) {
        // The load has a payment for each customer.
        let of_load = (DISTRICTS * CUSTOMERS) as f64 * warehouses;
        let payments = self.number("payments", 0).map(|all| (all - of_load).max(0.0));
        let remote = self.number("payments", 1);
        let (id, about, rule) = (
            "remote-payments",
            "payments for customers of other warehouses",
            "14 to 16 % with several warehouses (5.5.1.5)",
        );
        match (payments, remote) {
            _ if warehouses < 1.5 => {
                self.row(id, about, "there is one warehouse".to_owned(), rule, LintState::Unknown);
            }
            (Some(payments), Some(remote)) => {
                self.share_of(id, about, remote, payments, (0.14, 0.16), rule);
                if remote > 0.5 {
                    self.keep(|profile| profile.remote_payments_percent > 0);
                } else if payments >= 200.0 {
                    self.keep(|profile| profile.remote_payments_percent == 0);
                }
            }
            _ => {
                let why = self.why("payments");
                self.row(id, about, why, rule, LintState::Unknown);
            }
        }
        // The smallest shares of the mix are 43 % and 4 %, so that new orders are 45 % at the most (clause 5.2.3).
        let delivered = self.number("delivered", 0).map(|rows| rows / DISTRICTS as f64);
        for (id, about, count, least, rule) in [
            ("payments", "payments for each new order", payments, 43.0 / 45.0, "at least 0.956 (5.2.3)"),
            ("deliveries", "deliveries for each new order", delivered, 4.0 / 45.0, "at least 0.089 (5.2.3)"),
        ] {
            match count {
                Some(count) if orders > 0.5 => {
                    let ratio = count / orders;
                    let error = ERRORS_ALLOWED * ((ratio + ratio * ratio) / orders).sqrt();
                    self.row(id, about, format!("{ratio:.3}"), rule, same(ratio >= least - error));
                }
                _ => self.row(id, about, NO_WORK.to_owned(), rule, LintState::Unknown),
            }
        }
    }

    fn hidden(&mut self) {
        self.row(
            "rollbacks",
            "new orders that are rolled back",
            "a rolled back order leaves no row".to_owned(),
            "0.9 to 1.1 % (5.5.1.5)",
            LintState::Unknown,
        );
    }

    fn conditions(&mut self) {
        for number in 1..=12 {
            let id = format!("condition-{number}");
            let about = format!("violations of condition {number}");
            let rule = format!("none (3.3.2.{number})");
            match self.number(&id, 0) {
                Some(violations) => {
                    self.row(&id, &about, format!("{violations}"), &rule, same(violations < 0.5))
                }
                None => {
                    let why = self.why(&id);
                    self.row(&id, &about, why, &rule, LintState::Unknown);
                }
            }
        }
    }
}

/// The distribution that a share of the hottest keys shows, of those expected by NURand and with equally likely keys;
/// `None` when it lies between the two.
fn nearest(here: f64, (nurand, uniform): (f64, f64), draws: u64) -> Option<Skew> {
    let apart = nurand - uniform;
    let error = (nurand * (1.0 - nurand) / draws as f64).sqrt();
    let near = (NEAR * apart).max(ERRORS_ALLOWED * error).min(apart / 2.0);
    if here >= nurand - near {
        Some(Skew::NuRand)
    } else if here <= uniform + near {
        Some(Skew::Uniform)
    } else {
        None
    }
}

const NO_WORK: &str = "nothing since the load: run the driver first";

fn same(as_specified: bool) -> LintState {
    if as_specified { LintState::AsSpecified } else { LintState::Differs }
}
