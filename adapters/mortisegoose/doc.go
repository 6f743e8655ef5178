// Package mortisegoose lets the instances of a service migrate their database with goose, one at a
// time, with a lock of mortise.
//
//	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
//		goose.WithLocker(mortisegoose.New(node, "migrate/orders")))
//	...
//	_, err = provider.Up(ctx) // in each instance, when it starts
//
// A [Locker] works with every database, also with those for which goose has no lock, such as SQLite
// and ClickHouse. The instances wait in a queue and do not poll. The lock needs no connection of
// its own and no table, and works behind a connection pooler.
//
// # Guarantees
//
//   - At most one provider at a time has the lock, among all instances and all providers of an
//     instance that use the same key.
//   - Used as a SessionLocker, a Locker whose lock is lost closes the connection of the migrations:
//     no further migration begins on it.
//   - [Locker.Token] returns the fencing token of the present hold, which Go migrations can use.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Providers that share one Locker wait for each
// other. While a SessionLocker holds the lock, it uses one goroutine.
//
// # Failure
//
// If an instance is killed, its lock stays taken until its session expires
// (mortise.Config.SessionTTL, 10 s by default). The next instance then finds the migrations that
// the former has committed. If a lock is lost during a migration, for example because the instance
// is cut off, that migration may still commit while the next instance begins. Unlock then returns
// an error that wraps mortise.ErrLost, and so does the call of the provider.
//
// # Limits
//
// A Locker protects only from providers that use mortise: change all instances, or stop them, in
// one deployment. Calls of goose that take no lock, such as HasPending, take none here. Programs
// that are not members of the group, such as goose's own command, use mortise run.
//
// # Refused alternative
//
// A lock in the database, for example of the table that goose.WithLocker can use, is renewed by a
// clock and must be polled; one of PostgreSQL's sessions does not work behind a pooler.
package mortisegoose
