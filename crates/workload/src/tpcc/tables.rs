//! The population as tables: the row of a number, for filling in parallel.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use mydyno_tables::engine::Engine;
use mydyno_tables::table::{DataSet, Fields, LateIndex, Table};
use serde_json::{Map, json};

use super::population::{Address, Population, is_delivered};
use super::schema::{RELATIONS, Relation};
use super::sets;
use super::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS, ORDERS};

/// Key of the tables in the mark.
pub const FAMILY: &str = "tpcc";

/// The time of the load in all rows: rows never depend on the clock.
const LOADED: &[u8] = b"2026-01-01 00:00:00";

/// Orders of a district that the load leaves open.
const OPEN: u64 = ORDERS - FIRST_UNDELIVERED + 1;

/// The layout of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Warehouses of a set.
    pub warehouses: u64,
    /// Sets of the nine tables, all with the same rows.
    pub sets: u64,
    /// Whether the tables have foreign keys.
    pub foreign_keys: bool,
}

/// The data set of a layout, without conditions and procedures.
pub fn data(layout: Layout, engine: Engine, seed: u64) -> DataSet {
    let Layout { warehouses, sets, foreign_keys } = layout;
    let population = Population::new(seed);
    let line_ends = Arc::new(OnceLock::new());
    let table = |relation: Relation, set: u64| {
        let columns: Vec<String> = relation.columns().into_iter().map(|(name, _)| name).collect();
        let line_ends = Arc::clone(&line_ends);
        let columns = columns.join(",");
        let suffix = sets::suffix(set, sets);
        let name = format!("{}{suffix}", relation.name());
        let populated = Populated {
            relation,
            name,
            suffix,
            foreign_keys,
            columns,
            population,
            warehouses,
            engine,
            line_ends,
        };
        Arc::new(populated) as Arc<dyn Table>
    };
    let tables: Vec<_> =
        RELATIONS.into_iter().flat_map(|relation| (1..=sets).map(move |set| table(relation, set))).collect();
    let mut shape = Map::new();
    shape.insert("tables".to_owned(), tables.iter().map(|table| json!(table.name())).collect());
    shape.insert("warehouses".to_owned(), json!(warehouses));
    if foreign_keys {
        shape.insert("foreign-keys".to_owned(), json!(true));
    }
    DataSet {
        family: FAMILY,
        names: format!("^({})[0-9]*$", RELATIONS.map(Relation::name).join("|")),
        shape,
        seed,
        engine,
        tables,
        conditions: Vec::new(),
        routines: Vec::new(),
    }
}

/// One of the tables.
#[derive(Debug, Clone)]
struct Populated {
    relation: Relation,
    name: String,
    /// Ending of the names in its set.
    suffix: String,
    foreign_keys: bool,
    columns: String,
    population: Population,
    warehouses: u64,
    engine: Engine,
    /// For each district, the number of its last order line; made on first use.
    line_ends: Arc<OnceLock<Vec<u64>>>,
}

/// The common part of a district's rows; each thread keeps that of its last district.
struct District {
    population: Population,
    number: u64,
    customers: Vec<u64>,
    /// For each order, the number of its last line within the district.
    line_ends: Vec<u64>,
}

thread_local! {
    static DISTRICT: RefCell<Option<District>> = const { RefCell::new(None) };
}

/// Warehouse and district of a number from 0.
fn place(number: u64) -> (u64, u64) {
    (number / DISTRICTS + 1, number % DISTRICTS + 1)
}

impl District {
    fn new(population: Population, number: u64) -> Self {
        let (w, d) = place(number);
        let mut end = 0;
        let ends = (1..=ORDERS).map(|o| {
            end += population.order(w, d, o).lines;
            end
        });
        let line_ends = ends.collect();
        Self { population, number, customers: population.customers_of_orders(w, d), line_ends }
    }

    /// Passes district `number` to `take`.
    fn with<T>(population: &Population, number: u64, take: impl FnOnce(&Self) -> T) -> T {
        DISTRICT.with_borrow_mut(|kept| {
            if !kept.as_ref().is_some_and(|kept| kept.number == number && kept.population == *population) {
                *kept = None;
            }
            take(kept.get_or_insert_with(|| Self::new(*population, number)))
        })
    }
}

impl Populated {
    fn line_ends(&self) -> &[u64] {
        self.line_ends.get_or_init(|| {
            let mut end = 0;
            let ends = (0..self.warehouses * DISTRICTS).map(|number| {
                let (w, d) = place(number);
                end += (1..=ORDERS).map(|o| self.population.order(w, d, o).lines).sum::<u64>();
                end
            });
            ends.collect()
        })
    }

    fn address(address: &Address, fields: &mut dyn Fields) {
        let Address { street: [street_1, street_2], city, state, zip } = address;
        for text in [street_1, street_2, city, state, zip] {
            fields.bytes(text.as_bytes());
        }
    }

    fn item(&self, id: u64, fields: &mut dyn Fields) {
        let item = self.population.item(id);
        fields.int(id as i64);
        fields.int(item.image as i64);
        fields.bytes(item.name.as_bytes());
        fields.bytes(money(item.price_cents).as_bytes());
        fields.bytes(item.data.as_bytes());
    }

