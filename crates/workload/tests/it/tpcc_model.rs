//! The five transactions of TPC-C's specification, carried out in memory: written from clauses 2.4 to 2.8, without the code
//! under test but for the population and the inputs.

use std::collections::{BTreeMap, BTreeSet};

use mydyno_workload::tpcc::execute::Output;
use mydyno_workload::tpcc::inputs::{CustomerSelector, Input, UNUSED_ITEM};
use mydyno_workload::tpcc::population::Population;
use mydyno_workload::tpcc::text::last_name;

/// A customer's changing columns, money in cents.
#[derive(Debug, Clone, PartialEq)]
pub struct Customer {
    pub balance: i64,
    pub ytd_payment: i64,
    pub payments: i64,
    pub deliveries: i64,
    pub data: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stock {
    pub quantity: i64,
    pub ytd: i64,
    pub orders: i64,
    pub remote: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub item: u64,
    pub supplier: u64,
    pub quantity: u64,
    pub amount: i64,
    pub delivered: bool,
    pub info: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub customer: u64,
    pub carrier: Option<u64>,
    pub all_local: bool,
    pub lines: Vec<Line>,
}

/// The database; keys are in the order of the tables' keys.
pub struct Memory {
    population: Population,
    pub warehouse_ytd: BTreeMap<u64, i64>,
    pub district_ytd: BTreeMap<(u64, u64), i64>,
    pub customers: BTreeMap<(u64, u64, u64), Customer>,
    pub stock: BTreeMap<(u64, u64), Stock>,
    pub orders: BTreeMap<(u64, u64), Vec<Order>>,
    pub open: BTreeMap<(u64, u64), BTreeSet<u64>>,
    /// Customer, district and warehouse of the payment, amount, text.
    pub history: Vec<([u64; 5], i64, String)>,
}

impl Memory {
    pub fn new(warehouses: u64, seed: u64) -> Self {
        let population = Population::new(seed);
        let districts = || (1..=warehouses).flat_map(|w| (1..=10).map(move |d| (w, d)));
        let orders = |(w, d): (u64, u64)| {
            let customers = population.customers_of_orders(w, d);
            let order = |o: u64| {
                let order = population.order(w, d, o);
                let line = |n| {
                    let line = population.order_line(w, d, o, n);
                    Line {
                        item: line.item,
                        supplier: w,
                        quantity: 5,
                        amount: line.amount_cents as i64,
                        delivered: o < 2_101,
                        info: line.district_info,
                    }
                };
                Order {
                    customer: customers[o as usize - 1],
                    carrier: order.carrier,
                    all_local: true,
                    lines: (1..=order.lines).map(line).collect(),
                }
            };
            ((w, d), (1..=3_000).map(order).collect())
        };
        Self {
            population,
            warehouse_ytd: (1..=warehouses).map(|w| (w, 30_000_000)).collect(),
            district_ytd: districts().map(|key| (key, 3_000_000)).collect(),
            customers: BTreeMap::new(),
            stock: BTreeMap::new(),
            orders: districts().map(orders).collect(),
            open: districts().map(|key| (key, (2_101..=3_000).collect())).collect(),
            history: Vec::new(),
        }
    }

    /// Carries out one transaction, and gives what its terminal shows.
    pub fn execute(&mut self, input: &Input) -> Output {
        match input {
            Input::NewOrder(input) => self.new_order(input),
            Input::Payment(input) => self.payment(input),
            Input::OrderStatus(input) => {
                let (w, d) = (input.warehouse, input.district);
                let customer = self.chosen(w, d, input.customer);
                let balance_cents = self.customer(w, d, customer).balance;
                let orders = &self.orders[&(w, d)];
                let last = orders.iter().rposition(|order| order.customer == customer).unwrap();
                Output::OrderStatus {
                    customer: customer as i64,
                    balance_cents,
                    order: last as i64 + 1,
                    lines: orders[last].lines.len(),
                }
            }
            Input::Delivery(input) => {
                let delivered = (1..=10).filter(|d| self.deliver(input.warehouse, *d, input.carrier)).count();
                Output::Delivery(delivered as u64)
            }
            Input::StockLevel(input) => {
                let (w, d) = (input.warehouse, input.district);
                let orders = &self.orders[&(w, d)];
                let items: BTreeSet<u64> =
                    orders[orders.len() - 20..].iter().flat_map(|o| &o.lines).map(|line| line.item).collect();
                let low = |item: &u64| self.stock_of(w, *item).quantity < input.threshold as i64;
                Output::StockLevel(items.iter().filter(|item| low(item)).count() as i64)
            }
        }
    }

    fn stock_of(&self, w: u64, item: u64) -> Stock {
        self.stock.get(&(w, item)).cloned().unwrap_or_else(|| Stock {
            quantity: self.population.stock(w, item).quantity as i64,
            ytd: 0,
            orders: 0,
            remote: 0,
        })
    }

