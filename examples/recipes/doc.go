// Package recipes contains programs to copy from. Each file solves one task from beginning to end,
// as an example whose output is checked:
//
//	go test -v ./examples/recipes
//
//	nightly_report_once           a job once per tick, on one of three instances
//	migrate_before_serving        a schema migration, once
//	billing_through_a_deployment  long work under one lock, and a deployment in the middle
//	rebuild_a_cache_once          thirty requests, one rebuild
//	consume_partitions            sixteen partitions over three instances, one of which stops
//	three_calls_at_a_time         a semaphore
//	three_limits_at_once          a limit for the order, the tenant and all jobs
//	two_of_three_poll             a permit that is held, and taken over when its holder stops
//	save_every_keystroke          one instance locks the same key again and again
//	compute_in_phases             workers that wait for each other after each phase
//	lock_by_an_id_from_outside    keys with IDs that callers of an API choose
//	lock_in_several_groups        more locks than one leader can serve
//	many_readers_one_writer       shared and exclusive locks, and a downgrade
//	read_long_then_write          a lock beside readers that becomes exclusive for a while
//	work_on_a_tree                nodes of a tree, with or without all below
//	transfer_between_accounts     two transfers that wait for each other, and LockAll
//	sell_the_last_piece_once      many buyers of one piece: the others are refused immediately
//	sell_stock_in_stripes         many buyers of many pieces
//	order_in_a_transaction        a database transaction that compares the token
//	order_over_two_services       a lock that is handed on and survives a crash (a saga)
//	append_events_in_order        an event log that compares the version and the token
//	change_a_configuration        concurrent changes, watched by all, with an audit record
//	import_with_a_checkpoint      progress that only the holder can record
//	number_invoices               numbers without repetition, and IDs in blocks
//	end_a_stuck_job               a job that hangs, and an operator who ends its lock
//
// In each file a small type in memory represents a database, a cache or another service. In
// production these must also compare the token in the same step as the write.
//
// All instances are in one process and communicate over loopback.
package recipes
