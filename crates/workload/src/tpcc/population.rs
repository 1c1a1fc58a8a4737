//! Rows of the loaded database (clause 4.3.3). A row depends on the seed, its table and its key only. Money is in
//! cents, taxes and discounts are in ten-thousandths.

use mydyno_stats::rng::Rng;

use super::nurand::Constants;
use super::text::{a_string, item_data, last_name, n_string, zip};
use super::{FEWEST_LINES, FIRST_UNDELIVERED, ITEMS, LAST_NAMES, MOST_LINES, ORDERS};
use crate::data::Purpose;

/// Labels of the tables' random streams. Changing one changes the rows of every seed.
#[derive(Debug, Clone, Copy)]
enum Label {
    Constants = 0x7463_0000,
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    History,
    Permutation,
    Order,
    OrderLine,
}

/// The population of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    seed: u64,
    constants: Constants,
}

/// Where a warehouse, district or customer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Two lines of 10 to 20 characters.
    pub street: [String; 2],
    /// 10 to 20 characters.
    pub city: String,
    /// Two characters.
    pub state: String,
    /// Nine digits, of which the last five are 1.
    pub zip: String,
}

impl Address {
    fn drawn(rng: &mut Rng) -> Self {
        Self {
            street: [a_string(rng, 10, 20), a_string(rng, 10, 20)],
            city: a_string(rng, 10, 20),
            state: a_string(rng, 2, 2),
            zip: zip(rng),
        }
    }
}

/// A row of ITEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// I_IM_ID, from 1 to 10,000.
    pub image: u64,
    /// I_NAME.
    pub name: String,
    /// I_PRICE, from 1.00 to 100.00.
    pub price_cents: u64,
    /// I_DATA.
    pub data: String,
}

/// Columns that a row of WAREHOUSE and one of DISTRICT have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// W_NAME or D_NAME.
    pub name: String,
    /// The address.
    pub address: Address,
    /// W_TAX or D_TAX, from 0 to 0.2.
    pub tax_e4: u64,
}

impl Place {
    fn drawn(rng: &mut Rng) -> Self {
        Self { name: a_string(rng, 6, 10), address: Address::drawn(rng), tax_e4: rng.between(0, 2_000) }
    }
}

/// A row of STOCK; S_YTD, S_ORDER_CNT and S_REMOTE_CNT are 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// S_QUANTITY, from 10 to 100.
    pub quantity: u64,
    /// S_DIST_01 to S_DIST_10.
    pub districts: [String; 10],
    /// S_DATA.
    pub data: String,
}

/// A row of CUSTOMER; what is not here is the same in all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// C_LAST.
    pub last: String,
    /// C_FIRST.
    pub first: String,
    /// The address.
    pub address: Address,
    /// C_PHONE: 16 digits.
    pub phone: String,
    /// Whether C_CREDIT is BC: one customer in ten.
    pub is_bad_credit: bool,
    /// C_DISCOUNT, from 0 to 0.5.
    pub discount_e4: u64,
    /// C_DATA.
    pub data: String,
}

/// A row of ORDERS without its customer, see [`Population::customers_of_orders`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// O_CARRIER_ID, from 1 to 10; none before the delivery.
    pub carrier: Option<u64>,
    /// O_OL_CNT.
    pub lines: u64,
}

/// A row of ORDER_LINE. Its quantity is 5, its supplier the home warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine {
    /// OL_I_ID.
    pub item: u64,
    /// OL_AMOUNT: 0 for delivered lines, else from 0.01 to 9,999.99.
    pub amount_cents: u64,
    /// OL_DIST_INFO.
    pub district_info: String,
}

impl Population {
    /// The population of this seed. The constants are the same for all seeds, so that a run keeps their distance from those
    /// of the load (clause 2.1.6.1) without knowing the seed of its tables.
    pub fn new(seed: u64) -> Self {
        let constants = Constants::for_load(&mut stream(0, Label::Constants, &[]));
        Self { seed, constants }
    }

