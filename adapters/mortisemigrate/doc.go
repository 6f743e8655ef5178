// Package mortisemigrate lets the instances of a service migrate their database with
// golang-migrate, one at a time, with a lock of mortise.
//
//	driver, err := sqlite.WithInstance(db, &sqlite.Config{})
//	...
//	driver = mortisemigrate.Wrap(driver, node, "migrate/orders", mortisemigrate.Options{})
//	m, err := migrate.NewWithDatabaseInstance("file://migrations", "orders", driver)
//
// A [Driver] is a database.Driver that takes its lock from mortise, instead of the lock of the
// driver that it wraps. So it works with every database, also with those whose driver locks only
// within its own process, such as SQLite, or not at all. The instances wait in a queue. The lock
// needs no connection of its own, and works behind a connection pooler.
//
// # Guarantees
//
//   - At most one Driver with the same key is locked at a time, among all instances.
//   - A Driver that has lost its lock begins nothing more: Run, SetVersion and Drop fail until
//     Unlock. The Migrate can then be used again.
//   - Lock waits no longer than Options.Wait, and then holds nothing. A Migrate that has given up
//     before that, because its LockTimeout is shorter, does not use the lock: it is released 5 s
//     after its grant.
//   - Lock and Unlock return database.ErrLocked and database.ErrNotLocked as they are, for code
//     that compares with ==. [Driver.Err] has the cause.
//   - [Driver.Token] returns the fencing token of the present hold.
//
// # Concurrency
//
// Everything exported is safe for concurrent use as far as the wrapped driver is. There is no
// goroutine. A timer runs from Lock to the first use of the Driver, at most until [Driver.Close],
// which waits for its function.
//
// # Failure
//
// If an instance is killed, its lock stays taken until its session expires
// (mortise.Config.SessionTTL, 10 s by default). If it was killed in a migration, golang-migrate has
// marked the database as dirty: the next instance fails with migrate.ErrDirty, as it does without
// this package, until an operator has repaired the database. If a lock is lost while a statement
// runs, that statement may still take effect. The call of the Driver then returns an error that
// wraps mortise.ErrLost.
//
// # Limits
//
// A Driver protects only from programs that use mortise, unless Options.Both is set. Many drivers
// take their own lock for a moment when they are made; this package does not change that. Code that
// calls Lock itself, without a Migrate, must use the Driver within 5 s, for example with Token.
//
// # Refused alternative
//
// A driver under a URL of its own would need the node in a global variable, because golang-migrate
// makes drivers from their URL alone.
package mortisemigrate
