package lockfsm

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCharterErrors(t *testing.T) {
	_, err := New(Charter{FoundedUnixMS: -1, Rules: RulesVersion + 1, Grace: -1})
	if !errors.Is(err, ErrRules) {
		t.Errorf("%v is not ErrRules", err)
	}
	for _, field := range []string{"FoundedUnixMS", "Rules", "SessionTTL", "Grace", "Limits"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not mention %s", err, field)
		}
	}
	for name, spoil := range map[string]func(*Charter){
		"founding time 0":        func(c *Charter) { c.FoundedUnixMS = 0 },
		"founding time negative": func(c *Charter) { c.FoundedUnixMS = -3_441_597_559_603 },
		"founding time too late": func(c *Charter) { c.FoundedUnixMS = maxFoundedUnixMS + 1 },
		"rules 0":                func(c *Charter) { c.Rules = 0 },
		"TTL 0":                  func(c *Charter) { c.SessionTTL = 0 },
		"no key":                 func(c *Charter) { c.Limits.KeyBytes = 0 },
		"no waiters":             func(c *Charter) { c.Limits.WaitersPerLock = 0 },
		"no entries":             func(c *Charter) { c.Limits.EntriesPerSession = 0 },
		"no sessions":            func(c *Charter) { c.Limits.Sessions = 0 },
		"settings too long":      func(c *Charter) { c.Settings = make([]byte, MaxSettingsBytes+1) },
	} {
		c := smallCharter()
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRevisionsStayPositive(t *testing.T) {
	for _, founded := range []int64{1, 946_684_800_000, time.Now().UnixMilli(), maxFoundedUnixMS} {
		c := smallCharter()
		c.FoundedUnixMS = founded
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t, m}
		w.do(Command{Kind: Born}, Done)
		s := w.session(1)
		token := w.acquire(s, 1, "k", Granted).Token
		if int64(token) <= 0 || token <= Token(founded)<<revisionBits || token >= Token(founded+1)<<revisionBits {
			t.Errorf("founded at %d, first token %d", founded, token)
		}
	}
}

func TestRevisionsDoNotWrap(t *testing.T) {
	w, a, _ := crowded(t)
	w.m.rev = maxRevision - revisionReserve
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 1}, Done)
	snapshot := w.m.Snapshot(nil)
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 2}, Unsupported)
	if !errors.Is(w.m.Failed(), ErrRevisions) {
		t.Errorf("Failed: %v", w.m.Failed())
	}
	w.check()
	m, err := Restore(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	w = &world{t, m}
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 2}, Unsupported)
}
