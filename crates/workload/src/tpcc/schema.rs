//! The nine tables of clause 1.3: their columns, keys and indexes.

use mydyno_tables::table::LateIndex;

/// One of the nine tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// ITEM.
    Item,
    /// WAREHOUSE.
    Warehouse,
    /// DISTRICT.
    District,
    /// STOCK.
    Stock,
    /// CUSTOMER.
    Customer,
    /// HISTORY.
    History,
    /// ORDER.
    Orders,
    /// NEW-ORDER.
    NewOrder,
    /// ORDER-LINE.
    OrderLine,
}

/// All tables, the largest first so that connections that fill them in parallel end together.
pub const RELATIONS: [Relation; 9] = [
    Relation::Stock,
    Relation::OrderLine,
    Relation::Customer,
    Relation::Item,
    Relation::Orders,
    Relation::History,
    Relation::NewOrder,
    Relation::District,
    Relation::Warehouse,
];

const ADDRESS: [(&str, &str); 5] = [
    ("street_1", "VARCHAR(20) NOT NULL"),
    ("street_2", "VARCHAR(20) NOT NULL"),
    ("city", "VARCHAR(20) NOT NULL"),
    ("state", "CHAR(2) NOT NULL"),
    ("zip", "CHAR(9) NOT NULL"),
];

const INT: &str = "INT NOT NULL";
const SMALL: &str = "TINYINT NOT NULL";
const MONEY: &str = "DECIMAL(12,2) NOT NULL";
const RATE: &str = "DECIMAL(4,4) NOT NULL";

const CUSTOMER_KEY: [(&str, &str); 6] = [
    ("w_id", INT),
    ("d_id", SMALL),
    ("id", INT),
    ("first", "VARCHAR(16) NOT NULL"),
    ("middle", "CHAR(2) NOT NULL"),
    ("last", "VARCHAR(16) NOT NULL"),
];

const CUSTOMER: [(&str, &str); 10] = [
    ("phone", "CHAR(16) NOT NULL"),
    ("since", "DATETIME NOT NULL"),
    ("credit", "CHAR(2) NOT NULL"),
    ("credit_lim", MONEY),
    ("discount", RATE),
    ("balance", MONEY),
    ("ytd_payment", MONEY),
    ("payment_cnt", INT),
    ("delivery_cnt", INT),
    ("data", "VARCHAR(500) NOT NULL"),
];

