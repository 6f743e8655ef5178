// Package sqltest holds package fence to real databases: SQLite in the process, and a PostgreSQL
// server of its own, which the tests start from the programs below /usr/lib/postgresql and stop
// again. It is a module of its own, for the sake of the drivers.
//
// Guarantees: none at run time, the package is only its tests. Concurrency: each test has tables of
// its own. Failure: without PostgreSQL its part is skipped and says so; SQLite's never is. Limits:
// MySQL is not tried by these tests; most of them were run by hand on MariaDB 10.11, with and
// without clientFoundRows, when the dialect was written. Refused alternative: a fake of
// database/sql, which would agree with whatever we believe about locks and isolation.
package sqltest
