//! Functions that scripts call through `ffi`, so that LuaJIT compiles the calls: random numbers, statements, events. Their
//! declarations stand in `lua/prelude/ffi_calls.lua`.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use mydyno_stats::rng::Rng;
use mydyno_wire::Value;
use mydyno_workload::options::Options as KeyOptions;

use super::super::engine::Engine;
use super::connection::{Answer, Connection, Context, Rows};
use super::random::{Draws, fill, permuted};
use super::target::Target;

/// The data of a state's functions.
pub(super) struct Api {
    pub(super) engine: Arc<Engine>,
    pub(super) target: Arc<Target>,
    pub(super) thread: usize,
    pub(super) connections: RefCell<Vec<Option<Connection>>>,
    pub(super) rng: RefCell<Rng>,
    draws: RefCell<Draws>,
    unique: Arc<AtomicU64>,
    /// The beginning of the event at work.
    began: Cell<Option<Instant>>,
}

/// An answer as scripts read it.
#[repr(C)]
#[derive(Default)]
pub(super) struct LuaAnswer {
    pub(super) columns: f64,
    pub(super) rows: f64,
    pub(super) serial: f64,
}

/// A parameter as scripts write it.
#[repr(C)]
pub(super) struct LuaParam {
    pub(super) number: i64,
    pub(super) real: f64,
    pub(super) bytes: *const u8,
    pub(super) length: u32,
    /// 0 NULL, 1 `number`, 2 `real`, 3 `bytes`.
    pub(super) kind: u8,
}

/// A cell as scripts read it.
#[repr(C)]
struct LuaCell {
    bytes: *const u8,
    /// -1 for NULL.
    length: f64,
}

type This = *const Api;

/// The functions in the order of their declaration.
#[repr(C)]
pub(super) struct Functions {
    pub(super) next_event: unsafe extern "C" fn(This) -> bool,
    pub(super) event_ended: unsafe extern "C" fn(This),
    pub(super) event_given_up: unsafe extern "C" fn(This),
    pub(super) draw: unsafe extern "C" fn(This, u32, f64, f64) -> f64,
    pub(super) bits: unsafe extern "C" fn(This) -> f64,
    pub(super) fraction: unsafe extern "C" fn(This) -> f64,
    pub(super) unique: unsafe extern "C" fn(This) -> f64,
    pub(super) fill: unsafe extern "C" fn(This, *mut u8, u32),
    pub(super) query: unsafe extern "C" fn(This, u32, *const u8, usize, *mut LuaAnswer) -> u8,
    pub(super) execute:
        unsafe extern "C" fn(This, u32, u32, *const *const LuaParam, u32, *mut LuaAnswer) -> u8,
    rows: unsafe extern "C" fn(This, u32, f64) -> *mut Rows,
    row: unsafe extern "C" fn(*mut Rows, *mut LuaCell) -> bool,
    free: unsafe extern "C" fn(*mut Rows),
}

/// The functions, for `ffi.cast`.
pub(super) static FUNCTIONS: Functions = Functions {
    next_event,
    event_ended,
    event_given_up,
    draw,
    bits,
    fraction,
    unique,
    fill: fill_text,
    query,
    execute,
    rows,
    row,
    free,
};

impl Api {
    pub(super) fn new(
        engine: &Arc<Engine>,
        target: &Arc<Target>,
        distributions: &Arc<[KeyOptions]>,
        unique: &Arc<AtomicU64>,
        thread: usize,
    ) -> Self {
        Self {
            rng: RefCell::new(engine.rng(thread as u64)),
            engine: Arc::clone(engine),
            target: Arc::clone(target),
            thread,
            connections: RefCell::default(),
            draws: RefCell::new(Draws::new(distributions)),
            unique: Arc::clone(unique),
            began: Cell::new(None),
        }
    }

    /// The address for scripts.
    pub(super) fn address(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context { target: &self.target, engine: &self.engine, log: &self.engine.log, thread: self.thread }
    }

    /// Takes the event at work from the counts, after an error.
    pub(super) fn give_up_event(&self) {
        if self.began.take().is_some() {
            self.engine.event_given_up(self.thread);
        }
    }

    /// Works on an open connection. It is taken out meanwhile, since other fibers go on while it waits.
    pub(super) fn with_connection<T>(
        &self,
        number: usize,
        work: impl FnOnce(&mut Connection) -> T,
    ) -> Option<T> {
        let mut connection = self.connections.borrow_mut().get_mut(number)?.take()?;
        let result = work(&mut connection);
        if let Some(place) = self.connections.borrow_mut().get_mut(number) {
            *place = Some(connection);
        }
        Some(result)
    }
}

/// Level of the answer of a connection that is closed.
const CLOSED: u8 = 3;

