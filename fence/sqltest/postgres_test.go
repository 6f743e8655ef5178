package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
	"github.com/mortise-lock/mortise/internal/lab/postgres"
)

var server struct {
	once sync.Once
	*postgres.Server
	err  error
	next int
}

func TestMain(m *testing.M) {
	code := leftover.Run(ended{m})
	if errors.Is(server.err, postgres.ErrAbsent) {
		fmt.Fprintf(os.Stderr, "\n*** SKIPPED: fencing on PostgreSQL. %v ***\n\n", server.err)
	}
	os.Exit(code)
}

// ended stops the server after the tests.
type ended struct{ *testing.M }

func (e ended) Run() int {
	code := e.M.Run()
	if server.Server != nil {
		server.Stop()
	}
	return code
}

// newPostgres returns a new database. All tests use one server.
func newPostgres(t *testing.T) *sql.DB {
	server.once.Do(func() { server.Server, server.err = postgres.Start() })
	if errors.Is(server.err, postgres.ErrAbsent) {
		t.Skip(server.err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	server.next++
	name := fmt.Sprint("test", server.next)
	if err := server.Create(name); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
