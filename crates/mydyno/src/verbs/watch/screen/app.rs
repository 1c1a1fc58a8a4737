//! The content of the screen, and the keys that change it.

use std::collections::VecDeque;

use mydyno_model::diagnosis::Diagnosis;
use mydyno_model::watch::WatchInterval;
use mydyno_profile::folded::FunctionWeight;
use mydyno_run::watch::Seen;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::views;

/// Intervals that one can step back: an hour at 1 s.
const MOST: usize = 3600;

/// Functions that are kept.
const FUNCTIONS: usize = 40;

/// A message of the watch to the screen.
#[derive(Debug)]
pub enum Message {
    /// The watch begins: the name of its server or record.
    Begins(String),
    /// An interval is over.
    Interval(Box<WatchInterval>),
    /// The functions on the CPU so far, in samples.
    Functions(Vec<FunctionWeight>, f64),
    /// A sentence.
    Note(String),
    /// The end.
    Ends(Box<Diagnosis>),
}

impl Message {
    /// A copy of what the watch shows for a moment.
    pub fn of(seen: &Seen<'_>) -> Self {
        match seen {
            Seen::Begins(manifest) => {
                let server = manifest.address.as_deref().unwrap_or("this host");
                let version = manifest.version.as_deref().unwrap_or_default();
                Self::Begins(format!("{server} {version}").trim().to_owned())
            }
            Seen::Interval(interval) => Self::Interval(Box::new((*interval).clone())),
            Seen::Stacks(on_cpu) => {
                let functions = on_cpu.functions().into_iter().take(FUNCTIONS).collect();
                Self::Functions(functions, on_cpu.sum())
            }
            Seen::Note(text) => Self::Note(text.clone()),
            Seen::Ends(diagnosis) => Self::Ends(Box::new((*diagnosis).clone())),
        }
    }

    /// The diagnosis, of the end.
    pub fn diagnosis(self) -> Option<Box<Diagnosis>> {
        match self {
            Self::Ends(diagnosis) => Some(diagnosis),
            _ => None,
        }
    }
}

/// Whether a key ends the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes on.
    GoOn,
    /// It ends.
    End,
}

/// A view: its name, and its lines for so many columns.
type View = (&'static str, fn(&App, usize) -> Vec<String>);

/// The views, in the order of their keys; numbers and names fit into 60 columns.
pub const VIEWS: [View; 8] = [
    ("main", views::overview),
    ("cpu", views::cpus),
    ("disk", views::disks),
    ("innodb", views::innodb),
    ("waits", views::waits),
    ("sql", views::statements),
    ("budget", views::budget),
    ("stacks", views::profile),
];

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    title: String,
    view: usize,
    intervals: VecDeque<WatchInterval>,
    /// The interval that is shown while the screen is frozen, by its place.
    frozen: Option<usize>,
    /// Functions on the CPU, and all samples.
    pub functions: (Vec<FunctionWeight>, f64),
    notes: VecDeque<String>,
    scrolled: u16,
    color: bool,
}

impl App {
    /// An empty screen.
    pub fn new(color: bool) -> Self {
        Self {
            title: String::new(),
            view: 0,
            intervals: VecDeque::new(),
            frozen: None,
            functions: (Vec::new(), 0.0),
            notes: VecDeque::new(),
            scrolled: 0,
            color,
        }
    }

    /// Takes what the watch says.
    pub fn take(&mut self, message: Message) {
        match message {
            Message::Begins(title) => self.title = title,
            Message::Functions(functions, samples) => self.functions = (functions, samples),
            Message::Ends(_) => {}
            Message::Note(text) => {
                self.notes.push_back(text);
                if self.notes.len() > 3 {
                    self.notes.pop_front();
                }
            }
            Message::Interval(interval) => {
                self.intervals.push_back(*interval);
                if self.intervals.len() > MOST {
                    self.intervals.pop_front();
                    // The frozen one stays until it is the oldest.
                    self.frozen = self.frozen.map(|at| at.saturating_sub(1));
                }
            }
        }
    }

