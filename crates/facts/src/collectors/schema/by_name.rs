//! Columns whose names say what their type does not fit: money in FLOAT or texts, dates in texts, phone numbers in integers.

use serde_json::Value;

use super::described::Column;

/// Parts of the names of columns that hold money.
const MONEY: [&str; 40] = [
    "price",
    "amount",
    "balance",
    "salary",
    "cost",
    "total",
    "fee",
    "tax",
    "payment",
    "gross",
    "net",
    "vat",
    "discount",
    "revenue",
    "income",
    "charge",
    "betrag",
    "preis",
    "einzelpreis",
    "gesamtpreis",
    "mwst",
    "ust",
    "netto",
    "brutto",
    "gehalt",
    "kosten",
    "saldo",
    "steuer",
    "rabatt",
    "umsatz",
    "gebuehr",
    "summe",
    "montant",
    "prix",
    "solde",
    "importe",
    "precio",
    "saldos",
    "prezzo",
    "kwota",
];

/// Last parts of the names of texts that hold money; other words of money name a kind or a number there.
const SUMS: [&str; 8] = ["price", "amount", "balance", "salary", "cost", "total", "revenue", "discount"];

/// Parts of the names of columns that hold a measure or a number without a unit, whatever the other parts speak of.
const MEASURES: [&str; 20] = [
    "mg", "g", "kg", "ml", "l", "mm", "cm", "m", "km", "ms", "seconds", "hours", "index", "score", "points",
    "count", "ratio", "percent", "pct", "weight",
];

/// Ends of the names of columns that hold a date or a time, and whole such names.
const DATES: [&str; 8] = ["_at", "_date", "_time", "_seen", "_day", "birthday", "birthdate", "date"];

/// The same for texts that are as long as a date: words that also name places and other ends.
const SHORT_DATES: [&str; 4] = ["_am", "datum", "_dat", "geburtstag"];
const WHOLE_DATES: [&str; 7] = ["von", "bis", "beginn", "gueltig_ab", "gueltig_von", "gueltig_bis", "ablauf"];

/// Parts of the names of columns that keep when something began to be, and those that say that they follow changes.
const CREATED: [&str; 12] = [
    "created",
    "creation",
    "inserted",
    "added",
    "registered",
    "ordered",
    "signup",
    "born",
    "angelegt",
    "erstellt",
    "erfasst",
    "anlage",
];
const CHANGED: [&str; 9] =
    ["updated", "update", "modified", "changed", "change", "last", "touched", "geaendert", "aktualisiert"];

/// Parts of the names of columns whose times lie ahead.
const AHEAD: [&str; 12] = [
    "expires",
    "expire",
    "expiry",
    "expiration",
    "until",
    "due",
    "deadline",
    "maturity",
    "renewal",
    "renews",
    "ends",
    "end",
];

/// Parts of the names of columns that hold digits and no number: a leading zero counts.
const CODES: [&str; 10] =
    ["phone", "mobile", "fax", "zip", "zipcode", "postcode", "plz", "iban", "isbn", "ssn"];

/// Parts of the names of columns that count or refer, whatever the other parts speak of.
const REFERENCES: [&str; 7] = ["id", "count", "type", "ext", "verified", "is", "has"];

/// Parts of the names of columns that hold the address of a client.
const ADDRESSES: [&str; 3] = ["ip", "ipaddr", "ipaddress"];

/// Words that MySQL 8.0 reserves, and 5.7 does not, as far as columns are named so.
const RESERVED: [&str; 17] = [
    "rank",
    "groups",
    "system",
    "window",
    "lead",
    "lag",
    "rows",
    "row",
    "over",
    "empty",
    "except",
    "function",
    "grouping",
    "of",
    "recursive",
    "cube",
    "lateral",
];

/// A rule: the fact that lists the columns, and whether a column is one of them. The name comes in lower case, and by its parts
/// between underscores.
type Rule = (&'static str, fn(&str, &[&str], &Column<'_>) -> bool);

