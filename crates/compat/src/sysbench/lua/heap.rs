//! Memory of the Lua states of one thread where they are many: small blocks without headers, by their sizes in steps of 16
//! bytes, for Lua says the size of what it gives back. What one state gives back, the next one takes.

use std::alloc::{Layout, alloc};
use std::ffi::c_void;
use std::ptr;

use mlua::{Lua, ffi};

const STEP: usize = 16;
/// Larger blocks come from the allocator that a state had before, as do all that it already has.
const LARGEST: usize = 1024;
/// Bytes that are taken from the system at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Addresses of blocks have this remainder by [`STEP`], those of other allocators have none. Lua needs multiples of 8.
const MARK: usize = 8;

/// Blocks of a thread. They stay as long as the process.
struct Heap {
    /// By size: the first free block, in which the address of the next one stands.
    free: [*mut u8; LARGEST / STEP],
    /// The unused rest of the last chunk.
    next: *mut u8,
    left: usize,
}

/// The data of a state's allocator.
struct OfState {
    heap: *mut Heap,
    other: ffi::lua_Alloc,
    data: *mut c_void,
}

thread_local! {
    static HEAP: *mut Heap = Box::into_raw(Box::new(Heap {
        free: [ptr::null_mut(); LARGEST / STEP],
        next: ptr::null_mut(),
        left: 0,
    }));
}

/// Lets a state take its memory from the heap of this thread, in which it has to stay.
///
/// # Errors
/// An error of Lua.
pub(super) fn adopt(lua: &Lua) -> mlua::Result<()> {
    // Blocks of the allocator before could not be told from those of the heap.
    if ffi::SYS_MIN_ALIGN < STEP {
        return Ok(());
    }
    let heap = HEAP.with(|heap| *heap);
    // SAFETY: the new allocator passes what it has not given itself to the one before. Heap and data are never freed.
    unsafe {
        lua.exec_raw::<()>((), |state| {
            let mut data = ptr::null_mut();
            let other = ffi::lua_getallocf(state, &raw mut data);
            let of_state = Box::into_raw(Box::new(OfState { heap, other, data }));
            ffi::lua_setallocf(state, allocate, of_state.cast());
        })
    }
}