    /// The constants of NURand with which customers get their last names.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    fn rng(&self, label: Label, key: &[u64]) -> Rng {
        stream(self.seed, label, key)
    }

    /// Item `i`.
    pub fn item(&self, i: u64) -> Item {
        let rng = &mut self.rng(Label::Item, &[i]);
        Item {
            image: rng.between(1, 10_000),
            name: a_string(rng, 14, 24),
            price_cents: rng.between(100, 10_000),
            data: item_data(rng),
        }
    }

    /// Warehouse `w`; its W_YTD is 300,000.00.
    pub fn warehouse(&self, w: u64) -> Place {
        Place::drawn(&mut self.rng(Label::Warehouse, &[w]))
    }

    /// District `d` of warehouse `w`; its D_YTD is 30,000.00 and its D_NEXT_O_ID 3,001.
    pub fn district(&self, w: u64, d: u64) -> Place {
        Place::drawn(&mut self.rng(Label::District, &[w, d]))
    }

    /// Stock of item `i` in warehouse `w`.
    pub fn stock(&self, w: u64, i: u64) -> Stock {
        let rng = &mut self.rng(Label::Stock, &[w, i]);
        Stock {
            quantity: rng.between(10, 100),
            districts: std::array::from_fn(|_| a_string(rng, 24, 24)),
            data: item_data(rng),
        }
    }

    /// Customer `c` of a district. The first thousand have the thousand last names, the others draw theirs.
    pub fn customer(&self, w: u64, d: u64, c: u64) -> Customer {
        let rng = &mut self.rng(Label::Customer, &[w, d, c]);
        let name = if c <= LAST_NAMES { c - 1 } else { self.constants.last_name(rng) };
        Customer {
            last: last_name(name),
            first: a_string(rng, 8, 16),
            address: Address::drawn(rng),
            phone: n_string(rng, 16, 16),
            is_bad_credit: rng.below(10) == 0,
            discount_e4: rng.between(0, 5_000),
            data: a_string(rng, 300, 500),
        }
    }

    /// H_DATA of the one row that customer `c` has in HISTORY.
    pub fn history_data(&self, w: u64, d: u64, c: u64) -> String {
        a_string(&mut self.rng(Label::History, &[w, d, c]), 12, 24)
    }

    /// O_C_ID of a district's orders from the first on: a permutation of its customers.
    pub fn customers_of_orders(&self, w: u64, d: u64) -> Vec<u64> {
        let mut customers: Vec<u64> = (1..=ORDERS).collect();
        self.rng(Label::Permutation, &[w, d]).shuffle(&mut customers);
        customers
    }

    /// Order `o` of a district.
    pub fn order(&self, w: u64, d: u64, o: u64) -> Order {
        let rng = &mut self.rng(Label::Order, &[w, d, o]);
        let lines = rng.between(FEWEST_LINES, MOST_LINES);
        Order { lines, carrier: is_delivered(o).then(|| rng.between(1, 10)) }
    }

    /// Line `number` of order `o`.
    pub fn order_line(&self, w: u64, d: u64, o: u64, number: u64) -> OrderLine {
        let rng = &mut self.rng(Label::OrderLine, &[w, d, o, number]);
        OrderLine {
            item: rng.between(1, ITEMS),
            amount_cents: if is_delivered(o) { 0 } else { rng.between(1, 999_999) },
            district_info: a_string(rng, 24, 24),
        }
    }
}

/// Whether the load delivers order `o` of a district.
pub fn is_delivered(o: u64) -> bool {
    o < FIRST_UNDELIVERED
}