const RULES: [Rule; 11] = [
    ("schema.inexact_money", |_, parts, column| {
        let binary = is_of(column, &["float", "double"]) && has(parts, &MONEY);
        let text = is_of(column, &["char", "varchar"]) && parts.last().is_some_and(|p| SUMS.contains(p));
        (binary || text) && !has(parts, &MEASURES)
    }),
    ("schema.text_dates", |name, _, column| {
        let short = is_of(column, &["char", "varchar"])
            && length(column).is_some_and(|length| (8..20).contains(&length))
            && (WHOLE_DATES.contains(&name) || SHORT_DATES.iter().any(|end| name.ends_with(end)));
        short || is_of(column, &["char", "varchar", "text"]) && DATES.iter().any(|end| name.ends_with(end))
    }),
    ("schema.created_overwritten", |_, parts, column| {
        column.on_update && has(parts, &CREATED) && !has(parts, &CHANGED)
    }),
    ("schema.timestamps_ahead", |_, parts, column| is_of(column, &["timestamp"]) && has(parts, &AHEAD)),
    ("schema.codes_as_numbers", |_, parts, column| {
        is_of(column, &["int", "mediumint", "bigint"]) && has(parts, &CODES) && !has(parts, &REFERENCES)
    }),
    ("schema.ids_in_a_text", |name, _, column| {
        is_of(column, &["varchar", "text", "mediumtext", "longtext"]) && name.ends_with("_ids")
    }),
    ("schema.passwords_in_clear", |name, parts, column| {
        let is_password = parts.last().is_some_and(|last| ["password", "passwd", "pwd"].contains(last));
        let clear = has(parts, &["plain", "clear", "cleartext", "plaintext"]);
        let secret = is_password && (clear || length(column).is_some_and(|length| length < 32));
        let number = has(parts, &["card", "cc", "creditcard"]) && has(parts, &["number", "no", "num", "pan"]);
        let whole = name.ends_with("cardnumber") || name == "pan";
        // A number of a card has 12 to 19 digits; what is longer may be encrypted, what is shorter a part of it.
        let other = ["id", "gift", "sim", "loyalty", "member", "masked", "last", "hash", "token"];
        let card = (number || whole)
            && !has(parts, &other)
            && length(column).is_some_and(|length| (12..=25).contains(&length));
        is_of(column, &["char", "varchar"]) && (secret || card || has(parts, &["cvv", "cvc", "cvv2"]))
    }),
    ("server.columns.zero_dates", |_, _, column| column.zero_date),
    ("schema.passwords_hashed_fast", |_, parts, column| {
        let words = ["password", "passwd", "pwd", "passwort", "kennwort"];
        let hash = ["hash", "md5", "sha1", "sha", "hashed"];
        let named = match parts {
            [.., word, last] if hash.contains(last) => words.contains(word),
            [.., last] => words.contains(last),
            [] => false,
        };
        // As many characters as MD5, SHA-1 and SHA-256 have in hexadecimal; a VARCHAR(64) may hold anything.
        let width = match length(column) {
            Some(32 | 40) => is_of(column, &["char", "varchar"]),
            Some(64) => is_of(column, &["char"]),
            _ => false,
        };
        named && width
    }),
    ("schema.reserved_later", |name, _, _| RESERVED.contains(&name)),
    ("schema.addresses_too_short", |_, parts, column| {
        is_of(column, &["char", "varchar"])
            && has(parts, &ADDRESSES)
            && length(column).is_some_and(|length| (7..39).contains(&length))
    }),
];

fn is_of(column: &Column<'_>, types: &[&str]) -> bool {
    types.contains(&column.data_type.to_ascii_lowercase().as_str())
}

fn has(parts: &[&str], words: &[&str]) -> bool {
    parts.iter().any(|part| words.contains(part))
}

/// The length that the type of a text states, in characters.
fn length(column: &Column<'_>) -> Option<u64> {
    column.column_type.split_once('(')?.1.split_once(')')?.0.parse().ok()
}

/// The columns found, by rule.
#[derive(Default)]
pub struct ByName([Vec<Value>; RULES.len()]);

impl ByName {
    /// Looks at one column of a table.
    pub fn column(&mut self, table: &str, column: &Column<'_>) {
        let name = column.name.to_ascii_lowercase();
        let parts: Vec<&str> = name.split('_').collect();
        for (list, (_, is_one)) in self.0.iter_mut().zip(RULES) {
            if is_one(&name, &parts, column) {
                list.push(Value::from(format!("{table}.{}", column.name)));
            }
        }
    }

