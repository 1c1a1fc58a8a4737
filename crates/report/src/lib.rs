//! Run records as HTML, Markdown, terminal text or JSON.
