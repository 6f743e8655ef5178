// Package scenarios has programs to copy from. Each file shows one use of locks from beginning to
// end, as an example whose output is checked:
//
//	go test -v ./examples/scenarios
//
//	scheduler        a job once per tick, on one of three instances
//	flashsale        many buyers of many pieces: the stock in stripes
//	buyers           many buyers of one piece: the second one learns at once of the first
//	transaction      an order in a database transaction that compares the token
//	saga             one order, two services, and a lock that passes on and survives a crash
//	events           an event log that compares the version and the token
//	cache            thirty requests, one rebuild
//	configuration    concurrent changes of a configuration, watched by all, with an audit record
//	migration        a schema migration, once
//	batch            long work under one lock, and a deployment in the middle
//	readers          readers and writers
//	semaphore        no more than three calls at a time
//	deadlock         two transfers that wait for each other, and LockAll
//	stuck            a job that hangs, an operator who ends its lock, and the audit record of that
//
// In each file a small type in memory stands for a database, a cache or another service. A real one
// must make the same comparison: the token, in the same step as the write. A lock alone cannot stop
// a process that was paused in the middle of its work.
//
// The package has only examples, with all instances in one process, over loopback. One large
// program would show everything, but its parts could not be copied.
package scenarios
