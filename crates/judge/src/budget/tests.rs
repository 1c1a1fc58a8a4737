//! Stacks as servers have them, with the classes that their source code says.
#![allow(clippy::unwrap_used)]

use super::*;

fn stack(text: &str) -> Vec<&str> {
    text.split(';').collect()
}

fn wait(text: &str) -> TimeClass {
    let front = "[libc.so.6];[mariadbd];handle_one_connection;do_handle_one_connection;do_command";
    StackRules::embedded().unwrap().class(On::Wait, &stack(&format!("{front};{text}")))
}

#[test]
fn stacks_of_a_mariadb_that_hides_its_innodb_have_their_classes() {
    const SLEEPS: &str = "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];schedule_[k]";
    for (text, class) in [
        (
            "my_net_read_packet;[mariadbd];vio_read;vio_socket_io_wait;vio_io_wait;__poll",
            TimeClass::ClientIdle,
        ),
        (
            "dispatch_command;Protocol::end_statement;Protocol::net_send_ok;net_flush;net_real_write;pthread_cond_wait;[libc.so.6]",
            TimeClass::RedoSync,
        ),
        (
            "dispatch_command;mysql_execute_command;trans_commit;ha_commit_trans;[mariadbd];[mariadbd];fdatasync",
            TimeClass::RedoSync,
        ),
        (
            "dispatch_command;mysql_execute_command;trans_commit;ha_commit_trans;[mariadbd];syscall",
            TimeClass::RedoSync,
        ),
        (
            "dispatch_command;mysql_execute_command;trans_commit;ha_commit_trans;MYSQL_BIN_LOG::log_and_order;MYSQL_BIN_LOG::write_transaction_to_binlog_events;MYSQL_BIN_LOG::trx_group_commit_leader;MYSQL_BIN_LOG::sync_binlog_file;fdatasync",
            TimeClass::BinlogSync,
        ),
        (
            "dispatch_command;mysql_parse;mysql_execute_command;mysql_update;handler::ha_update_row;[mariadbd];[mariadbd];pthread_cond_timedwait;[libc.so.6]",
            TimeClass::RowLock,
        ),
        (
            "dispatch_command;mysql_execute_command;mysql_insert;handler::ha_write_row;[mariadbd];[mariadbd];syscall",
            TimeClass::PageLatch,
        ),
        (
            "dispatch_command;mysql_execute_command;mysql_select;JOIN::exec;handler::ha_index_read_map;[mariadbd];__libc_pread",
            TimeClass::DataRead,
        ),
        (
            "dispatch_command;mysql_execute_command;mysql_update;open_tables;open_table;tdc_acquire_share;tc_acquire_table;__pthread_mutex_lock;[libc.so.6]",
            TimeClass::Mutex,
        ),
        (
            "dispatch_command;mysql_execute_command;mysql_alter_table;MDL_context::acquire_lock;pthread_cond_timedwait",
            TimeClass::MetadataLock,
        ),
        (
            "dispatch_command;Protocol::write;net_write_packet;vio_write;[libc.so.6];__send",
            TimeClass::Network,
        ),
        (
            "dispatch_command;mysql_execute_command;mysql_load;my_write;__libc_write;do_syscall_64_[k];balance_dirty_pages_[k]",
            TimeClass::Throttled,
        ),
        (
            "dispatch_command;JOIN::exec;[mariadbd];asm_exc_page_fault_[k];handle_mm_fault_[k];do_swap_page_[k];io_schedule_[k]",
            TimeClass::Swap,
        ),
        ("dispatch_command;something_new;yet_another_wait", TimeClass::Unexplained),
    ] {
        assert_eq!(wait(&format!("{text};{SLEEPS}")), class, "{text}");
    }
}

