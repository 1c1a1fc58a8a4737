//! The connection beside the load: the schema, its tables, statements before and after.

use mydyno_wire::{Client, WireError};

use super::generate::{Generated, Key};
use super::settings::{Engine, Settings};
use crate::streams::Streams;

/// The line for a connection that failed.
pub(super) fn connect_failure(error: &WireError) -> String {
    let text = error.server_error().map_or_else(|| error.to_string(), |error| error.message.clone());
    format!("Error when connecting to server: {} {text}", error.code())
}

/// The line for a statement that failed.
pub(super) fn query_failure(text: &str, error: &WireError) -> String {
    let reason = error.server_error().map_or_else(|| error.to_string(), |error| error.message.clone());
    format!("Cannot run query {text} ERROR : {reason}")
}

/// The connection for everything but the load; none where statements are only printed.
pub(super) struct Control<'a> {
    settings: &'a Settings,
    streams: &'a Streams,
    client: Option<Client>,
    /// Whether the schema on the server is this run's.
    made: bool,
    engine: Option<String>,
}

impl<'a> Control<'a> {
    /// Connects unless statements are only printed.
    ///
    /// # Errors
    /// The line for the error stream.
    pub(super) fn open(settings: &'a Settings, streams: &'a Streams) -> Result<Self, String> {
        let client = match settings.only_print {
            true => None,
            false => Some(Client::connect(&settings.connect).map_err(|error| connect_failure(&error))?),
        };
        Ok(Self { settings, streams, client, made: false, engine: None })
    }

    /// Whether the schema on the server is this run's.
    pub(super) fn has_made(&self) -> bool {
        self.made
    }

    /// The engine of tables that statements of the user make.
    pub(super) fn set_engine(&mut self, engine: Option<&Engine>) {
        self.engine = engine.map(|engine| engine.name.clone());
    }

    pub(super) fn send(&mut self, text: &str) -> Result<(), String> {
        let Some(client) = &mut self.client else {
            self.streams.output(format!("{text};\n").as_bytes());
            return Ok(());
        };
        client.execute(text).map(drop).map_err(|error| query_failure(text, &error))
    }

    fn quoted_schema(&self) -> String {
        format!("`{}`", self.settings.schema.replace('`', "``"))
    }

    /// Drops the schema if this run has made it, or may drop others'.
    ///
    /// # Errors
    /// The schema exists and is not this run's; the server's.
    pub(super) fn drop_schema(&mut self) -> Result<(), String> {
        if !self.made && !self.settings.allow_drop && self.schema_exists()? {
            return Err(format!(
                "the schema {} exists and this run has not made it: choose another one with --create-schema, or let it be \
                 dropped with --allow-drop-schema",
                self.quoted_schema()
            ));
        }
        self.send(&format!("DROP SCHEMA IF EXISTS {}", self.quoted_schema()))
    }

    fn schema_exists(&mut self) -> Result<bool, String> {
        let name = self.settings.schema.replace('\\', "\\\\").replace('\'', "\\'");
        let text = format!("SELECT 1 FROM information_schema.schemata WHERE schema_name = '{name}'");
        let Some(client) = &mut self.client else { return Ok(false) };
        client.query(&text).map(|rows| !rows.is_empty()).map_err(|error| query_failure(&text, &error))
    }

    /// Makes the schema with its tables and rows.
    ///
    /// # Errors
    /// The line for the error stream.
    pub(super) fn make_schema(&mut self, generated: Option<&Generated>) -> Result<(), String> {
        // With --no-drop a schema that exists is the server's error, but this run's own is made anew.
        if !self.settings.no_drop || self.made {
            self.drop_schema()?;
        }
        self.send(&format!("CREATE SCHEMA {}", self.quoted_schema()))?;
        self.made = true;
        match &mut self.client {
            Some(client) => {
                let schema = &self.settings.schema;
                client.use_schema(schema).map_err(|error| query_failure(&format!("use {schema}"), &error))?;
            }
            None => self.send(&format!("use {}", self.settings.schema))?,
        }
        if let Some(engine) = self.engine.take() {
            self.send(&format!("set storage_engine=`{engine}`"))?;
        }
        for text in &self.settings.create {
            self.send(text)?;
        }
        if let Some(generated) = generated {
            self.send(&generated.create)?;
            for text in &generated.inserts {
                self.send(text)?;
            }
        }
        Ok(())
    }

    /// Keys of the rows as SQL literals.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn keys(&mut self, key: Key) -> Result<Vec<String>, String> {
        let (Some(client), true) = (&mut self.client, key != Key::None) else { return Ok(Vec::new()) };
        let text = "SELECT id FROM t1";
        let rows = client.query(text).map_err(|error| query_failure(text, &error))?;
        Ok((0..rows.len()).filter_map(|row| Some(format!("'{}'", rows.text(row, 0)?))).collect())
    }
}
