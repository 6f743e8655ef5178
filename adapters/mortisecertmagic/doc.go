// Package mortisecertmagic lets the instances of a service obtain and renew certificates with
// CertMagic, one at a time for each name, with locks of mortise.
//
//	certmagic.Default.Storage = mortisecertmagic.Wrap(storage, node, mortisecertmagic.Options{})
//
// A [Storage] is a certmagic.Storage whose files are those of the storage that it wraps, and whose
// locks are locks of mortise. It also implements certmagic.TryLocker and
// certmagic.LockLeaseRenewer. All instances use the same files, for example in a bucket or a
// database.
//
// # Guarantees
//
//   - At most one caller at a time holds the lock of a name, in all instances.
//   - The callers wait in a queue, and the next one is granted the lock at once.
//   - A live instance keeps its locks without a timestamp in a file, however long an order of a
//     certificate takes.
//   - After a lost lock, RenewLockLease waits for the next one. So the retries of CertMagic go on
//     under a lock, and find the certificate that another instance has stored meanwhile.
//
// # Concurrency
//
// Everything exported is safe for concurrent use as far as the wrapped storage is. There is no
// goroutine.
//
// # Failure
//
// If an instance is killed, its locks stay taken until its session expires
// (mortise.Config.SessionTTL, 10 s by default). If a lock is lost, for example because the instance
// is cut off, CertMagic does not stop its work: two instances may order the same certificate, which
// costs a part of the rate limit. The node logs the loss.
//
// # Limits
//
// Keys of mortise have at most 512 bytes. A longer name, or one with control characters, is
// replaced by a hash. The package does not fence the files: Store takes no token.
//
// # Refused alternative
//
// Files in mortise: certificates must outlive the group.
package mortisecertmagic
