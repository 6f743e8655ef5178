package sqltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

func orders(t *testing.T, db database) fence.Row {
	t.Helper()
	db.exec(t, `CREATE TABLE "order" (id bigint PRIMARY KEY, state text, fence_token bigint)`)
	db.exec(t, `INSERT INTO "order" (id, state) VALUES (42, 'new')`)
	return fence.Row{Dialect: db.dialect, Table: "order"}
}

func TestRow(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		row := orders(t, db)
		for _, c := range []struct {
			id    int
			token mortise.Token
			want  error
		}{{42, 5, nil}, {42, 5, nil}, {42, 4, fence.ErrStale}, {42, 6, nil}, {42, 5, fence.ErrStale},
			{43, 7, fence.ErrMissing}, {42, 0, fence.ErrBadToken}, {42, 1 << 63, fence.ErrBadToken},
			{42, 1<<63 - 1, nil}} {
			state := fmt.Sprint("by ", uint64(c.token))
			err := row.Update(t.Context(), db, c.id, c.token, "state = "+db.p("1"), state)
			if !errors.Is(err, c.want) {
				t.Errorf("row %d token %d: %v, want %v", c.id, c.token, err, c.want)
			}
			var got string
			if err := db.QueryRowContext(t.Context(),
				`SELECT state FROM "order" WHERE id = 42`).Scan(&got); err != nil || (got == state) != (c.want == nil) {
				t.Errorf("after token %d the row says %q, %v", c.token, got, err)
			}
		}
		var stale *fence.StaleError
		if err := row.Update(t.Context(), db, 42, 7, ""); !errors.As(err, &stale) ||
			*stale != (fence.StaleError{Resource: "order/42", Token: 7, Highest: 1<<63 - 1}) {
			t.Errorf("%+v", stale)
		}
		if err := (fence.Row{Dialect: db.dialect, Table: "order", Key: "state"}).Update(t.Context(), db,
			"x'; DROP TABLE \"order\"; --", 9, ""); !errors.Is(err, fence.ErrMissing) {
			t.Error(err)
		}
		db.exec(t, `INSERT INTO "order" (id, state) VALUES (1, 'same'), (2, 'same')`)
		if err := (fence.Row{Dialect: db.dialect, Table: "order", Key: "state"}).Update(t.Context(), db, "same", 9,
			""); err == nil || !strings.Contains(err.Error(), "2 rows") {
			t.Errorf("a key that finds two rows: %v", err)
		}
	})
}

func TestConditionAndOutcome(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		row := orders(t, db)
		if err := row.Update(t.Context(), db, 42, 6, ""); err != nil {
			t.Fatal(err)
		}
		remove := func(token mortise.Token) error {
			condition, arg, err := row.Condition(2, token)
			if err != nil {
				t.Fatal(err)
			}
			result, err := db.ExecContext(t.Context(), fmt.Sprintf(`DELETE FROM "order" WHERE id = %s AND %s`,
				db.p("1"), condition), 42, arg)
			if err != nil {
				t.Fatal(err)
			}
			return row.Outcome(t.Context(), db, result, 42, token)
		}
		if err := remove(5); !errors.Is(err, fence.ErrStale) {
			t.Error(err)
		}
		if err := remove(6); err != nil {
			t.Error(err)
		}
		if err := remove(6); !errors.Is(err, fence.ErrMissing) {
			t.Error(err)
		}
	})
}

// The token of a row must never fall. A trigger of the database records each fall.
func TestRowNeverGoesBack(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		row := orders(t, db)
		db.exec(t, `CREATE TABLE fall (before bigint, after bigint)`)
		if db.dialect == fence.SQLite {
			db.exec(t, `CREATE TRIGGER watch AFTER UPDATE ON "order"
				WHEN NEW.fence_token < OLD.fence_token OR NEW.state <> CAST(NEW.fence_token AS text)
				BEGIN INSERT INTO fall VALUES (OLD.fence_token, NEW.fence_token); END`)
		} else {
			db.exec(t, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN INSERT INTO fall VALUES (OLD.fence_token, NEW.fence_token); RETURN NULL; END $$`)
			db.exec(t, `CREATE TRIGGER watch AFTER UPDATE ON "order" FOR EACH ROW
				WHEN (NEW.fence_token < OLD.fence_token OR NEW.state <> NEW.fence_token::text) EXECUTE FUNCTION note()`)
		}
		var all sync.WaitGroup
		for writer := range 6 {
			all.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(writer), 6))
				for range 40 {
					token := mortise.Token(1 + chance.IntN(400))
					err := row.Update(t.Context(), db, 42, token, "state = "+db.p("1"), fence.FormatToken(token))
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var falls int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM fall`).Scan(&falls); err != nil || falls != 0 {
			t.Errorf("the row went back, or was torn, %d times, %v", falls, err)
		}
		db.exec(t, `UPDATE "order" SET fence_token = 0`) // a write without fencing, to check the trigger
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM fall`).Scan(&falls); err != nil || falls != 1 {
			t.Errorf("the watch has seen %d falls, want the one that was made, %v", falls, err)
		}
	})
}
