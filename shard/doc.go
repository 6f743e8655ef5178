// Package shard divides numbered shards of work among the instances that are alive, and runs a
// function for each shard on exactly one of them:
//
//	err := shard.Run(ctx, node, shard.Work{Name: "orders", Count: 64,
//		Run: func(ctx context.Context, s shard.Shard) error {
//			return consume(ctx, partition(s.Index), s.Token) // until ctx ends
//		}})
//
// Every instance calls Run with the same Name and Count. When an instance joins, the others give up
// only as many shards as it should have; when one leaves or crashes, the others take its shards.
//
// [Owners] lists who owns which shard, and [Observe] reports each change.
//
// # Guarantees
//
//   - A shard has one owner at a time: each runs under the lock of its shard.
//   - [Shard.Token] rises with every owner of the shard. A resource that refuses lower tokens is
//     safe even against an owner that has not noticed that it lost the shard.
//   - A shard changes hands in order: the context of the old owner's function ends, the function
//     returns, and then the next owner begins. If the lock was lost, the next owner does not wait
//     for the function.
//   - With [Work.MaxIdle], a function that does not call mortise.Beat with its context for that
//     time loses its shard, at the latest a quarter of that time later, and the shard runs again.
//   - Each instance gets its share by weight: with equal weights the numbers differ by at most one.
//     No shard moves from one instance to another unless the first has too many.
//   - If instances have different Counts, as during a rolling change of the Count, [Work.Report]
//     gets [ErrCounts], and every shard of every Count has an owner: a shard that some Counts do
//     not include is divided among the instances whose Counts include it.
//   - When ctx ends or the node leaves, Run gives up all its shards, after their functions have
//     returned, and then returns.
//
// # Concurrency
//
// The function runs on one goroutine for each shard. Run returns when all of them have ended.
// Report runs on those goroutines, on that of Run with the index -1, and for a function that hangs
// (see [Work.MaxIdle]) on another one, at once.
//
// # Failure
//
// A crashed instance keeps its shards until its session ends, within SessionTTL and one failover.
// An instance that is cut off from the majority loses its shards when its lease ends: the contexts
// of its functions end before another instance can own the shards. Without a majority no shard
// moves.
//
// If a function returns before its context has ended, with an error or without, or calls
// runtime.Goexit, its shard is released and runs again after Backoff, here or on another instance.
// A function that ignores the end of its context keeps its shard here, and no other instance runs
// it; if the lock was lost, it works beside the next owner, and the token protects against that. If
// a function panics, its shard is released, and the panic ends the process like any other.
//
// A function that hangs (see [Work.MaxIdle]) keeps its goroutine until it returns, and Run waits
// for that too. Since only this instance has too few shards then, its shard most likely runs again
// here, beside the hung function. Each further function of the shard that hangs here adds one
// Backoff to the pause before the next.
//
// # Limits
//
// With unequal weights an instance can be more than one shard off its fair part, above all if one
// weight is far above the others. The method has no better bound, because it also keeps every other
// quota from rising when an instance joins.
//
// Count is at most 4,096. All instances must use the same Count. To change it, use another Name,
// or do without a clear division of the work during the change: shard 2 of 4 and shard 2 of 8 are
// different parts of the work under one lock, and shards 2 of 4 and 6 of 8 may overlap. A Name is
// at most 478 bytes, and no other code may lock keys that begin with it and a slash. Each Run
// needs one of the leader's 4,096 watches. An instance hears of a free shard at once, and looks
// again every few seconds.
//
// # Refused alternatives
//
// One instance could compute the assignment for all. But then it must be elected first, and its
// failure stops every move. Here each instance knows how many shards it should own, which depends
// only on who is there, and takes any shards that are free; the locks decide who gets which.
//
// Consistent hashing would give each shard a fixed place. But its shares differ by more than one
// shard, and a shard would move although no instance has too many.
package shard