impl Heap {
    /// A block of so many bytes, at most [`LARGEST`]; null where there is no memory.
    ///
    /// # Safety
    /// The blocks that were given back are no longer used.
    unsafe fn take(&mut self, bytes: usize) -> *mut u8 {
        let class = class(bytes);
        let free = self.free[class];
        if !free.is_null() {
            // SAFETY: a free block holds the address of the next one.
            self.free[class] = unsafe { free.cast::<*mut u8>().read() };
            return free;
        }
        let size = (class + 1) * STEP;
        if self.left < size {
            // SAFETY: the size is not 0.
            let chunk = unsafe { alloc(Layout::from_size_align_unchecked(CHUNK_BYTES, STEP)) };
            if chunk.is_null() {
                return chunk;
            }
            // SAFETY: it is within the chunk.
            self.next = unsafe { chunk.add(MARK) };
            self.left = CHUNK_BYTES - MARK;
        }
        let block = self.next;
        // SAFETY: so much is left of the chunk.
        self.next = unsafe { block.add(size) };
        self.left -= size;
        block
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// It came from [`Self::take`] for a size of the same class, and is no longer used.
    unsafe fn give_back(&mut self, block: *mut u8, bytes: usize) {
        let class = class(bytes);
        // SAFETY: the block has room for an address, and addresses of blocks are multiples of 8.
        unsafe { block.cast::<*mut u8>().write(self.free[class]) };
        self.free[class] = block;
    }
}

fn class(bytes: usize) -> usize {
    bytes.max(1).div_ceil(STEP) - 1
}

fn is_ours(block: *mut c_void) -> bool {
    block as usize % STEP == MARK
}

/// The allocator of Lua: a new block, another size for a block, or with size 0 its end.
///
/// # Safety
/// Lua's promises: the block has the old size and is its own, and `data` is what was set along with this function.
unsafe extern "C" fn allocate(data: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    // SAFETY: as above; a state is used by one thread, and this function calls nothing that comes here again.
    let OfState { heap, other, data } = unsafe { &*data.cast::<OfState>() };
    let ours = is_ours(block);
    if !ours && (new > LARGEST || new == 0) {
        // SAFETY: the block came from there, or there is none.
        return unsafe { other(*data, block, old, new) };
    }
    // SAFETY: as above.
    let heap = unsafe { &mut **heap };
    if ours && new != 0 && new <= LARGEST && class(old) == class(new) {
        return block;
    }
    let target: *mut c_void = match new {
        0 => ptr::null_mut(),
        // SAFETY: blocks that were given back were Lua's no more.
        1..=LARGEST => unsafe { heap.take(new).cast() },
        // SAFETY: there is no block yet.
        _ => unsafe { other(*data, ptr::null_mut(), 0, new) },
    };
    if block.is_null() || (target.is_null() && new != 0) {
        return target;
    }
    // SAFETY: both have so many bytes; the old block is Lua's no more.
    unsafe {
        if new != 0 {
            ptr::copy_nonoverlapping(block.cast::<u8>(), target.cast::<u8>(), old.min(new));
        }
        match ours {
            true => heap.give_back(block.cast(), old),
            false => {
                other(*data, block, old, 0);
            }
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes and forgets tables and texts of many sizes.
    const SCRIPT: &str = "local kept, text = {}, ''
        for i = 1, 5000 do
           local t = {}
           for j = 1, i % 40 do t[j] = 'value ' .. i .. ' ' .. j end
           kept[i % 100 + 1] = t
           text = text:sub(-3000) .. i
           if i % 1000 == 0 then collectgarbage() end
        end
        local sum = 0
        for i = 1, 100 do for j = 1, #kept[i] do sum = sum + #kept[i][j] end end
        return sum .. ' ' .. text";

    #[test]
    fn states_grow_shrink_and_end_on_the_heap_of_their_thread() {
        let expected: String = Lua::new().load(SCRIPT).eval().unwrap();
        for _ in 0..3 {
            let states: Vec<Lua> = (0..4).map(|_| Lua::new()).collect();
            states.iter().for_each(|lua| adopt(lua).unwrap());
            for lua in &states {
                assert_eq!(lua.load(SCRIPT).eval::<String>().unwrap(), expected);
            }
        }
    }

    #[test]
    fn blocks_keep_their_bytes_when_they_move_and_are_used_again() {
        // SAFETY: blocks are used as Lua uses them; the other allocator is that of Rust.
        unsafe {
            unsafe extern "C" fn other(
                _: *mut c_void,
                block: *mut c_void,
                old: usize,
                new: usize,
            ) -> *mut c_void {
                let layout = |size| Layout::from_size_align(size, STEP).unwrap();
                // SAFETY: as the test calls it.
                unsafe {
                    match (block.is_null(), new) {
                        (true, 0) => ptr::null_mut(),
                        (true, _) => alloc(layout(new)).cast(),
                        (false, 0) => {
                            std::alloc::dealloc(block.cast(), layout(old));
                            ptr::null_mut()
                        }
                        (false, _) => std::alloc::realloc(block.cast(), layout(old), new).cast(),
                    }
                }
            }
            let heap = HEAP.with(|heap| *heap);
            let mut of_state = OfState { heap, other, data: ptr::null_mut() };
            let data: *mut c_void = (&raw mut of_state).cast();
            let mut block = allocate(data, ptr::null_mut(), 0, 1).cast::<u8>();
            block.write(7);
            let mut size = 1;
            for next in [15, 16, 17, 500, 1024, 1025, 100_000, 3000, 40, 8] {
                block = allocate(data, block.cast(), size, next).cast();
                assert!(!block.is_null() && block.read() == 7 && is_ours(block.cast()) == (next <= LARGEST));
                size = next;
            }
            assert!(allocate(data, block.cast(), size, 0).is_null());
            assert_eq!(allocate(data, ptr::null_mut(), 0, 16).cast::<u8>(), block);
        }
    }
}