    fn warehouse(&self, id: u64, fields: &mut dyn Fields) {
        let warehouse = self.population.warehouse(id);
        fields.int(id as i64);
        fields.bytes(warehouse.name.as_bytes());
        Self::address(&warehouse.address, fields);
        fields.bytes(rate(warehouse.tax_e4).as_bytes());
        fields.bytes(b"300000.00");
    }

    fn district(&self, id: u64, fields: &mut dyn Fields) {
        let (w, d) = place(id - 1);
        let district = self.population.district(w, d);
        fields.int(w as i64);
        fields.int(d as i64);
        fields.bytes(district.name.as_bytes());
        Self::address(&district.address, fields);
        fields.bytes(rate(district.tax_e4).as_bytes());
        fields.bytes(b"30000.00");
        fields.int(ORDERS as i64 + 1);
    }

    fn stock(&self, id: u64, fields: &mut dyn Fields) {
        let (w, i) = ((id - 1) / ITEMS + 1, (id - 1) % ITEMS + 1);
        let stock = self.population.stock(w, i);
        for number in [w, i, stock.quantity] {
            fields.int(number as i64);
        }
        for district in &stock.districts {
            fields.bytes(district.as_bytes());
        }
        for _ in ["s_ytd", "s_order_cnt", "s_remote_cnt"] {
            fields.int(0);
        }
        fields.bytes(stock.data.as_bytes());
    }

    fn customer(&self, id: u64, fields: &mut dyn Fields) {
        let ((w, d), c) = (place((id - 1) / CUSTOMERS), (id - 1) % CUSTOMERS + 1);
        let customer = self.population.customer(w, d, c);
        for number in [w, d, c] {
            fields.int(number as i64);
        }
        fields.bytes(customer.first.as_bytes());
        fields.bytes(b"OE");
        fields.bytes(customer.last.as_bytes());
        Self::address(&customer.address, fields);
        fields.bytes(customer.phone.as_bytes());
        fields.bytes(LOADED);
        fields.bytes(if customer.is_bad_credit { b"BC" } else { b"GC" });
        fields.bytes(b"50000.00");
        fields.bytes(rate(customer.discount_e4).as_bytes());
        fields.bytes(b"-10.00");
        fields.bytes(b"10.00");
        fields.int(1);
        fields.int(0);
        fields.bytes(customer.data.as_bytes());
    }

    fn history(&self, id: u64, fields: &mut dyn Fields) {
        let ((w, d), c) = (place((id - 1) / CUSTOMERS), (id - 1) % CUSTOMERS + 1);
        for number in [w, d, c, d, w] {
            fields.int(number as i64);
        }
        fields.bytes(LOADED);
        fields.bytes(b"10.00");
        fields.bytes(self.population.history_data(w, d, c).as_bytes());
    }

    fn order(&self, id: u64, fields: &mut dyn Fields) {
        let (number, o) = ((id - 1) / ORDERS, (id - 1) % ORDERS + 1);
        let (w, d) = place(number);
        let customer =
            District::with(&self.population, number, |district| district.customers[o as usize - 1]);
        let order = self.population.order(w, d, o);
        for number in [w, d, o, customer] {
            fields.int(number as i64);
        }
        fields.bytes(LOADED);
        match order.carrier {
            Some(carrier) => fields.int(carrier as i64),
            None => fields.null(),
        }
        fields.int(order.lines as i64);
        fields.int(1);
    }

    fn new_order(&self, id: u64, fields: &mut dyn Fields) {
        let ((w, d), o) = (place((id - 1) / OPEN), (id - 1) % OPEN + FIRST_UNDELIVERED);
        for number in [w, d, o] {
            fields.int(number as i64);
        }
    }

    fn order_line(&self, id: u64, fields: &mut dyn Fields) {
        let ends = self.line_ends();
        let number = ends.partition_point(|end| *end < id);
        let within = id - number.checked_sub(1).map_or(0, |before| ends[before]);
        let (o, line) = District::with(&self.population, number as u64, |district| {
            let order = district.line_ends.partition_point(|end| *end < within);
            let before = order.checked_sub(1).map_or(0, |before| district.line_ends[before]);
            (order as u64 + 1, within - before)
        });
        let (w, d) = place(number as u64);
        let row = self.population.order_line(w, d, o, line);
        for number in [w, d, o, line, row.item, w] {
            fields.int(number as i64);
        }
        if is_delivered(o) {
            fields.bytes(LOADED);
        } else {
            fields.null();
        }
        fields.int(5);
        fields.bytes(money(row.amount_cents).as_bytes());
        fields.bytes(row.district_info.as_bytes());
    }
}

impl Table for Populated {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> String {
        sets::of_set(&self.relation.create(self.engine.name(), self.foreign_keys), &self.suffix)
    }

    fn columns(&self) -> &str {
        &self.columns
    }

    fn key_columns(&self) -> usize {
        self.relation.key_columns()
    }

