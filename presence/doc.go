// Package presence shows which instances of a service are there, each with a value, such as its
// address:
//
//	go presence.Run(ctx, node, "workers", "10.0.0.7:8080") // until ctx ends
//	...
//	members, err := presence.List(ctx, node, "workers")
//	for members, err := range presence.Observe(ctx, node, "workers") { ... }
//
// A member is a lock: the key is the name, a slash and a random ID, and the holder's value is the
// value of the member. So a member exists as long as the session of its instance.
// mortise.Node.Members lists all instances of the group; package presence lists those that have
// joined a name.
//
// # Guarantees
//
//   - A member whose ctx has ended, or whose node has left, is gone when Run returns.
//   - A member whose instance has crashed, or is cut off, is gone within SessionTTL and one
//     failover.
//   - Observe yields the members of one moment: never some from before a change and some from after
//     it. It ends with the present members, however slow its reader is.
//   - Two calls of Run are two members, even if their instances have the same name.
//
// # Concurrency
//
// All functions may be called concurrently. Run and Observe work on the goroutine that calls them.
// Run starts one more, which ends with it.
//
// # Failure
//
// If a session is lost, Run joins again when the former session has ended in the group. The member
// then has a higher token. A member that is shown may have just crashed, and one that lives may be
// missing for a moment: presence is a hint whom to ask, and no lock. Use tokens to protect a
// resource.
//
// # Limits
//
// A name is at most 485 bytes. No other code may lock keys that begin with the name and a slash. A
// value has at most 1,024 bytes, and cannot change: end Run and call it again. The leader serves at
// most 4,096 watches, so run one Observe per instance. A watch first visits all keys of the group.
//
// # Refused alternatives
//
// Members could renew an entry in the data of a key. But then each renewal would cost an entry in
// the log of the group, and a session already shows whether its instance lives.
package presence