    /// Takes what was found: each fact with its columns.
    pub fn take(&mut self) -> impl Iterator<Item = (&'static str, Vec<Value>)> {
        std::mem::take(&mut self.0).into_iter().zip(RULES).map(|(list, (id, _))| (id, list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_listed_where_its_name_and_its_type_do_not_fit() {
        let rows = [
            ("price", "float", "float", "schema.inexact_money"),
            ("costume", "double", "double", ""),
            ("amount_mg", "double", "double", ""),
            ("price_index", "float", "float", ""),
            ("order_total", "varchar", "varchar(20)", "schema.inexact_money"),
            ("tax", "varchar", "varchar(20)", ""),
            ("price_list", "varchar", "varchar(20)", ""),
            ("sold_at", "varchar", "varchar(20)", "schema.text_dates"),
            ("von", "char", "char(10)", "schema.text_dates"),
            ("von", "varchar", "varchar(50)", ""),
            ("erstellt_am", "varchar", "varchar(19)", "schema.text_dates"),
            ("valid_until", "timestamp", "timestamp", "schema.timestamps_ahead"),
            ("never", "date", "date", "server.columns.zero_dates"),
            ("created_at", "timestamp", "timestamp", ""),
            ("created_at", "timestamp", "timestamp on update", "schema.created_overwritten"),
            ("created_or_updated", "timestamp", "timestamp on update", ""),
            ("updated_at", "timestamp", "timestamp on update", ""),
            ("valid_until", "datetime", "datetime", ""),
            ("phone", "bigint", "bigint(20)", "schema.codes_as_numbers"),
            ("phone_id", "int", "int(11)", ""),
            ("zip", "varchar", "varchar(10)", ""),
            ("tag_ids", "varchar", "varchar(255)", "schema.ids_in_a_text"),
            ("tag_ids", "json", "json", ""),
            ("password", "varchar", "varchar(20)", "schema.passwords_in_clear"),
            ("user_password", "varchar", "varchar(31)", "schema.passwords_in_clear"),
            ("password", "varchar", "varchar(32)", "schema.passwords_hashed_fast"),
            ("passwd", "char", "char(40)", "schema.passwords_hashed_fast"),
            ("user_pwd_md5", "char", "char(32)", "schema.passwords_hashed_fast"),
            ("password_hash", "char", "char(64)", "schema.passwords_hashed_fast"),
            ("password_hash", "varchar", "varchar(64)", ""),
            ("password", "varchar", "varchar(60)", ""),
            ("password", "char", "char(60)", ""),
            ("file_hash", "char", "char(40)", ""),
            ("plain_password", "varchar", "varchar(255)", "schema.passwords_in_clear"),
            ("password_set_by", "varchar", "varchar(20)", ""),
            ("card_cvv", "char", "char(3)", "schema.passwords_in_clear"),
            ("card_number", "varchar", "varchar(19)", "schema.passwords_in_clear"),
            ("cardnumber", "char", "char(16)", "schema.passwords_in_clear"),
            ("card_number", "varchar", "varchar(255)", ""),
            ("card_number_last", "char", "char(4)", ""),
            ("loyalty_no", "varchar", "varchar(16)", ""),
            ("id_card_no", "varchar", "varchar(18)", ""),
            ("client_ip", "varchar", "varchar(15)", "schema.addresses_too_short"),
            ("ip", "char", "char(39)", ""),
            ("ip", "int", "int unsigned", ""),
            ("Rank", "int", "int", "schema.reserved_later"),
            ("rank_of", "int", "int", ""),
        ];
        for (name, data_type, column_type, fact) in rows {
            let on_update = column_type.ends_with(" on update");
            let mut found = ByName::default();
            let zero_date = name == "never";
            let column = Column { data_type, on_update, zero_date, ..Column::of(name, column_type, None) };
            found.column("shop.t", &column);
            let listed: Vec<&str> =
                found.take().filter(|(_, list)| !list.is_empty()).map(|(id, _)| id).collect();
            let expected: Vec<&str> = (!fact.is_empty()).then_some(fact).into_iter().collect();
            assert_eq!(listed, expected, "{name} {column_type}");
        }
    }
}
