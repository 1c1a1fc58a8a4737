//! The functions of lua/prelude/ffi_calls.lua in Lua's C interface, for scripts that are not compiled: they take less memory
//! than `ffi`, and no more time than it does in the interpreter. A parameter has its kind in place 1 and its value in place 2.

use std::ffi::{CStr, c_int};

use mlua::{Lua, Table, ffi, lua_CFunction, lua_State};

use super::api::{Api, FUNCTIONS, LuaAnswer, LuaParam};
use super::parts;

/// By the names in `native`.
const CALLS: [(&CStr, lua_CFunction); 15] = [
    (c"next_event", next_event),
    (c"event_ended", event_ended),
    (c"event_given_up", event_given_up),
    (c"draw", draw),
    (c"bits", bits),
    (c"fraction", fraction),
    (c"unique", unique),
    (c"fill", fill),
    (c"new_param", first),
    (c"bound", first),
    (c"put", put),
    (c"put_pattern", put_pattern),
    (c"query", query),
    (c"execute", execute),
    (c"home", home),
];

/// Adds the functions to `native`. They work on `api`, which has to live as long as the state.
///
/// # Errors
/// An error of Lua.
pub(super) fn add(lua: &Lua, native: &Table, api: &Api) -> mlua::Result<()> {
    let address = api.address();
    // SAFETY: the table is the one value on the stack while fields are set, and is taken off it.
    unsafe {
        lua.exec_raw::<()>(native, |state| {
            for (name, function) in CALLS {
                ffi::lua_pushlightuserdata(state, address);
                ffi::lua_pushcclosure(state, function, 1);
                ffi::lua_setfield(state, -2, name.as_ptr());
            }
            ffi::lua_settop(state, -2);
        })
    }
}

// Safety of all functions below: Lua calls them with its state, the Lua parts alone know them, and their first upvalue is the address
// of the state's `Api`, which lives as long as the state. Texts stay where they are while they are on the stack or in
// a table that is. No call that can raise an error of Lua is made while a value that has to be dropped is held, and
// functions of `FUNCTIONS` do not unwind.

unsafe fn api(state: *mut lua_State) -> *const Api {
    // SAFETY: see above.
    unsafe { ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Api>().cast_const() }
}

unsafe fn number(state: *mut lua_State, place: c_int) -> f64 {
    // SAFETY: see above.
    unsafe { ffi::lua_tonumber(state, place) }
}

/// A text; empty where there is none.
unsafe fn text<'a>(state: *mut lua_State, place: c_int) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: see above; a string has so many bytes.
    unsafe {
        if ffi::lua_type(state, place) != ffi::LUA_TSTRING {
            return &[];
        }
        let bytes = ffi::lua_tolstring(state, place, &raw mut length);
        std::slice::from_raw_parts(bytes.cast(), length)
    }
}

unsafe fn give(state: *mut lua_State, number: f64) -> c_int {
    // SAFETY: see above.
    unsafe { ffi::lua_pushnumber(state, number) };
    1
}

unsafe extern "C-unwind" fn next_event(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { ffi::lua_pushboolean(state, c_int::from((FUNCTIONS.next_event)(api(state)))) };
    1
}

unsafe extern "C-unwind" fn event_ended(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { (FUNCTIONS.event_ended)(api(state)) };
    0
}

unsafe extern "C-unwind" fn event_given_up(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { (FUNCTIONS.event_given_up)(api(state)) };
    0
}

unsafe extern "C-unwind" fn draw(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe {
        let (kind, low) = (number(state, 1) as u32, ffi::luaL_checknumber(state, 2));
        let high = ffi::luaL_checknumber(state, 3);
        give(state, (FUNCTIONS.draw)(api(state), kind, low, high))
    }
}

unsafe extern "C-unwind" fn bits(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { give(state, (FUNCTIONS.bits)(api(state))) }
}

unsafe extern "C-unwind" fn fraction(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { give(state, (FUNCTIONS.fraction)(api(state))) }
}

unsafe extern "C-unwind" fn unique(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { give(state, (FUNCTIONS.unique)(api(state))) }
}

/// Longest pattern that is filled without memory from outside of Lua.
const SHORT: usize = 256;

