// Package mortisevault makes any storage of Vault highly available, with locks of mortise: it adds
// a physical.HABackend of Vault's SDK to a physical.Backend.
//
//	backend := mortisevault.New(node, storage, mortisevault.Options{})
//
// Several servers share one storage. The server that holds the lock is active, and the others are
// standbys. The holder's value is readable on all servers: Vault finds the active server with it.
//
// # Guarantees
//
//   - At most one lock of a key is held at a time, among all servers with the same Prefix. The
//     standbys wait in a queue.
//   - The channel that Lock returns is closed when the lock is lost or unlocked, and when the node
//     begins to leave.
//   - Value returns what the holder has passed to LockWith. A majority has decided on the lock and
//     its value together.
//   - The data go to the storage as they are, with its transactions if it has them.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A held lock uses one goroutine, which ends when
// it is unlocked or lost, or when its node is closed.
//
// # Failure
//
// If the active server is killed, its lock stays taken until its session expires
// (mortise.Config.SessionTTL, 10 s by default), and then a standby is granted the lock. Until then
// Value returns the value of the killed server. While the group has no majority, Lock waits, Value
// returns an error after 5 s, and the active server loses its lock when its lease ends.
//
// # Limits
//
// A storage compares no tokens. A server that is stopped, loses its lock and continues may still
// complete a write that it had begun. So the Backend is no physical.FencingHABackend.
//
// A value has at most 1,024 bytes, and all instances of the group can read it. A key has at most
// 512 bytes, with the Prefix. Other optional interfaces of the storage than physical.Transactional
// are hidden, such as those with the limits of its transactions: Vault then uses its defaults. All
// servers must be members of one group, before Vault is unsealed.
//
// # Refused alternative
//
// A lock in the storage itself is a record that is renewed by a clock, where the storage has a
// conditional write. Many have none.
package mortisevault
