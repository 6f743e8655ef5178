// Package scenarios is programs to copy from. Each file shows one use of locks from beginning to
// end, as an example whose output is checked:
//
//	go test -v ./examples/scenarios
//
//	scheduler        a job once per tick, on one of three instances
//	flashsale        many buyers of many pieces: the stock in stripes
//	buyers           many buyers of one piece: who comes second is told at once
//	transaction      an order in a database transaction that compares the token
//	saga             one order, two services, and a lock that goes from one to the next and outlives a crash
//	events           an event log that compares the version and the token
//	cache            thirty requests, one rebuild
//	configuration    a configuration that two change at once, all are told, with a record of who and why
//	migration        a schema migration, once
//	batch            long work under one lock, and a deployment in the middle
//	readers          readers and writers
//	semaphore        no more than three calls at a time
//	deadlock         two transfers that wait for each other, and LockAll
//	stuck            a job that hangs, the person who ends its lock, and what is known of it later
//
// What stands for a database, a cache or another service is a small type in memory, in the same
// file. What it compares a real one must compare: the token, in the same step as the write. A lock
// alone cannot stop a process that was paused in the middle of its work.
//
// Guarantees: none at run time, the package is only its tests. Concurrency, failure: each example
// says what it shows. Limits: all instances are in one process, over loopback. Refused alternative:
// one large program that shows everything, from which nobody can copy a part.
package scenarios