/// # Safety
/// `answer` is valid for writing.
unsafe fn give(answer: *mut LuaAnswer, given: Option<Answer>) -> u8 {
    let Some(given) = given else { return CLOSED };
    let Answer { level, columns, rows, serial } = given;
    // SAFETY: as the caller says.
    unsafe {
        answer.write(LuaAnswer { columns: columns as f64, rows: rows as f64, serial: serial as f64 });
    }
    level
}

// Safety of all functions below: scripts call them by the API's own Lua alone, with the address of the state's own `Api`, which
// lives as long as the state, and with addresses of objects that their caller holds during the call.

unsafe extern "C" fn next_event(this: This) -> bool {
    // SAFETY: see above.
    let api = unsafe { &*this };
    let began = api.engine.next_event(api.thread);
    api.began.set(began);
    began.is_some()
}

unsafe extern "C" fn event_ended(this: This) {
    // SAFETY: see above.
    let api = unsafe { &*this };
    if let Some(began) = api.began.take() {
        api.engine.event_ended(api.thread, began);
    }
}

unsafe extern "C" fn event_given_up(this: This) {
    // SAFETY: see above.
    unsafe { &*this }.give_up_event();
}

unsafe extern "C" fn draw(this: This, kind: u32, low: f64, high: f64) -> f64 {
    // SAFETY: see above.
    let api = unsafe { &*this };
    api.draws.borrow_mut().draw(kind as usize, low, high, &mut api.rng.borrow_mut())
}

unsafe extern "C" fn bits(this: This) -> f64 {
    // SAFETY: see above.
    (unsafe { &*this }.rng.borrow_mut().next_u64() >> 11) as f64
}

unsafe extern "C" fn fraction(this: This) -> f64 {
    // SAFETY: see above.
    unsafe { &*this }.rng.borrow_mut().f64()
}

unsafe extern "C" fn unique(this: This) -> f64 {
    // SAFETY: see above. A bijection of the numbers below 2^32, so that none comes twice.
    f64::from(permuted(unsafe { &*this }.unique.fetch_add(1, Relaxed) as u32))
}

unsafe extern "C" fn fill_text(this: This, text: *mut u8, length: u32) {
    // SAFETY: see above; `text` has so many bytes.
    unsafe {
        fill(std::slice::from_raw_parts_mut(text, length as usize), &mut (*this).rng.borrow_mut());
    }
}

unsafe extern "C" fn query(
    this: This,
    connection: u32,
    sql: *const u8,
    length: usize,
    answer: *mut LuaAnswer,
) -> u8 {
    // SAFETY: see above; `sql` has so many bytes.
    let (api, sql) = unsafe { (&*this, std::slice::from_raw_parts(sql, length)) };
    let given = api.with_connection(connection as usize, |of| of.query(&api.context(), sql));
    // SAFETY: see above.
    unsafe { give(answer, given) }
}

unsafe extern "C" fn execute(
    this: This,
    connection: u32,
    statement: u32,
    params: *const *const LuaParam,
    count: u32,
    answer: *mut LuaAnswer,
) -> u8 {
    // SAFETY: see above.
    let api = unsafe { &*this };
    let values = || {
        (0..count as usize)
            // SAFETY: see above; there are so many parameters, each valid for reading.
            .map(|place| unsafe { value(&**params.add(place)) })
            .collect()
    };
    let given =
        api.with_connection(connection as usize, |of| of.execute(&api.context(), statement as usize, values));
    // SAFETY: see above.
    unsafe { give(answer, given) }
}

/// # Safety
/// Where the parameter is a text, its bytes are valid for reading.
unsafe fn value(param: &LuaParam) -> Value {
    match param.kind {
        1 => Value::Int(param.number),
        2 => Value::Double(param.real),
        // SAFETY: as the caller says.
        3 => unsafe { Value::Bytes(std::slice::from_raw_parts(param.bytes, param.length as usize).to_vec()) },
        _ => Value::Null,
    }
}

unsafe extern "C" fn rows(this: This, connection: u32, serial: f64) -> *mut Rows {
    // SAFETY: see above.
    let api = unsafe { &*this };
    let taken = api.with_connection(connection as usize, |of| of.take_rows(serial as u64));
    taken.flatten().map_or(std::ptr::null_mut(), |rows| Box::into_raw(Box::new(rows)))
}

unsafe extern "C" fn row(rows: *mut Rows, cells: *mut LuaCell) -> bool {
    // SAFETY: see above; `rows` comes from the function of that name and has not been freed.
    let Some(row) = unsafe { &mut *rows }.next_row() else { return false };
    for (place, cell) in row.enumerate() {
        let (bytes, length) = cell.map_or((std::ptr::null(), -1.0), |b| (b.as_ptr(), b.len() as f64));
        // SAFETY: see above; there are as many cells as columns.
        unsafe { cells.add(place).write(LuaCell { bytes, length }) };
    }
    true
}

unsafe extern "C" fn free(rows: *mut Rows) {
    // SAFETY: see above; `rows` comes from the function of that name and is freed once.
    drop(unsafe { Box::from_raw(rows) });
}
