//! The mix and the inputs of the five transactions (clauses 2.4.1 to 2.8.1 and 5.2.3).

use mydyno_stats::rng::Rng;

use super::nurand::Constants;
use super::profile::{Profile, Skew};
use super::{CUSTOMERS, DISTRICTS, FEWEST_LINES, ITEMS, LAST_NAMES, MOST_LINES};

/// An item number that no item has: the last line of one new order in a hundred, which rolls back (clause 2.4.1.5).
pub const UNUSED_ITEM: u64 = ITEMS + 1;

/// One of the five transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Enters an order.
    NewOrder,
    /// Books a payment.
    Payment,
    /// Reads a customer's last order.
    OrderStatus,
    /// Delivers the oldest open order of each district.
    Delivery,
    /// Counts the low stock of recently ordered items.
    StockLevel,
}

/// Draws a transaction independently of those before it, with the weights of the cards.
pub fn by_cards(rng: &mut Rng) -> Kind {
    let mut left = rng.below(DECK as u64) as usize;
    for (kind, cards) in CARDS {
        if left < cards {
            return kind;
        }
        left -= cards;
    }
    Kind::NewOrder
}

/// Cards of a deck (clause 5.2.4.2).
const CARDS: [(Kind, usize); 5] = [
    (Kind::NewOrder, 10),
    (Kind::Payment, 10),
    (Kind::OrderStatus, 1),
    (Kind::Delivery, 1),
    (Kind::StockLevel, 1),
];

/// A deck of 23 cards, which is shuffled whenever all are dealt. It allocates nothing, so that a copy is cheap.
#[derive(Debug, Clone)]
pub struct Deck {
    cards: [Kind; DECK],
    left: usize,
}

/// Number of all [`CARDS`].
const DECK: usize = 23;

impl Default for Deck {
    /// All cards are dealt.
    fn default() -> Self {
        let mut cards = [Kind::NewOrder; DECK];
        let all = CARDS.into_iter().flat_map(|(kind, n)| std::iter::repeat_n(kind, n));
        for (place, kind) in cards.iter_mut().zip(all) {
            *place = kind;
        }
        Self { cards, left: 0 }
    }
}

impl Deck {
    /// The next card.
    pub fn deal(&mut self, rng: &mut Rng) -> Kind {
        if self.left == 0 {
            rng.shuffle(&mut self.cards);
            self.left = DECK;
        }
        self.left -= 1;
        self.cards[self.left]
    }
}

/// How a transaction names a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomerSelector {
    /// By C_ID.
    Id(u64),
    /// By the number of a last name, see [`super::text::last_name`].
    LastName(u64),
}

/// A line of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line {
    /// OL_I_ID, or [`UNUSED_ITEM`].
    pub item: u64,
    /// OL_SUPPLY_W_ID.
    pub supplier: u64,
    /// OL_QUANTITY, from 1 to 10.
    pub quantity: u64,
}

/// The lines of a new order, without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    lines: [Line; MOST_LINES as usize],
    count: usize,
}

impl Lines {
    /// Adds a line behind the others; no more than [`MOST_LINES`] are kept.
    fn push(&mut self, line: Line) {
        if let Some(place) = self.lines.get_mut(self.count) {
            *place = line;
            self.count += 1;
        }
    }
}

impl std::ops::Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        &self.lines[..self.count]
    }
}

impl std::ops::DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [Line] {
        &mut self.lines[..self.count]
    }
}

/// Input of New-Order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewOrder {
    /// Home warehouse.
    pub warehouse: u64,
    /// D_ID.
    pub district: u64,
    /// C_ID.
    pub customer: u64,
    /// Its lines.
    pub lines: Lines,
}

impl NewOrder {
    /// O_ALL_LOCAL: whether the home warehouse supplies every line.
    pub fn is_all_local(&self) -> bool {
        self.lines.iter().all(|line| line.supplier == self.warehouse)
    }

    /// Whether it ends with a rollback.
    pub fn is_rolled_back(&self) -> bool {
        self.lines.iter().any(|line| line.item == UNUSED_ITEM)
    }
}

/// Input of Payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payment {
    /// Home warehouse.
    pub warehouse: u64,
    /// D_ID of the payment.
    pub district: u64,
    /// The customer's warehouse.
    pub customer_warehouse: u64,
    /// The customer's district.
    pub customer_district: u64,
    /// The customer.
    pub customer: CustomerSelector,
    /// H_AMOUNT, from 1.00 to 5,000.00.
    pub amount_cents: u64,
}

