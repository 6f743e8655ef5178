//go:build !linux

package sqltest

import (
	"database/sql"
	"testing"
)

func postgres(t *testing.T) *sql.DB {
	t.Skip("PostgreSQL is started on Linux only")
	return nil
}