impl Relation {
    /// Its name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Stock => "stock",
            Self::Customer => "customer",
            Self::History => "history",
            Self::Orders => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
        }
    }

    /// Number of leading columns that are its rows' key. HISTORY has no primary key (clause 1.3.1); its loaded rows are told
    /// apart by their customers.
    pub fn key_columns(self) -> usize {
        match self {
            Self::Item | Self::Warehouse => 1,
            Self::District | Self::Stock => 2,
            Self::Customer | Self::History | Self::Orders | Self::NewOrder => 3,
            Self::OrderLine => 4,
        }
    }

    /// Names and types of its columns, those of the key first.
    pub fn columns(self) -> Vec<(String, &'static str)> {
        let prefix = match self {
            Self::Item => "i_",
            Self::Warehouse => "w_",
            Self::District => "d_",
            Self::Stock => "s_",
            Self::Customer => "c_",
            Self::History => "h_",
            Self::Orders => "o_",
            Self::NewOrder => "no_",
            Self::OrderLine => "ol_",
        };
        let named = |(name, kind): &(&str, &'static str)| (format!("{prefix}{name}"), *kind);
        let all = |parts: &[&[(&str, &'static str)]]| parts.concat().iter().map(named).collect();
        match self {
            Self::Item => all(&[&[
                ("id", INT),
                ("im_id", INT),
                ("name", "VARCHAR(24) NOT NULL"),
                ("price", "DECIMAL(5,2) NOT NULL"),
                ("data", "VARCHAR(50) NOT NULL"),
            ]]),
            Self::Warehouse => all(&[
                &[("id", INT), ("name", "VARCHAR(10) NOT NULL")],
                &ADDRESS,
                &[("tax", RATE), ("ytd", MONEY)],
            ]),
            Self::District => all(&[
                &[("w_id", INT), ("id", SMALL), ("name", "VARCHAR(10) NOT NULL")],
                &ADDRESS,
                &[("tax", RATE), ("ytd", MONEY), ("next_o_id", INT)],
            ]),
            Self::Stock => {
                let mut columns: Vec<_> = [("w_id", INT), ("i_id", INT), ("quantity", "SMALLINT NOT NULL")]
                    .iter()
                    .map(named)
                    .collect();
                columns.extend((1..=10).map(|d| (district_info(d), "CHAR(24) NOT NULL")));
                let rest =
                    [("ytd", INT), ("order_cnt", INT), ("remote_cnt", INT), ("data", "VARCHAR(50) NOT NULL")];
                columns.extend(rest.iter().map(named));
                columns
            }
            Self::Customer => all(&[&CUSTOMER_KEY, &ADDRESS, &CUSTOMER]),
            Self::History => all(&[&[
                ("c_w_id", INT),
                ("c_d_id", SMALL),
                ("c_id", INT),
                ("d_id", SMALL),
                ("w_id", INT),
                ("date", "DATETIME NOT NULL"),
                ("amount", "DECIMAL(6,2) NOT NULL"),
                ("data", "VARCHAR(24) NOT NULL"),
            ]]),
            Self::Orders => all(&[&[
                ("w_id", INT),
                ("d_id", SMALL),
                ("id", INT),
                ("c_id", INT),
                ("entry_d", "DATETIME NOT NULL"),
                ("carrier_id", "TINYINT NULL"),
                ("ol_cnt", SMALL),
                ("all_local", SMALL),
            ]]),
            Self::NewOrder => all(&[&[("w_id", INT), ("d_id", SMALL), ("o_id", INT)]]),
            Self::OrderLine => all(&[&[
                ("w_id", INT),
                ("d_id", SMALL),
                ("o_id", INT),
                ("number", SMALL),
                ("i_id", INT),
                ("supply_w_id", INT),
                ("delivery_d", "DATETIME NULL"),
                ("quantity", SMALL),
                ("amount", "DECIMAL(6,2) NOT NULL"),
                ("dist_info", "CHAR(24) NOT NULL"),
            ]]),
        }
    }

    /// Its foreign keys (clause 1.3): their columns and the table whose primary key they are.
    pub fn foreign_keys(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Item | Self::Warehouse => &[],
            Self::District => &[("d_w_id", "warehouse(w_id)")],
            Self::Stock => &[("s_w_id", "warehouse(w_id)"), ("s_i_id", "item(i_id)")],
            Self::Customer => &[("c_w_id, c_d_id", "district(d_w_id, d_id)")],
            Self::History => &[
                ("h_c_w_id, h_c_d_id, h_c_id", "customer(c_w_id, c_d_id, c_id)"),
                ("h_w_id, h_d_id", "district(d_w_id, d_id)"),
            ],
            Self::Orders => &[("o_w_id, o_d_id, o_c_id", "customer(c_w_id, c_d_id, c_id)")],
            Self::NewOrder => &[("no_w_id, no_d_id, no_o_id", "orders(o_w_id, o_d_id, o_id)")],
            Self::OrderLine => &[
                ("ol_w_id, ol_d_id, ol_o_id", "orders(o_w_id, o_d_id, o_id)"),
                ("ol_supply_w_id, ol_i_id", "stock(s_w_id, s_i_id)"),
            ],
        }
    }

    /// The statement that makes it. A session that does not check foreign keys can make the tables in any order.
    pub fn create(self, engine: &str, foreign_keys: bool) -> String {
        let columns = self.columns();
        let mut parts: Vec<String> = columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        if self != Self::History {
            let key: Vec<&str> =
                columns[..self.key_columns()].iter().map(|(name, _)| name.as_str()).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        if foreign_keys {
            let keys = self.foreign_keys().iter();
            parts.extend(keys.map(|(columns, to)| format!("FOREIGN KEY ({columns}) REFERENCES {to}")));
        }
        format!("CREATE TABLE {} ({}) ENGINE={engine}", self.name(), parts.join(", "))
    }

    /// Indexes beside the primary key: customers by last name, orders by customer.
    pub fn indexes(self) -> Vec<LateIndex> {
        let index = |name: &str, columns: &str| LateIndex {
            name: name.to_owned(),
            sql: format!("ALTER TABLE {} ADD INDEX {name} ({columns})", self.name()),
        };
        match self {
            Self::Customer => vec![index("customer_name", "c_w_id, c_d_id, c_last, c_first")],
            Self::Orders => vec![index("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")],
            _ => Vec::new(),
        }
    }

    /// Bytes that a row and its share of the indexes take on disk, roughly, as InnoDB keeps them after a load in the key's
    /// order.
    pub fn row_bytes(self) -> u64 {
        match self {
            Self::Item => 115,
            Self::Warehouse | Self::District => 160,
            Self::Stock => 380,
            Self::Customer => 700,
            Self::History => 85,
            Self::Orders => 75,
            Self::NewOrder => 40,
            Self::OrderLine => 90,
        }
    }

    /// Bytes of a row in an INSERT at the most.
    pub fn sql_bytes(self) -> usize {
        match self {
            Self::Item => 130,
            Self::Warehouse | Self::District => 200,
            Self::Stock => 420,
            Self::Customer => 850,
            Self::History => 130,
            Self::Orders => 100,
            Self::NewOrder => 40,
            Self::OrderLine => 140,
        }
    }
}

/// Name of STOCK's column for orders of a district.
pub fn district_info(district: u64) -> String {
    format!("s_dist_{district:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_columns_and_keys_of_the_specification() {
        let columns = |relation: Relation| relation.columns().len();
        assert_eq!(RELATIONS.map(columns).iter().sum::<usize>(), 17 + 10 + 21 + 5 + 8 + 8 + 3 + 11 + 9);
        assert_eq!(
            Relation::NewOrder.create("InnoDB", false),
            "CREATE TABLE new_order (no_w_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_o_id INT NOT NULL, \
             PRIMARY KEY (no_w_id, no_d_id, no_o_id)) ENGINE=InnoDB"
        );
        assert!(!Relation::History.create("InnoDB", false).contains("KEY"));
        assert!(Relation::Stock.create("InnoDB", false).contains("s_dist_01 CHAR(24) NOT NULL, s_dist_02"));
        let names: std::collections::BTreeSet<&str> = RELATIONS.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), 9);
    }
}
