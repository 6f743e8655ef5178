package e2e

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestADamagedLogOfTheOnlyVoterIsTold(t *testing.T) {
	slow.UnderRace(t)
	var log lines
	c := mortise.Config{Dir: filepath.Join(t.TempDir(), "d"), Grace: -1,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	use := func() *mortise.Node {
		n, err := mortise.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		l, err := n.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
		return n
	}
	if err := use().Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(c.Dir, "wal-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	text[40] ^= 0x55
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := mortise.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	told := func(text string) bool {
		return strings.Contains(text, files[0]) && strings.Contains(text, "remove the whole directory and start") &&
			strings.Contains(text, "no other instance votes")
	}
	for !told(n.Status().Waiting) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if s := n.Status(); !told(s.Waiting) || s.Votes {
		t.Errorf("Status: %q", s.Waiting)
	}
	asking, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := n.Health(asking); err == nil || !told(err.Error()) {
		t.Errorf("Health: %v", err)
	}
	if _, err := n.Lock(asking, "k"); err == nil || !told(err.Error()) {
		t.Errorf("Lock: %v", err)
	}
	if found := log.matching("level=ERROR"); len(found) != 1 ||
		!strings.Contains(found[0], "the log of the only voter cannot be used") ||
		!strings.Contains(found[0], files[0]) {
		t.Errorf("log: %q", found)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(c.Dir); err != nil { // as the error text advises
		t.Fatal(err)
	}
	if err := use().Close(); err != nil {
		t.Error(err)
	}
}