/// Pushes the text that fills the pattern at a place.
unsafe fn push_filled(state: *mut lua_State, place: c_int) {
    // SAFETY: see above; a long pattern is filled in memory of Lua, which its collector takes back.
    unsafe {
        let pattern = text(state, place);
        let mut short = [0_u8; SHORT];
        let bytes = match pattern.len() <= SHORT {
            true => short.as_mut_ptr(),
            false => ffi::lua_newuserdata(state, pattern.len()).cast::<u8>(),
        };
        std::ptr::copy_nonoverlapping(pattern.as_ptr(), bytes, pattern.len());
        (FUNCTIONS.fill)(api(state), bytes, pattern.len() as u32);
        ffi::lua_pushlstring(state, bytes.cast(), pattern.len());
    }
}

unsafe extern "C-unwind" fn fill(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { push_filled(state, 1) };
    1
}

/// A parameter needs nothing more, and neither do those that are bound.
unsafe extern "C-unwind" fn first(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe { ffi::lua_settop(state, 1) };
    1
}

/// Gives the parameter that is the first argument the value on the top of the stack.
unsafe fn set_param(state: *mut lua_State, kind: f64) {
    // SAFETY: see above; values are put into a table only.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_rawseti(state, 1, 2);
        ffi::lua_pushnumber(state, kind);
        ffi::lua_rawseti(state, 1, 1);
    }
}

unsafe extern "C-unwind" fn put(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe {
        ffi::lua_settop(state, 3);
        set_param(state, number(state, 2));
    }
    0
}

unsafe extern "C-unwind" fn put_pattern(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe {
        push_filled(state, 2);
        set_param(state, 3.0);
    }
    0
}

/// The level of an answer, columns, rows and the number of the statement.
unsafe fn give_answer(state: *mut lua_State, level: u8, answer: &LuaAnswer) -> c_int {
    let LuaAnswer { columns, rows, serial } = *answer;
    for value in [f64::from(level), columns, rows, serial] {
        // SAFETY: see above.
        unsafe { give(state, value) };
    }
    4
}

unsafe extern "C-unwind" fn query(state: *mut lua_State) -> c_int {
    let mut answer = LuaAnswer::default();
    // SAFETY: see above.
    unsafe {
        let (connection, sql) = (number(state, 1) as u32, text(state, 2));
        let level = (FUNCTIONS.query)(api(state), connection, sql.as_ptr(), sql.len(), &raw mut answer);
        give_answer(state, level, &answer)
    }
}

/// The parameter on the top of the stack.
unsafe fn param(state: *mut lua_State) -> LuaParam {
    let mut param = LuaParam { number: 0, real: 0.0, bytes: std::ptr::null(), length: 0, kind: 0 };
    // SAFETY: see above; only a table is looked into. Its value stays in it when it is taken off the stack.
    unsafe {
        if ffi::lua_type(state, -1) != ffi::LUA_TTABLE {
            return param;
        }
        ffi::lua_rawgeti(state, -1, 1);
        ffi::lua_rawgeti(state, -2, 2);
        param.kind = number(state, -2) as u8;
        match param.kind {
            1 => param.number = number(state, -1) as i64,
            2 => param.real = number(state, -1),
            3 => {
                let bytes = text(state, -1);
                (param.bytes, param.length) = (bytes.as_ptr(), bytes.len() as u32);
            }
            _ => {}
        }
        ffi::lua_settop(state, -3);
    }
    param
}

unsafe extern "C-unwind" fn execute(state: *mut lua_State) -> c_int {
    let mut answer = LuaAnswer::default();
    // SAFETY: see above. Reading from tables without their metatables raises no error.
    unsafe {
        let (connection, statement, count) =
            (number(state, 1) as u32, number(state, 2) as u32, number(state, 4) as usize);
        let count = if ffi::lua_type(state, 3) == ffi::LUA_TTABLE { count } else { 0 };
        let mut params = Vec::with_capacity(count);
        for place in 1..=count {
            ffi::lua_rawgeti(state, 3, place as ffi::lua_Integer);
            params.push(param(state));
            ffi::lua_settop(state, -2);
        }
        let addresses: Vec<*const LuaParam> = params.iter().map(std::ptr::from_ref).collect();
        let level = (FUNCTIONS.execute)(
            api(state),
            connection,
            statement,
            addresses.as_ptr(),
            addresses.len() as u32,
            &raw mut answer,
        );
        drop((addresses, params));
        give_answer(state, level, &answer)
    }
}

/// The part that brings a name of a table; nothing where none does.
unsafe extern "C-unwind" fn home(state: *mut lua_State) -> c_int {
    // SAFETY: see above.
    unsafe {
        let Some(part) = parts::home(text(state, 1), text(state, 2)) else { return 0 };
        ffi::lua_pushlstring(state, part.as_ptr().cast(), part.len());
    }
    1
}