/// Input of Order-Status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderStatus {
    /// Home warehouse.
    pub warehouse: u64,
    /// D_ID.
    pub district: u64,
    /// The customer.
    pub customer: CustomerSelector,
}

/// Input of Delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Home warehouse.
    pub warehouse: u64,
    /// O_CARRIER_ID.
    pub carrier: u64,
}

/// Input of Stock-Level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockLevel {
    /// Home warehouse.
    pub warehouse: u64,
    /// D_ID: the same for all transactions of a terminal (clause 2.8.1.1).
    pub district: u64,
    /// Quantities below it count.
    pub threshold: u64,
}

/// The input of a transaction. It is drawn into place and never stored, so the size of its largest variant costs nothing,
/// and a box would be an allocation in each transaction.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Of New-Order.
    NewOrder(NewOrder),
    /// Of Payment.
    Payment(Payment),
    /// Of Order-Status.
    OrderStatus(OrderStatus),
    /// Of Delivery.
    Delivery(Delivery),
    /// Of Stock-Level.
    StockLevel(StockLevel),
}

/// Draws inputs for a database of so many warehouses.
#[derive(Debug, Clone, Copy)]
pub struct Inputs {
    /// Warehouses.
    pub warehouses: u64,
    /// NURand's constants of this run.
    pub constants: Constants,
    /// The work of a driver.
    pub profile: Profile,
}

impl Inputs {
    /// Another warehouse than `home`, each equally likely; `home` where it is the only one.
    fn other_warehouse(&self, rng: &mut Rng, home: u64) -> u64 {
        if self.warehouses < 2 {
            return home;
        }
        let other = rng.between(1, self.warehouses - 1);
        if other < home { other } else { other + 1 }
    }

    fn item(&self, rng: &mut Rng) -> u64 {
        match self.profile.items {
            Skew::NuRand => self.constants.item(rng),
            Skew::Uniform => rng.between(1, ITEMS),
        }
    }

    fn customer(&self, rng: &mut Rng) -> u64 {
        match self.profile.customers {
            Skew::NuRand => self.constants.customer(rng),
            Skew::Uniform => rng.between(1, CUSTOMERS),
        }
    }

    fn last_name(&self, rng: &mut Rng) -> u64 {
        match self.profile.names {
            Skew::NuRand => self.constants.last_name(rng),
            Skew::Uniform => rng.below(LAST_NAMES),
        }
    }

    /// By last name in 60 of 100 draws.
    fn select_customer(&self, rng: &mut Rng) -> CustomerSelector {
        if rng.below(100) < 60 {
            CustomerSelector::LastName(self.last_name(rng))
        } else {
            CustomerSelector::Id(self.customer(rng))
        }
    }

    /// Input of New-Order (clause 2.4.1): 1 of 100 lines is remote, 1 of 100 orders names an unused item.
    pub fn new_order(&self, rng: &mut Rng, warehouse: u64) -> NewOrder {
        let district = rng.between(1, DISTRICTS);
        let customer = self.customer(rng);
        let count = rng.between(FEWEST_LINES, MOST_LINES);
        let is_rolled_back = rng.below(100) == 0;
        let mut lines = Lines::default();
        for _ in 0..count {
            let item = self.item(rng);
            let is_remote = rng.below(100) < self.profile.remote_lines_percent;
            let supplier = if is_remote { self.other_warehouse(rng, warehouse) } else { warehouse };
            lines.push(Line { item, supplier, quantity: rng.between(1, 10) });
        }
        if let Some(last) = lines.last_mut().filter(|_| is_rolled_back) {
            last.item = UNUSED_ITEM;
        }
        NewOrder { warehouse, district, customer, lines }
    }

    /// Input of Payment (clause 2.5.1): 15 of 100 customers are of another warehouse, where there is one.
    pub fn payment(&self, rng: &mut Rng, warehouse: u64) -> Payment {
        let district = rng.between(1, DISTRICTS);
        let is_remote = rng.below(100) >= 100 - self.profile.remote_payments_percent;
        let (customer_warehouse, customer_district) = if is_remote {
            (self.other_warehouse(rng, warehouse), rng.between(1, DISTRICTS))
        } else {
            (warehouse, district)
        };
        let customer = self.select_customer(rng);
        let amount_cents = rng.between(100, 500_000);
        Payment { warehouse, district, customer_warehouse, customer_district, customer, amount_cents }
    }