    /// Obeys a key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        let latest = self.intervals.len().saturating_sub(1);
        let at = self.frozen.unwrap_or(latest);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Action::End,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Action::End,
            KeyCode::Char(digit @ '1'..='8') => self.turn_to((digit as u32 - '1' as u32) as usize),
            KeyCode::Tab | KeyCode::Right => self.turn_to((self.view + 1) % VIEWS.len()),
            KeyCode::BackTab | KeyCode::Left => self.turn_to((self.view + VIEWS.len() - 1) % VIEWS.len()),
            KeyCode::Char(' ') => self.frozen = if self.frozen.is_some() { None } else { Some(latest) },
            KeyCode::Char('[' | ',') => self.frozen = Some(at.saturating_sub(1)),
            KeyCode::Char(']' | '.') => self.frozen = Some((at + 1).min(latest)),
            KeyCode::Char('{' | '<') => self.frozen = Some(at.saturating_sub(60)),
            KeyCode::Char('}' | '>') => self.frozen = Some((at + 60).min(latest)),
            KeyCode::Home => self.frozen = Some(0),
            KeyCode::End => self.frozen = None,
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            _ => {}
        }
        Action::GoOn
    }

    fn turn_to(&mut self, view: usize) {
        (self.view, self.scrolled) = (view, 0);
    }

    /// The interval that is shown; `None` before the first.
    pub fn shown(&self) -> Option<&WatchInterval> {
        self.frozen.map_or(self.intervals.back(), |at| self.intervals.get(at))
    }

    /// The intervals up to the one that is shown, at most so many.
    pub fn until_shown(&self, most: usize) -> Vec<&WatchInterval> {
        let end = self.frozen.map_or(self.intervals.len(), |at| (at + 1).min(self.intervals.len()));
        self.intervals.range(end.saturating_sub(most)..end).collect()
    }

    fn style(&self, color: Color, modifier: Modifier) -> Style {
        let style = Style::default().add_modifier(modifier);
        if self.color { style.fg(color) } else { style }
    }

    /// Draws everything for the size of the frame.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let notes = self.notes.len() as u16;
        let parts = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(if frame.area().height > 20 { 3 } else { 0 }),
            Constraint::Min(3),
            Constraint::Length(notes),
            Constraint::Length(1),
        ]);
        let [head, history, body, said, foot] = parts.areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        let (name, figure) = ("queries/s", "server.questions_per_s");
        let busy = self.until_shown(usize::from(history.width));
        let has_server = busy.iter().any(|i| i.figures.contains_key(figure));
        let figure = if has_server { figure } else { "host.cpu.busy_share" };
        let values: Vec<u64> = busy
            .iter()
            .map(|i| (1e3 * i.figures.get(figure).copied().unwrap_or(0.0)).max(0.0) as u64)
            .collect();
        if history.height > 0 {
            let title = Line::from(format!(
                "{} over the last {} intervals",
                if has_server { name } else { "CPU" },
                values.len()
            ));
            let [label, line] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(history);
            frame.render_widget(
                Paragraph::new(title.style(self.style(Color::DarkGray, Modifier::DIM))),
                label,
            );
            let style = self.style(Color::Cyan, Modifier::empty());
            frame.render_widget(Sparkline::default().data(&values).style(style), line);
        }
        let (_, view) = VIEWS[self.view];
        let lines: Vec<Line<'_>> =
            view(self, usize::from(body.width)).into_iter().map(|l| self.line(l)).collect();
        // A view that fits is not scrolled away.
        let most = (lines.len() as u16).saturating_sub(body.height);
        frame.render_widget(Paragraph::new(lines).scroll((self.scrolled.min(most), 0)), body);
        let said_lines: Vec<Line<'_>> = self.notes.iter().map(|note| Line::from(note.as_str())).collect();
        frame.render_widget(
            Paragraph::new(said_lines).style(self.style(Color::Yellow, Modifier::empty())),
            said,
        );
        let keys = match frame.area().width {
            0..=79 => "1-8 view · space freeze · [ ] step · q end",
            _ => "1-8 Tab view · space freeze · [ ] step · { } a minute · Home End · ↑↓ scroll · q end",
        };
        frame.render_widget(Paragraph::new(keys).style(self.style(Color::DarkGray, Modifier::DIM)), foot);
    }

    /// The two lines at the top: what and when; the views.
    fn head(&self) -> Vec<Line<'_>> {
        let clock = self.shown().and_then(|i| i.header.created.get(11..19)).unwrap_or("--:--:--");
        let state = match self.frozen {
            None => "live".to_owned(),
            Some(at) => format!("frozen, {} back", self.intervals.len().saturating_sub(at + 1)),
        };
        let first = Line::from(vec![
            Span::styled(format!("{clock} UTC "), self.style(Color::White, Modifier::BOLD)),
            Span::styled(format!("{state} "), self.style(Color::Yellow, Modifier::BOLD)),
            Span::raw(self.title.clone()),
        ]);
        let mut views = Vec::new();
        for (nth, (name, _)) in VIEWS.iter().enumerate() {
            let shown = nth == self.view;
            let modifier = if shown { Modifier::REVERSED } else { Modifier::empty() };
            views.push(Span::styled(format!("{} {name}", nth + 1), self.style(Color::Cyan, modifier)));
            views.push(Span::raw(" "));
        }
        vec![first, Line::from(views)]
    }

    /// A line of a view: headings begin with `#`.
    fn line(&self, text: String) -> Line<'static> {
        match text.strip_prefix("# ") {
            Some(heading) => Line::styled(heading.to_owned(), self.style(Color::Green, Modifier::BOLD)),
            None => Line::from(text),
        }
    }
}

#[cfg(test)]
mod tests;
