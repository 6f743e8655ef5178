// Package sqltest tests package fence on real databases: on SQLite in the test process, and on a
// PostgreSQL server. The tests start and stop this server, with the programs below
// /usr/lib/postgresql. The package is a separate module because of the database drivers.
//
// Each test has its own tables. If PostgreSQL is not installed, its tests are skipped with a
// message. Tests on SQLite are never skipped. MySQL is not covered. Most of the tests were run by
// hand on MariaDB 10.11, with and without clientFoundRows, when the dialect was written.
package sqltest