    /// Input of Order-Status (clause 2.6.1).
    pub fn order_status(&self, rng: &mut Rng, warehouse: u64) -> OrderStatus {
        OrderStatus { warehouse, district: rng.between(1, DISTRICTS), customer: self.select_customer(rng) }
    }

    /// The input of a transaction of a terminal, which belongs to a warehouse and, for Stock-Level, to a district.
    pub fn input(&self, rng: &mut Rng, kind: Kind, warehouse: u64, district: u64) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(self.new_order(rng, warehouse)),
            Kind::Payment => Input::Payment(self.payment(rng, warehouse)),
            Kind::OrderStatus => Input::OrderStatus(self.order_status(rng, warehouse)),
            Kind::Delivery => Input::Delivery(Delivery { warehouse, carrier: Self::carrier(rng) }),
            Kind::StockLevel => {
                Input::StockLevel(StockLevel { warehouse, district, threshold: Self::threshold(rng) })
            }
        }
    }

    /// O_CARRIER_ID of Delivery (clause 2.7.1).
    pub fn carrier(rng: &mut Rng) -> u64 {
        rng.between(1, 10)
    }

    /// Threshold of Stock-Level (clause 2.8.1).
    pub fn threshold(rng: &mut Rng) -> u64 {
        rng.between(10, 20)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tpcc::profile::{PROFILES, SPECIFICATION};

    fn inputs(warehouses: u64) -> Inputs {
        Inputs { warehouses, constants: Constants::for_load(&mut Rng::from_seed(3)), profile: SPECIFICATION }
    }

    /// A share within five standard deviations of what is expected.
    fn assert_share(what: &str, hits: u64, n: u64, share: f64) {
        let (n, hits) = (n as f64, hits as f64);
        let limit = 5.0 * (n * share * (1.0 - share)).sqrt();
        assert!((hits - n * share).abs() <= limit, "{what}: {hits} of {n}, expected {}", n * share);
    }

    #[test]
    fn a_deck_holds_23_cards_in_any_order() {
        let mut rng = Rng::from_seed(1);
        let mut deck = Deck::default();
        let mut first = BTreeMap::new();
        for _ in 0..500 {
            let dealt: Vec<Kind> = (0..23).map(|_| deck.deal(&mut rng)).collect();
            *first.entry(dealt[0]).or_insert(0u64) += 1;
            for (kind, n) in CARDS {
                assert_eq!(dealt.iter().filter(|k| **k == kind).count(), n);
            }
        }
        assert_share("first cards", first[&Kind::Delivery], 500, 1.0 / 23.0);
    }

    #[test]
    fn independent_draws_have_the_weights_of_the_cards() {
        let mut rng = Rng::from_seed(2);
        let mut counts = BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(by_cards(&mut rng)).or_insert(0u64) += 1;
        }
        for (kind, cards) in CARDS {
            assert_share(&format!("{kind:?}"), counts[&kind], 100_000, cards as f64 / 23.0);
        }
    }

    #[test]
    fn new_orders_keep_the_input_limits() {
        const ORDERS: u64 = 50_000;
        let (inputs, mut rng) = (inputs(5), Rng::from_seed(4));
        let (mut lines, mut remote, mut rolled_back) = (0, 0, 0);
        let mut suppliers = BTreeMap::new();
        for _ in 0..ORDERS {
            let order = inputs.new_order(&mut rng, 3);
            assert!((1..=10).contains(&order.district) && (1..=CUSTOMERS).contains(&order.customer));
            assert!((5..=15).contains(&order.lines.len()));
            let local = order.lines.iter().filter(|line| line.supplier == 3).count();
            assert_eq!(order.is_all_local(), local == order.lines.len());
            for (place, line) in order.lines.iter().enumerate() {
                let is_last = place + 1 == order.lines.len();
                assert!(line.item <= ITEMS || is_last && line.item == UNUSED_ITEM);
                assert!((1..=10).contains(&line.quantity));
                if line.supplier != 3 {
                    *suppliers.entry(line.supplier).or_insert(0u64) += 1;
                }
            }
            lines += order.lines.len() as u64;
            remote += (order.lines.len() - local) as u64;
            rolled_back += u64::from(order.is_rolled_back());
        }
        assert!((lines as f64 / ORDERS as f64 - 10.0).abs() < 0.08, "{lines}");
        assert_share("remote lines", remote, lines, 0.01);
        assert_share("rollbacks", rolled_back, ORDERS, 0.01);
        assert_eq!(suppliers.keys().copied().collect::<Vec<_>>(), [1, 2, 4, 5]);
        for n in suppliers.into_values() {
            assert_share("supplier", n, remote, 0.25);
        }
    }

    #[test]
    fn payments_keep_the_input_limits() {
        const PAYMENTS: u64 = 50_000;
        let (inputs, mut rng) = (inputs(2), Rng::from_seed(5));
        let (mut remote, mut by_name, mut elsewhere) = (0, 0, 0);
        for _ in 0..PAYMENTS {
            let payment = inputs.payment(&mut rng, 1);
            assert!((100..=500_000).contains(&payment.amount_cents));
            if payment.customer_warehouse == 1 {
                assert_eq!(payment.customer_district, payment.district);
            } else {
                assert_eq!(payment.customer_warehouse, 2);
                remote += 1;
                elsewhere += u64::from(payment.customer_district != payment.district);
            }
            by_name += u64::from(matches!(payment.customer, CustomerSelector::LastName(_)));
        }
        assert_share("remote payments", remote, PAYMENTS, 0.15);
        assert_share("other districts", elsewhere, remote, 0.9);
        assert_share("by name", by_name, PAYMENTS, 0.6);
    }

    #[test]
    fn a_driver_s_profile_decides_remoteness_and_skew() {
        for profile in PROFILES {
            let inputs = Inputs { profile, ..inputs(4) };
            let mut rng = Rng::from_seed(8);
            let (mut lines, mut remote, mut hottest, mut elsewhere) = (0, 0, BTreeMap::new(), 0);
            for _ in 0..10_000 {
                let order = inputs.new_order(&mut rng, 2);
                for line in order.lines.iter().filter(|line| line.item <= ITEMS) {
                    lines += 1;
                    remote += u64::from(line.supplier != 2);
                    *hottest.entry(line.item).or_insert(0u64) += 1;
                }
                elsewhere += u64::from(inputs.payment(&mut rng, 2).customer_warehouse != 2);
            }
            assert_share(profile.name, remote, lines, profile.remote_lines_percent as f64 / 100.0);
            assert_share(profile.name, elsewhere, 10_000, profile.remote_payments_percent as f64 / 100.0);
            // Of 100,000 draws the thousand most frequent items: some 33 % by NURand, some 4 % of uniform ones.
            let mut counts: Vec<u64> = hottest.into_values().collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let share = counts[..1_000].iter().sum::<u64>() as f64 / lines as f64;
            let expected = if profile.items == Skew::NuRand { 0.3..0.4 } else { 0.0..0.1 };
            assert!(expected.contains(&share), "{}: {share}", profile.name);
        }
    }

    #[test]
    fn one_warehouse_supplies_and_is_paid_itself() {
        let (inputs, mut rng) = (inputs(1), Rng::from_seed(6));
        for _ in 0..5_000 {
            assert!(inputs.new_order(&mut rng, 1).is_all_local());
            assert_eq!(inputs.payment(&mut rng, 1).customer_warehouse, 1);
        }
    }

    #[test]
    fn the_other_inputs_cover_their_ranges() {
        let (inputs, mut rng) = (inputs(1), Rng::from_seed(7));
        let mut by_name = 0;
        let (mut carriers, mut thresholds) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..10_000 {
            let status = inputs.order_status(&mut rng, 1);
            assert!((1..=10).contains(&status.district));
            by_name += u64::from(matches!(status.customer, CustomerSelector::LastName(_)));
            *carriers.entry(Inputs::carrier(&mut rng)).or_insert(0) += 1;
            *thresholds.entry(Inputs::threshold(&mut rng)).or_insert(0) += 1;
        }
        assert_share("by name", by_name, 10_000, 0.6);
        assert_eq!(carriers.into_keys().collect::<Vec<u64>>(), (1..=10).collect::<Vec<_>>());
        assert_eq!(thresholds.into_keys().collect::<Vec<u64>>(), (10..=20).collect::<Vec<_>>());
    }
}