#[test]
fn stacks_of_a_mysql_with_names_have_their_classes() {
    let rules = StackRules::embedded().unwrap();
    for (text, class) in [
        (
            "handle_connection;do_command;Protocol_classic::get_command;vio_socket_io_wait;ppoll",
            TimeClass::ClientIdle,
        ),
        (
            "handle_connection;do_command;dispatch_command;row_search_mvcc;row_mysql_handle_errors;lock_wait_suspend_thread;os_event::wait_low;pthread_cond_timedwait",
            TimeClass::RowLock,
        ),
        (
            "handle_connection;do_command;dispatch_command;trans_commit;ha_commit_low;innobase_commit;trx_commit_complete_for_mysql;log_write_up_to;os_event::wait_low;pthread_cond_wait",
            TimeClass::RedoSync,
        ),
        (
            "handle_connection;do_command;dispatch_command;trans_commit;MYSQL_BIN_LOG::commit;MYSQL_BIN_LOG::ordered_commit;MYSQL_BIN_LOG::sync_binlog_file;fdatasync",
            TimeClass::BinlogSync,
        ),
        (
            "handle_connection;do_command;dispatch_command;btr_cur_search_to_nth_level;rw_lock_s_lock_spin;sync_array_wait_event;os_event::wait_low;pthread_cond_wait",
            TimeClass::PageLatch,
        ),
        (
            "handle_connection;do_command;dispatch_command;buf_page_get_gen;Buf_fetch<Buf_fetch_normal>::read_page;buf_read_page;fil_io;pread64",
            TimeClass::DataRead,
        ),
    ] {
        assert_eq!(rules.class(On::Wait, &stack(text)), class, "{text}");
    }
    let cpu = |text: &str| rules.class(On::Cpu, &stack(text));
    assert_eq!(cpu("handle_connection;do_command;dispatch_command;evaluate_join_record"), TimeClass::CpuUser);
    assert_eq!(
        cpu("handle_connection;do_command;vio_read;do_syscall_64_[k];tcp_recvmsg_[k]"),
        TimeClass::CpuKernel
    );
    assert_eq!(
        cpu("handle_connection;do_command;dispatch_command;rw_lock_x_lock_wait_func;ut_delay"),
        TimeClass::Spin
    );
}

#[test]
fn shares_are_of_counted_time_and_sum_to_one() {
    let rules = StackRules::embedded().unwrap();
    let serving = stack("handle_one_connection;do_command;dispatch_command;JOIN::exec");
    let background = stack("purge_coordinator;[mariadbd]");
    let kernel = stack("handle_one_connection;do_command;dispatch_command;read_[k]");
    let idle = stack("handle_one_connection;do_command;__poll");
    let lock =
        stack("handle_one_connection;dispatch_command;MDL_context::acquire_lock;pthread_cond_timedwait");
    let unknown = stack("handle_one_connection;dispatch_command;strange");
    let threads = [
        ThreadSeconds {
            running: 2.0,
            waiting: 10.0,
            preempted: 1.0,
            run_delay: Some(3.0),
            stack: serving.clone(),
        },
        ThreadSeconds { running: 1.0, waiting: 5.0, preempted: 0.0, run_delay: None, stack: idle.clone() },
        ThreadSeconds {
            running: 4.0,
            waiting: 50.0,
            preempted: 9.0,
            run_delay: Some(9.0),
            stack: background.clone(),
        },
    ];
    let on_cpu = [(serving, 30.0), (kernel, 10.0), (background.clone(), 400.0)];
    let off_cpu = [(idle, 5.0), (lock, 6.0), (unknown, 2.0), (background, 50.0)];
    let budget = budget(&rules, on_cpu.into_iter(), off_cpu.into_iter(), &threads);
    // 3 s ran, three quarters of them as the user. Of 15 s that were waited 2 were for a CPU; 13 remain, as 5 : 6 : 2.
    let of =
        |class| budget.classes.iter().find(|c| c.class == class).map(|c| (c.seconds * 1e9).round() / 1e9);
    assert_eq!(of(TimeClass::CpuUser), Some(2.25));
    assert_eq!(of(TimeClass::CpuKernel), Some(0.75));
    assert_eq!(of(TimeClass::CpuWait), Some(3.0));
    assert_eq!(of(TimeClass::MetadataLock), Some(6.0));
    assert_eq!(of(TimeClass::Unexplained), Some(2.0));
    assert_eq!((budget.idle_s, budget.busy_s, budget.threads), (5.0, 14.0, 2));
    assert_eq!(budget.background_cpu_s, 4.0);
    let sum: f64 = budget.classes.iter().map(|class| class.share).sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    assert_eq!(budget.classes[0].class, TimeClass::MetadataLock);
    assert_eq!(budget.unexplained[0].stack, "handle_one_connection;dispatch_command;strange");
    let nothing = super::budget(&rules, [].into_iter(), [].into_iter(), &[]);
    assert_eq!((nothing.classes.len(), nothing.busy_s, nothing.threads), (0, 0.0, 0));
}

#[test]
fn a_rule_file_with_a_mistake_is_refused() {
    for (text, part) in [
        ("connection = []\nrule = [{ class = \"none\", on = \"cpu\", frames = [\"a\"] }]", "none"),
        ("connection = []\nrule = [{ class = \"spin\", on = \"cpu\", frames = [] }]", "no frames"),
        ("rule = []", "connection"),
    ] {
        let error = StackRules::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
