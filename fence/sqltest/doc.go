// Package sqltest tests package fence on real databases: on SQLite in the test process, and on a
// PostgreSQL server that the tests start with the programs below /usr/lib/postgresql. It is a
// separate module because of the database drivers.
//
// Each test has its own tables. Without PostgreSQL, its tests are skipped with a message. MySQL is
// not covered. Most of the tests were run by hand on MariaDB 10.11, with and without
// clientFoundRows.
package sqltest
