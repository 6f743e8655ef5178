package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/fence/fencetest"
)

func table(t *testing.T, db database) fence.Table {
	t.Helper()
	marks := fence.Table{DB: db.DB, Dialect: db.dialect}
	for range 2 {
		if err := marks.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return marks
}

func TestTableIsAStore(t *testing.T) {
	onEach(t, func(t *testing.T, db database) { fencetest.Run(t, table(t, db)) })
}

func TestATableOfAnotherName(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		schema := "public"
		if db.dialect == fence.SQLite {
			schema = "main"
		}
		marks := fence.Table{DB: db.DB, Dialect: db.dialect, Name: schema + ".order"}
		if err := marks.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := marks.Advance(t.Context(), "a", 5); err != nil {
			t.Error(err)
		}
		if err := marks.Advance(t.Context(), "a", 4); !errors.Is(err, fence.ErrStale) {
			t.Error(err)
		}
	})
}

func TestTxRollsBack(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		marks := table(t, db)
		broken := errors.New("of fn")
		if err := marks.InTx(t.Context(), "a", 9, func(*sql.Tx) error { return broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
		func() {
			defer func() { recover() }()
			_ = marks.InTx(t.Context(), "a", 9, func(*sql.Tx) error { panic("fn") })
		}()
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := fence.Tx(t.Context(), tx, db.dialect, "a", 8); err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if err := marks.Advance(t.Context(), "a", 5); err != nil {
			t.Errorf("after three transactions that were rolled back: %v", err)
		}
	})
}

// The old holder has compared its token but has not committed yet when the new holder calls Tx. The
// new holder must wait, and its write must be the last.
func TestTxKeepsHoldersApart(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		marks := table(t, db)
		db.exec(t, "CREATE TABLE register (token bigint NOT NULL)")
		db.exec(t, "INSERT INTO register VALUES (0)")
		var all sync.WaitGroup
		for writer := range 6 {
			all.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(writer), 5))
				for range 25 {
					token := mortise.Token(1 + chance.IntN(400))
					err := marks.InTx(t.Context(), "register", token,
						func(tx *sql.Tx) error { return advance(t.Context(), tx, db, token) })
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var register, mark int64
		if err := db.QueryRowContext(t.Context(),
			"SELECT r.token, m.token FROM register r, mortise_fence m").Scan(&register, &mark); err != nil ||
			register != mark || mark < 300 {
			t.Errorf("the register ends at %d, the mark at %d, %v", register, mark, err)
		}
	})
}

// advance writes the register without a condition, so only the lock on the mark's row keeps two
// writers apart.
func advance(ctx context.Context, tx *sql.Tx, db database, token mortise.Token) error {
	var before int64
	if err := tx.QueryRowContext(ctx, "SELECT token FROM register").Scan(&before); err != nil {
		return err
	}
	if before > int64(token) {
		return fmt.Errorf("the register went from %d back to %d", before, token)
	}
	_, err := tx.ExecContext(ctx, "UPDATE register SET token = "+db.p("1"), int64(token))
	return err
}

// A transaction locks the mark until its commit, even if the mark already has the token of the
// transaction.
func TestTheSameTokenLocks(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		marks := table(t, db)
		if err := marks.Advance(t.Context(), "a", 5); err != nil {
			t.Fatal(err)
		}
		newer := make(chan error, 1)
		err := marks.InTx(t.Context(), "a", 5, func(tx *sql.Tx) error {
			if db.dialect == fence.PostgreSQL { // the server reports immediately that the row is locked
				_, err := db.ExecContext(t.Context(),
					"SELECT 1 FROM mortise_fence WHERE resource = 'a' FOR UPDATE NOWAIT")
				if err == nil {
					t.Error("the row is not locked")
				}
			}
			go func() { newer <- marks.Advance(t.Context(), "a", 6) }()
			select {
			case err := <-newer:
				t.Errorf("6 got in while 5 was writing: %v", err)
				newer <- err
			default:
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := <-newer; err != nil {
			t.Error(err)
		}
	})
}

// A stale token must not be admitted under an isolation level at which transactions fail instead of
// waiting.
func TestSerializable(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		if db.dialect != fence.PostgreSQL {
			t.Skip("SQLite has one level, which the other tests use")
		}
		marks := table(t, db)
		if err := marks.Advance(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		var n int
		// The first read of the transaction takes its snapshot.
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM mortise_fence").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := marks.Advance(t.Context(), "a", 9); err != nil {
			t.Fatal(err)
		}
		if err := fence.Tx(t.Context(), tx, db.dialect, "a", 5); err == nil {
			t.Error("5 was admitted after 9")
		}
	})
}
