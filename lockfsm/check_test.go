package lockfsm

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestCheckNotices breaks each invariant and checks that Check reports its number.
func TestCheckNotices(t *testing.T) {
	for _, c := range []struct {
		invariant int
		name      string
		spoil     func(m *Machine, a, b *session)
	}{
		{1, "revision before the first", func(m *Machine, _, _ *session) { m.rev = 5 }},
		{1, "revision too large", func(m *Machine, _, _ *session) { m.rev = 1 << 63 }},
		{1, "stamp before the founding", func(m *Machine, _, _ *session) { m.wallUnixMS = 0 }},
		{1, "rules unknown", func(m *Machine, _, _ *session) { m.charter.Rules = 9 }},
		{2, "not born", func(m *Machine, _, _ *session) { m.born = false }},
		{2, "in a grace that there is not", func(m *Machine, _, _ *session) { m.graceOver = false }},
		{3, "sessions out of order", func(m *Machine, a, b *session) {
			m.sessions.first, m.sessions.last = b, a
			b.prev, b.after, a.prev, a.after = nil, a, b, nil
		}},
		{3, "session not found", func(m *Machine, a, _ *session) { delete(m.sessions.byID, a.id) }},
		{3, "nonce left behind", func(m *Machine, a, _ *session) { m.sessions.byNonce[Nonce{77}] = a }},
		{3, "list ends elsewhere", func(m *Machine, a, _ *session) { m.sessions.last = a }},
		{1, "settings too long", func(m *Machine, _, _ *session) {
			m.charter.Settings = make([]byte,
				MaxSettingsBytes+1)
		}},
		{4, "TTL negative", func(m *Machine, a, _ *session) { a.ttl = -time.Hour }},
		{4, "TTL 0", func(m *Machine, a, _ *session) { a.ttl = 0 }},
		{4, "next 0", func(m *Machine, a, _ *session) { a.next = 0 }},
		{4, "record too long", func(m *Machine, a, _ *session) { a.record = make([]byte, MaxRecordBytes+1) }},
		{5, "number not used up", func(m *Machine, a, _ *session) { a.next = 2 }},
		{5, "entries miscounted", func(m *Machine, a, _ *session) { a.entries++ }},
		{5, "holds miscounted", func(m *Machine, a, _ *session) { a.held-- }},
		{5, "request not found", func(_ *Machine, a, _ *session) { a.requests.Delete(2) }},
		{5, "request left behind", func(_ *Machine, a, _ *session) { a.requests.Put(9, a.firstRequest()) }},
		{5, "numbers out of order", func(m *Machine, a, _ *session) { a.request(1).number, a.request(2).number = 2, 1 }},
		{6, "empty lock", func(m *Machine, _, _ *session) { m.linkLock(&lock{key: "empty", queue: &queue{}}) }},
		{6, "lock not found", func(m *Machine, _, _ *session) { delete(m.locks.byKey, "y") }},
		{6, "bad key", func(m *Machine, _, _ *session) {
			l := m.locks.byKey["y"]
			delete(m.locks.byKey, "y")
			l.key = "\n"
			m.locks.byKey[l.key] = l
		}},
		{7, "broken link", func(m *Machine, a, _ *session) { a.firstRequest().after.ahead = nil }},
		{7, "queue out of order", func(m *Machine, a, _ *session) {
			second := a.firstRequest().after
			second.rev = second.after.rev + 1
		}},
		{7, "waiters miscounted", func(m *Machine, a, _ *session) { a.firstRequest().lock.waiting-- }},
		{7, "entry of a session that is gone", func(m *Machine, a, _ *session) { m.unlinkSession(a) }},
		{8, "no holder", func(m *Machine, a, _ *session) { a.firstRequest().token = 0 }},
		{8, "two hold", func(m *Machine, a, _ *session) { a.firstRequest().after.token = Token(m.bump()) }},
		{9, "token below its entry", func(m *Machine, a, _ *session) { a.firstRequest().token = Token(a.id) - 1 }},
		{9, "granted in the future", func(m *Machine, a, _ *session) { a.firstRequest().mark = 1 << 50 }},
		{10, "a token twice", func(m *Machine, a, b *session) { a.requests.Last().token = b.requests.Last().token }},
		{10, "token from the future", func(m *Machine, a, _ *session) { a.firstRequest().token = Token(m.rev + 1) }},
		{11, "too many sessions", func(m *Machine, _, _ *session) { m.charter.Limits.Sessions = 1 }},
		{11, "too many entries", func(m *Machine, _, _ *session) { m.charter.Limits.EntriesPerSession = 2 }},
		{11, "too many waiters", func(m *Machine, _, _ *session) { m.charter.Limits.WaitersPerLock = 2 }},
		{12, "counts wrong", func(m *Machine, _, _ *session) { m.counts.Waiters++ }},
		{13, "touched and not settled", func(m *Machine, a, _ *session) { m.ripples.touch(a.firstRequest()) }},
		{13, "spare still in use", func(m *Machine, a, _ *session) {
			m.spares.entries = append(m.spares.entries,
				a.firstRequest())
		}},
		{13, "spare lock still in use",
			func(m *Machine, a, _ *session) { m.spares.locks = append(m.spares.locks, a.firstRequest().lock) }},
		{13, "the shared queue changed", func(m *Machine, _, _ *session) { m.locks.shared.leads++ }},
		{13, "spare queue still in use", func(m *Machine, a, _ *session) {
			m.spares.queues = append(m.spares.queues, a.firstRequest().lock.queue)
		}},
		{16, "notices miscounted", func(_ *Machine, a, _ *session) { a.firstRequest().lock.notices++ }},
		{20, "stays miscounted", func(_ *Machine, a, _ *session) { a.firstRequest().lock.stays++ }},
		{20, "a Try waits for an ordinary holder", func(_ *Machine, a, _ *session) { a.firstRequest().after.try = true }},
		{21, "an upgrade of an exclusive hold", func(m *Machine, a, _ *session) {
			e := a.requestAfter(1)
			e.extra = &extra{owner: 1, upgrades: true}
			a.own(e)
		}},
		{21, "an upgrade of another session", func(m *Machine, a, b *session) {
			e := b.firstRequest()
			e.extra = &extra{owner: 1, upgrades: true}
			a.firstRequest().setMode(ModeU, 0, 0)
		}},
	} {
		t.Run(fmt.Sprintf("%d/%s", c.invariant, c.name), func(t *testing.T) {
			w, a, b := crowded(t)
			c.spoil(w.m, w.m.sessions.byID[a], w.m.sessions.byID[b])
			err := w.m.Check()
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("invariant %d:", c.invariant)) {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

func TestCheckIsBrief(t *testing.T) {
	w := newWorld(t)
	for n := range 100 {
		id := w.session(byte(n + 1))
		w.m.sessions.byID[id].ttl = 0
	}
	if lines := strings.Count(w.m.Check().Error(), "\n") + 1; lines > maxComplaints {
		t.Errorf("%d lines", lines)
	}
}
