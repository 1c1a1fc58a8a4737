//! Grants on schemas by a pattern, and the schemas that each of them reaches.

use serde_json::{Value, json};

use crate::readings::Readings;
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Grants whose pattern with a % matches two schemas or more: account, pattern, number of schemas, their names, whether it may write,
/// and the user. Where text stands before the % that ends in `_`, as in `customer7_%`, the schemas are meant to
/// be several.
const WIDE: [Wording; 1] = [(
    "SELECT CONCAT(d.User, '@', d.Host), REPLACE(d.Db, CHAR(92), ''), COUNT(*), SUBSTRING_INDEX(GROUP_CONCAT(s.SCHEMA_NAME ORDER BY s.SCHEMA_NAME SEPARATOR ','), ',', 20), MAX('Y' IN (d.Insert_priv, d.Update_priv, d.Delete_priv, d.Drop_priv)), d.User FROM mysql.db d JOIN information_schema.SCHEMATA s ON s.SCHEMA_NAME LIKE REPLACE(d.Db, CHAR(92), '|') ESCAPE '|' WHERE LOCATE('%', REPLACE(d.Db, CONCAT(CHAR(92), '%'), '')) > 0 AND d.Db NOT LIKE '|%%' ESCAPE '|' AND d.Db NOT LIKE '%|_|%%' ESCAPE '|' AND d.User NOT IN ('', 'PUBLIC', 'mysql.sys', 'mysql.session') GROUP BY d.User, d.Host, d.Db HAVING COUNT(*) > 1 ORDER BY 1, 2 LIMIT 100",
    &[mysql(50_507..), mariadb(50_200..)],
)];

/// Entries of a list.
const LISTED: usize = 20;

/// Words of names that speak of a schema that is not in use by the customers.
const ASIDE: [&str; 18] = [
    "dev", "devel", "test", "tests", "testing", "stage", "staging", "stg", "qa", "uat", "demo", "sandbox",
    "archive", "archiv", "old", "backup", "bak", "tmp",
];

/// Puts the grants by a % that join what belongs apart.
pub(super) fn put(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (statement, table) = first_of(sql, &WIDE);
    let rows = table.map(|table| table.rows).map_err(|e| e.missing("SELECT on schema mysql"));
    let percents = rows.map(|rows| {
        let grants = rows.iter().filter_map(Grant::of);
        grants.filter_map(|grant| grant.by_percent()).take(LISTED).collect::<Vec<Value>>()
    });
    readings.put("server.grants.by_percent", statement, percents);
}

/// A grant by a pattern.
#[derive(Debug, Clone)]
struct Grant {
    account: String,
    user: String,
    pattern: String,
    count: u64,
    schemas: Vec<String>,
    writes: bool,
}

impl Grant {
    fn of(row: &Row) -> Option<Self> {
        let [account, pattern, count, schemas, writes, user] =
            <[Option<String>; 6]>::try_from(row.clone()).ok()?;
        Some(Self {
            account: account?,
            user: user?,
            pattern: pattern?,
            count: count?.parse().ok()?,
            schemas: schemas?.split(',').map(str::to_owned).collect(),
            writes: writes? == "1",
        })
    }

    /// The entry of a grant by %, where there is something to say: it reaches schemas in use and others beside them, or the schema that its text without the % names
    /// and further ones. A user of that very name owns the family.
    fn by_percent(&self) -> Option<Value> {
        let aside = self.schemas.iter().filter(|name| is_aside(name)).count();
        let mixed = aside > 0 && aside < self.schemas.len();
        let stem = self.pattern.split('%').next().unwrap_or_default();
        let names_one = self.schemas.iter().any(|name| name.eq_ignore_ascii_case(stem));
        let family = aside == 0 && names_one;
        (!self.user.eq_ignore_ascii_case(stem) && (mixed || family)).then(|| {
            let some: Vec<&String> = self.schemas.iter().take(5).collect();
            json!({
                "account": self.account, "pattern": self.pattern, "schemas": some, "number": self.count,
                "writes": self.writes, "mixed": mixed,
            })
        })
    }
}

/// Whether one of the words of a name speaks of a test, an archive or the like.
fn is_aside(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower
        .split(['_', '-', '.'])
        .any(|word| ASIDE.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::only_reads;

    fn grant(user: &str, pattern: &str, schemas: &str) -> Grant {
        let count = schemas.split(',').count().to_string();
        let account = format!("{user}@%");
        let row: Row =
            [&account, pattern, &count, schemas, "1", user].map(|cell| Some(cell.to_owned())).to_vec();
        Grant::of(&row).unwrap()
    }

    #[test]
    fn a_percent_that_joins_production_and_others_is_told() {
        assert!(only_reads(WIDE[0].0));
        let found = grant("dev_team", "claims%", "claims,claims_archive,claims_dev").by_percent().unwrap();
        let expected = json!({
            "account": "dev_team@%", "pattern": "claims%", "schemas": ["claims", "claims_archive", "claims_dev"],
            "number": 3, "writes": true, "mixed": true,
        });
        assert_eq!(found, expected);
        assert_eq!(grant("bi", "shop%", "shop,shopping").by_percent().unwrap()["mixed"], false);
        assert!(grant("a", "app%", "app1_dev,app2").by_percent().is_some());
    }

    #[test]
    fn families_of_schemas_that_are_meant_are_not_told() {
        for (user, pattern, schemas) in [
            ("shop", "shop%", "shop,shop_log"),
            ("shop", "shop%", "shop,shop_test"),
            ("dev", "dev%", "dev,dev_a"),
            ("dev", "app%", "app_dev,app_test2"),
            ("bi", "shop%", "shop_a,shop_b"),
        ] {
            assert!(grant(user, pattern, schemas).by_percent().is_none(), "{pattern} {schemas}");
        }
    }
}
