package e2e

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// starved is the environment of a process that may open no more files while out is true. As on
// Linux, an Accept that waits notices this when a connection arrives.
type starved struct {
	storage.FS
	net.Listener
	out atomic.Bool
}

func (s *starved) err(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, syscall.EMFILE)}
}

func (s *starved) Accept() (net.Conn, error) {
	if s.out.Load() {
		return nil, s.err("accept4")
	}
	conn, err := s.Listener.Accept()
	if err == nil && s.out.Load() {
		_ = conn.Close()
		return nil, s.err("accept4")
	}
	return conn, err
}

func (s *starved) Open(path string) (storage.File, error) {
	if s.out.Load() {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
	}
	return s.FS.Open(path)
}

// A leader runs out of file descriptors for a while. The refused connections are logged with a
// rate, the disk is not blamed, the leader hands over, and no lock is lost.
func TestALeaderWithoutFileDescriptorsHandsOver(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		var logs [3]lines
		f, root := newFleet(t), t.TempDir()
		all := make([]*starved, 3)
		for i := range 3 {
			s, e := &starved{FS: storage.OSFS()}, f.world(i)
			all[i] = s
			e.Files = s
			e.Listen = func(a string) (net.Listener, error) {
				var err error
				s.Listener, err = f.net.Listen(a)
				return s, err
			}
			c := durableConfig(f, root, i, i)
			c.Logger = slog.New(slog.NewTextHandler(&logs[i], nil))
			n, err := start(t.Context(), c, e)
			if err != nil {
				t.Fatal(err)
			}
			f.nodes = append(f.nodes, n)
		}
		f.ready()
		was := f.leader()
		mine, other := f.lock(was, "mine"), f.lock((was+1)%3, "other")
		knock := func() {
			if conn, err := f.net.Dialer("10.0.0.9")(t.Context(), address(was)); err == nil {
				_ = conn.Close()
			}
		}
		all[was].out.Store(true)
		began := time.Now()
		for knock(); f.nodes[was].Status().Leading; time.Sleep(100 * time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Fatalf("it leads after %v:\n%s", time.Since(began), &logs[was].text)
			}
		}
		if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("it handed over after %v, want a little more than 3 s", took)
		}
		time.Sleep(time.Minute - time.Since(began))
		const want = "a connection could not be accepted; other instances may not reach this one: raise the limit " +
			"of open files"
		if said := logs[was].matching(want); len(said) < 2 || len(said) > 7 ||
			!strings.Contains(said[0], "too many open files") {
			t.Errorf("in a minute it logs %d times %q", len(said), said)
		}
		if said := logs[was].matching("this leader accepts no connections: it hands the leadership"); len(said) != 1 {
			t.Errorf("the hand-over is logged %d times", len(said))
		}
		if len(logs[was].matching("the directory cannot be checked, because this process has no free file")) == 0 {
			t.Error("the log does not say why the directory is not checked")
		}
		s := f.nodes[was].Status()
		if s.Disk != nil || len(logs[was].matching("the disk of this voter")) > 0 || s.Waiting != "" || !s.Votes {
			t.Errorf("the disk is blamed, or the vote is lost:\n%v\n%s", s, &logs[was].text)
		}
		if err := errors.Join(mine.Err(), other.Err()); err != nil {
			t.Errorf("a lock was lost: %v", err)
		}
		unlock(t, f.lock(was, "while it lasts"))
		all[was].out.Store(false)
		time.Sleep(2 * time.Second)
		knock()
		time.Sleep(5 * time.Second)
		if said := logs[was].matching("connections are accepted again"); len(said) != 1 {
			t.Errorf("the end is logged %d times", len(said))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		h, err := f.nodes[was].Health(ctx)
		if err != nil || len(h.Missing) > 0 {
			t.Errorf("%v, %v", h, err)
		}
		unlock(t, mine)
		unlock(t, other)
	})
}
