// Package comingfrom has the mortise code of docs/CHOOSING.md, for readers who come from other
// lock libraries: each file is one of them, as an example whose output is checked.
//
//	go test -v ./examples/comingfrom
//
//	redsync          a lock that is waited for, for as long as the caller likes; try; nothing to extend
//	etcd             a write that only the holder can make, without a transaction in the lock service
//	consul           the value of a lock, its holder, lock-delay, a semaphore
//	curator          re-entry, several keys, readers and writers, a holder that is asked to hurry
//	leaderelection   one of the fleet leads; nobody has to exit
//
// A test of internal/house holds the snippets of the page to this code.
//
// Guarantees: none at run time, the package is only its tests. Concurrency, failure: each example
// says what it shows. Limits: one node in one process. Refused alternative: snippets in the page
// alone, which nobody would compile.
package comingfrom
