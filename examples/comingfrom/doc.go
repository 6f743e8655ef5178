// Package comingfrom has the mortise code of docs/CHOOSING.md, for users of other lock libraries.
// Each file is for one library.
//
//	go test -v ./examples/comingfrom
//
//	redsync          wait for a lock without a limit; try; nothing to extend
//	etcd             a write that only the holder can make, without a transaction in the lock service
//	consul           the value of a lock, its holder, lock-delay, a semaphore
//	curator          re-entry, several keys, readers and writers, a notice to the holder
//	leaderelection   one instance of the fleet leads; no process has to exit
//
// A test of internal/lab/policy keeps the snippets of the page equal to this code.
package comingfrom