    fn rows(&self) -> u64 {
        let warehouses = self.warehouses;
        match self.relation {
            Relation::Item => ITEMS,
            Relation::Warehouse => warehouses,
            Relation::District => warehouses * DISTRICTS,
            Relation::Stock => warehouses * ITEMS,
            Relation::Customer | Relation::History => warehouses * DISTRICTS * CUSTOMERS,
            Relation::Orders => warehouses * DISTRICTS * ORDERS,
            Relation::NewOrder => warehouses * DISTRICTS * OPEN,
            Relation::OrderLine => self.line_ends().last().copied().unwrap_or(0),
        }
    }

    fn row(&self, id: u64, fields: &mut dyn Fields) {
        match self.relation {
            Relation::Item => self.item(id, fields),
            Relation::Warehouse => self.warehouse(id, fields),
            Relation::District => self.district(id, fields),
            Relation::Stock => self.stock(id, fields),
            Relation::Customer => self.customer(id, fields),
            Relation::History => self.history(id, fields),
            Relation::Orders => self.order(id, fields),
            Relation::NewOrder => self.new_order(id, fields),
            Relation::OrderLine => self.order_line(id, fields),
        }
    }

    fn row_bytes(&self) -> u64 {
        self.relation.row_bytes()
    }

    fn sql_bytes(&self) -> usize {
        self.relation.sql_bytes()
    }

    fn reseeded(&self, seed: u64) -> Arc<dyn Table> {
        Arc::new(Self { population: Population::new(seed), line_ends: Arc::default(), ..self.clone() })
    }

    fn is_ascii(&self) -> bool {
        true
    }

    fn late_indexes(&self) -> Vec<LateIndex> {
        let of_set = |index: LateIndex| LateIndex { sql: sets::of_set(&index.sql, &self.suffix), ..index };
        self.relation.indexes().into_iter().map(of_set).collect()
    }
}

/// Cents as SQL writes the amount.
fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Ten-thousandths below one as SQL writes them.
fn rate(e4: u64) -> String {
    format!("0.{e4:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's columns as texts.
    #[derive(Default)]
    struct Texts(Vec<String>);

    impl Fields for Texts {
        fn int(&mut self, value: i64) {
            self.0.push(value.to_string());
        }
        fn bytes(&mut self, value: &[u8]) {
            self.0.push(String::from_utf8(value.to_vec()).unwrap());
        }
        fn null(&mut self) {
            self.0.push("NULL".to_owned());
        }
    }

    fn tables(warehouses: u64) -> Vec<Arc<dyn Table>> {
        let layout = Layout { warehouses, sets: 1, foreign_keys: false };
        data(layout, Engine::of("innodb"), 1).tables
    }

    fn row(table: &dyn Table, id: u64) -> Vec<String> {
        let mut texts = Texts::default();
        table.row(id, &mut texts);
        texts.0
    }

    #[test]
    fn tables_have_the_cardinalities_of_clause_1_2_1() {
        for table in tables(2) {
            let expected = match table.name() {
                "item" => 100_000,
                "warehouse" => 2,
                "district" => 20,
                "stock" => 200_000,
                "customer" | "history" | "orders" => 60_000,
                "new_order" => 18_000,
                "order_line" => continue,
                other => panic!("{other}"),
            };
            assert_eq!(table.rows(), expected, "{}", table.name());
        }
    }

    #[test]
    fn every_row_has_all_columns_and_keys_ascend_with_the_row_s_number() {
        for table in tables(2) {
            let mut before: Vec<i64> = Vec::new();
            let step = (table.rows() / 5_000).max(1) as usize;
            for id in (1..=table.rows()).step_by(step).chain([table.rows()]) {
                let row = row(table.as_ref(), id);
                assert_eq!(row.len(), table.column_count(), "{}", table.name());
                let key: Vec<i64> = row[..table.key_columns()].iter().map(|n| n.parse().unwrap()).collect();
                assert!(before < key || id == table.rows(), "{}: {before:?}, {key:?}", table.name());
                assert!(row.iter().map(|text| text.len() + 3).sum::<usize>() <= table.sql_bytes() + 2);
                before = key;
            }
        }
    }

    #[test]
    fn order_lines_are_numbered_within_their_orders_without_gaps() {
        let tables = tables(1);
        let (lines, orders) = (
            tables.iter().find(|t| t.name() == "order_line").unwrap(),
            tables.iter().find(|t| t.name() == "orders").unwrap(),
        );
        let mut id = 0;
        for order in (1..=300).chain(2_990..=3_010) {
            let order = row(orders.as_ref(), order);
            if order[2] == "2990" {
                id = (1..=lines.rows()).find(|id| row(lines.as_ref(), *id)[2] == "2990").unwrap() - 1;
            }
            for number in 1..=order[6].parse::<u64>().unwrap() {
                id += 1;
                let line = row(lines.as_ref(), id);
                assert_eq!((&line[..3], line[3].clone()), (&order[..3], number.to_string()));
                assert_eq!(line[6] == "NULL", order[5] == "NULL");
            }
        }
    }
}
