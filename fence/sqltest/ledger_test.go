package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

func ledger(t *testing.T, db database) fence.Ledger {
	t.Helper()
	l := fence.Ledger{Marks: fence.Table{DB: db.DB, Dialect: db.dialect}}
	for range 2 {
		if err := l.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	db.exec(t, "CREATE TABLE payment (amount bigint)")
	return l
}

func payments(t *testing.T, db database) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM payment").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLedger(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		l := ledger(t, db)
		broken := errors.New("of fn")
		pay := func(token mortise.Token, id, result string, fail error) (string, error) {
			got, err := l.Do(t.Context(), fence.Step{Resource: "a", Token: token, ID: id},
				func(tx *sql.Tx) ([]byte, error) {
					if _, err := tx.ExecContext(t.Context(), "INSERT INTO payment VALUES (1)"); err != nil {
						return nil, err
					}
					return []byte(result), fail
				})
			return string(got), err
		}
		for _, c := range []struct {
			token        mortise.Token
			id, result   string
			fail         error
			want         string
			wantErr      error
			wantPayments int
		}{
			{5, "pay", "first", broken, "", broken, 0},
			{5, "pay", "second", nil, "second", nil, 1},
			{5, "pay", "third", nil, "second", nil, 1},
			{6, "pay", "fourth", nil, "second", nil, 1},
			{5, "pay", "fifth", nil, "", fence.ErrStale, 1},
			{5, "other", "sixth", nil, "", fence.ErrStale, 1},
			{6, "", "", nil, "", nil, 2}, // an empty result is stored like any other
			{6, "", "x", nil, "", nil, 2},
			{7, "", "x", nil, "x", nil, 3},
			{7, "Pay", "y", nil, "y", nil, 4},
			{7, "a\x00", "y", nil, "", fence.ErrBadResource, 4},
		} {
			got, err := pay(c.token, c.id, c.result, c.fail)
			if got != c.want || !errors.Is(err, c.wantErr) || payments(t, db) != c.wantPayments {
				t.Errorf("token %d ID %q: %q, %v and %d payments, want %q, %v and %d", c.token, c.id, got, err,
					payments(t, db), c.want, c.wantErr, c.wantPayments)
			}
		}
		if gone, err := l.Forget(t.Context(), "a", 6); err != nil || gone != 1 {
			t.Errorf("forgot %d, %v, want the one that was stored under token 5", gone, err)
		}
		if got, err := pay(7, "pay", "again", nil); got != "again" || err != nil {
			t.Errorf("a forgotten step: %q, %v", got, err)
		}
	})
}

// Concurrent callers with rising tokens must not do any step twice.
func TestLedgerTogether(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		l := ledger(t, db)
		var all sync.WaitGroup
		var done, stale atomic.Int64
		for caller := range 8 {
			all.Go(func() {
				for step := range 10 {
					token := mortise.Token(1 + step/2 + caller%2)
					_, err := l.Do(t.Context(), fence.Step{Resource: "a", Token: token, ID: fmt.Sprint(step)},
						func(tx *sql.Tx) ([]byte, error) {
							_, err := tx.ExecContext(t.Context(), "INSERT INTO payment VALUES ("+db.p("1")+")", step)
							return nil, err
						})
					switch {
					case err == nil:
						done.Add(1)
					case errors.Is(err, fence.ErrStale):
						stale.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var twice int
		if err := db.QueryRowContext(t.Context(),
			"SELECT count(*) FROM (SELECT amount FROM payment GROUP BY amount "+
				"HAVING count(*) > 1) AS twice").Scan(&twice); err != nil || twice != 0 {
			t.Errorf("%d steps took effect twice, %v", twice, err)
		}
		if payments(t, db) < 5 {
			t.Errorf("only %d steps took effect; %d calls returned a result, %d were stale", payments(t, db),
				done.Load(), stale.Load())
		}
	})
}