    fn customer(&mut self, w: u64, d: u64, c: u64) -> &mut Customer {
        let population = self.population;
        self.customers.entry((w, d, c)).or_insert_with(|| Customer {
            balance: -1_000,
            ytd_payment: 1_000,
            payments: 1,
            deliveries: 0,
            data: population.customer(w, d, c).data,
        })
    }

    /// By name: all of that name by first name, and of n the one at n / 2, rounded up.
    fn chosen(&self, w: u64, d: u64, who: CustomerSelector) -> u64 {
        match who {
            CustomerSelector::Id(customer) => customer,
            CustomerSelector::LastName(number) => {
                let name = last_name(number);
                let mut all: Vec<(String, u64)> = (1..=3_000)
                    .map(|c| (c, self.population.customer(w, d, c)))
                    .filter(|(_, customer)| customer.last == name)
                    // The server's collation does not tell case.
                    .map(|(c, customer)| (customer.first.to_ascii_uppercase(), c))
                    .collect();
                all.sort();
                all[all.len().div_ceil(2) - 1].1
            }
        }
    }

    fn new_order(&mut self, input: &mydyno_workload::tpcc::inputs::NewOrder) -> Output {
        if input.lines.iter().any(|line| line.item == UNUSED_ITEM) {
            return Output::RolledBack;
        }
        let (w, d) = (input.warehouse, input.district);
        let (mut lines, mut brand_b) = (Vec::new(), 0);
        for line in input.lines.iter() {
            let item = self.population.item(line.item);
            let loaded = self.population.stock(line.supplier, line.item);
            let mut stock = self.stock_of(line.supplier, line.item);
            let quantity = line.quantity as i64;
            stock.quantity -= quantity;
            if stock.quantity < 10 {
                stock.quantity += 91;
            }
            stock.ytd += quantity;
            stock.orders += 1;
            stock.remote += i64::from(line.supplier != w);
            self.stock.insert((line.supplier, line.item), stock);
            brand_b += u64::from(item.data.contains("ORIGINAL") && loaded.data.contains("ORIGINAL"));
            lines.push(Line {
                item: line.item,
                supplier: line.supplier,
                quantity: line.quantity,
                amount: quantity * item.price_cents as i64,
                delivered: false,
                info: loaded.districts[d as usize - 1].clone(),
            });
        }
        let sum: i64 = lines.iter().map(|line| line.amount).sum();
        let discount = self.population.customer(w, d, input.customer).discount_e4;
        let taxes = self.population.warehouse(w).tax_e4 + self.population.district(w, d).tax_e4;
        let total = sum as f64 * (1.0 - discount as f64 / 10_000.0) * (1.0 + taxes as f64 / 10_000.0);
        let all_local = lines.iter().all(|line| line.supplier == w);
        let orders = self.orders.get_mut(&(w, d)).unwrap();
        orders.push(Order { customer: input.customer, carrier: None, all_local, lines });
        let order = orders.len() as u64;
        self.open.get_mut(&(w, d)).unwrap().insert(order);
        Output::NewOrder { order: order as i64, total_cents: total.round() as u64, brand_b }
    }

    fn payment(&mut self, input: &mydyno_workload::tpcc::inputs::Payment) -> Output {
        let (w, d) = (input.warehouse, input.district);
        let (c_w, c_d) = (input.customer_warehouse, input.customer_district);
        let amount = input.amount_cents as i64;
        let c = self.chosen(c_w, c_d, input.customer);
        *self.warehouse_ytd.get_mut(&w).unwrap() += amount;
        *self.district_ytd.get_mut(&(w, d)).unwrap() += amount;
        let is_bad = self.population.customer(c_w, c_d, c).is_bad_credit;
        let customer = self.customer(c_w, c_d, c);
        let balance_cents = customer.balance;
        customer.balance -= amount;
        customer.ytd_payment += amount;
        customer.payments += 1;
        if is_bad {
            let new =
                format!("{c} {c_d} {c_w} {d} {w} {}.{:02} {}", amount / 100, amount % 100, customer.data);
            customer.data = new[..new.len().min(500)].to_owned();
        }
        let names = (self.population.warehouse(w).name, self.population.district(w, d).name);
        self.history.push(([c_w, c_d, c, d, w], amount, format!("{}    {}", names.0, names.1)));
        Output::Payment { customer: c as i64, balance_cents }
    }

    fn deliver(&mut self, w: u64, d: u64, carrier: u64) -> bool {
        let Some(oldest) = self.open.get_mut(&(w, d)).unwrap().pop_first() else { return false };
        let order = &mut self.orders.get_mut(&(w, d)).unwrap()[oldest as usize - 1];
        order.carrier = Some(carrier);
        order.lines.iter_mut().for_each(|line| line.delivered = true);
        let (amount, c) = (order.lines.iter().map(|line| line.amount).sum::<i64>(), order.customer);
        let customer = self.customer(w, d, c);
        customer.balance += amount;
        customer.deliveries += 1;
        true
    }
}
