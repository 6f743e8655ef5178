// Package postgres starts a PostgreSQL server for tests, with the programs below
// /usr/lib/postgresql. It needs no database driver.
//
// Guarantees: a server has a directory of its own and no TCP port, and syncs nothing. It ends with
// the process. Concurrency: everything is safe for concurrent use. Failure: Start returns an error
// that wraps ErrAbsent if this machine has no PostgreSQL, so that a test can skip. Limits: Linux
// only. Refused alternative: a server of the machine, whose version and state no test knows.
package postgres

import "errors"

// ErrAbsent means that no server can be started on this machine. The text names the package to
// install.
var ErrAbsent = errors.New("PostgreSQL cannot be started here (apt-get install -y --no-install-recommends postgresql)")
