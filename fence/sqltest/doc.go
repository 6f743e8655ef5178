// Package sqltest tests package fence on real databases: SQLite in the process, and a PostgreSQL
// server, which the tests start from the programs below /usr/lib/postgresql and stop again. It is a
// separate module because of the drivers.
//
// Each test has its own tables. Without PostgreSQL its part is skipped with a message; SQLite is
// never skipped. MySQL is not covered. Most of the tests were run by hand on MariaDB 10.11, with
// and without clientFoundRows, when the dialect was written. There is no fake of database/sql,
// because it would repeat our own assumptions about locks and isolation.
package sqltest