fn stream(seed: u64, label: Label, key: &[u64]) -> Rng {
    let labels: Vec<u64> =
        [Purpose::Data as u64, label as u64].into_iter().chain(key.iter().copied()).collect();
    Rng::stream(seed, &labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::text::is_original;
    use crate::tpcc::{CUSTOMERS, DISTRICTS};

    const SEED: u64 = 5;

    /// Whether `hits` of `n` is within five standard deviations of the share.
    fn is_near(hits: u64, n: u64, share: f64) -> bool {
        let (n, hits) = (n as f64, hits as f64);
        (hits - n * share).abs() <= 5.0 * (n * share * (1.0 - share)).sqrt()
    }

    #[test]
    fn a_row_is_the_same_whatever_was_made_before_it() {
        let population = Population::new(SEED);
        let (customer, stock) = (population.customer(2, 3, 2_500), population.stock(2, 17));
        for n in 1..50 {
            let _ = (population.customer(1, 1, n), population.order(1, 1, n));
        }
        assert_eq!(population.customer(2, 3, 2_500), customer);
        assert_eq!(Population::new(SEED).stock(2, 17), stock);
        assert_ne!(population.stock(1, 17), stock);
        assert_ne!(population.stock(2, 18), stock);
        assert_ne!(Population::new(SEED + 1).stock(2, 17), stock);
    }

    #[test]
    fn items_and_stock_keep_to_their_ranges() {
        let population = Population::new(SEED);
        let (mut original, mut both) = (0, 0);
        for i in 1..=20_000 {
            let (item, stock) = (population.item(i), population.stock(1, i));
            assert!((1..=10_000).contains(&item.image) && (100..=10_000).contains(&item.price_cents));
            assert!((14..=24).contains(&item.name.len()) && (26..=50).contains(&item.data.len()));
            assert!((10..=100).contains(&stock.quantity));
            assert!(stock.districts.iter().all(|info| info.len() == 24));
            original += u64::from(is_original(item.data.as_bytes()));
            both += u64::from(is_original(item.data.as_bytes()) && is_original(stock.data.as_bytes()));
        }
        assert!(is_near(original, 20_000, 0.1), "{original}");
        assert!(is_near(both, 20_000, 0.01), "{both}");
    }

    #[test]
    fn a_district_has_each_last_name_and_a_tenth_of_bad_credit() {
        let population = Population::new(SEED);
        let mut bad = 0;
        let mut names = std::collections::BTreeMap::new();
        for c in 1..=CUSTOMERS {
            let customer = population.customer(1, 1, c);
            if c <= 1_000 {
                assert_eq!(customer.last, last_name(c - 1));
            }
            assert!((8..=16).contains(&customer.first.len()) && customer.phone.len() == 16);
            assert!((300..=500).contains(&customer.data.len()) && customer.discount_e4 <= 5_000);
            bad += u64::from(customer.is_bad_credit);
            *names.entry(customer.last).or_insert(0) += 1;
        }
        assert_eq!(names.len(), 1_000);
        assert!(names.values().max() > Some(&8), "drawn names are not uniform");
        assert!(is_near(bad, CUSTOMERS, 0.1), "{bad}");
    }

    #[test]
    fn orders_are_a_permutation_of_the_customers_and_the_last_900_are_open() {
        let population = Population::new(SEED);
        let mut customers = population.customers_of_orders(1, 1);
        assert_ne!(customers, population.customers_of_orders(1, 2));
        customers.sort_unstable();
        assert_eq!(customers, (1..=CUSTOMERS).collect::<Vec<_>>());
        let (mut lines, mut open) = (0, 0);
        for d in 1..=DISTRICTS {
            for o in 1..=ORDERS {
                let order = population.order(1, d, o);
                assert!((5..=15).contains(&order.lines));
                assert!(order.carrier.is_none_or(|carrier| (1..=10).contains(&carrier)));
                open += u64::from(order.carrier.is_none());
                lines += order.lines;
            }
        }
        assert_eq!(open, 9_000);
        // 30,000 orders of 10 lines, with a standard deviation of √10 each.
        assert!((lines as f64 - 300_000.0).abs() < 5.0 * (10.0f64 * 30_000.0).sqrt(), "{lines}");
        let delivered = population.order_line(1, 1, 2_100, 1);
        assert_eq!(delivered.amount_cents, 0);
        for o in FIRST_UNDELIVERED..=ORDERS {
            let line = population.order_line(1, 1, o, 3);
            assert!((1..=999_999).contains(&line.amount_cents) && (1..=ITEMS).contains(&line.item));
            assert_eq!(line.district_info.len(), 24);
        }
    }
}
