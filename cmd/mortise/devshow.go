package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

const (
	devLook     = 200 * time.Millisecond // between two looks at the leader
	devLeadGone = time.Second            // for so long no leader is known before this is printed
	devSoon     = 50 * time.Millisecond  // a wait that is not worth a word
)

// devShow prints what happens, and does what the keys say. One goroutine uses it, except that
// changed and news are safe for concurrent use.
type devShow struct {
	group *devGroup
	keys  bool // it reads keys
	typed devKeys
	tail  *lastLines // of the log of the member that this process is

	wake  chan struct{} // something is to be looked at
	mu    sync.Mutex    // guards inbox
	inbox []devNews

	report   fence.Mark // what protects the report
	leadless time.Time  // since then no leader is known
	holds    foreignHolds
}

func newDevShow(c *call, keys bool, instances []devInstance) *devShow {
	s := &devShow{keys: keys, wake: make(chan struct{}, 1), tail: &lastLines{}}
	s.group = &devGroup{c: c, news: s.news}
	for _, i := range instances {
		s.group.parts = append(s.group.parts, &devPart{devInstance: i})
	}
	return s
}

func (s *devShow) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s.tail, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (s *devShow) changed(mortise.NodeEvent) { s.look() }

func (s *devShow) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// news never waits, so that the show can wait for the end of a process.
func (s *devShow) news(n devNews) {
	s.mu.Lock()
	s.inbox = append(s.inbox, n)
	s.mu.Unlock()
	s.look()
}

// end ends all processes.
func (s *devShow) end() {
	for _, p := range s.group.parts {
		if p.running() {
			p.kill()
		}
	}
}

func (s *devShow) run(ctx context.Context, node *mortise.Node, served <-chan error) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	keys, events := make(chan byte), make(chan mortise.Event)
	if s.keys {
		beside.Go(func() { readKeys(ctx, os.Stdin, keys) })
	}
	beside.Go(func() {
		for e, err := range node.Watch(ctx, devPrefix, 0) {
			if err != nil {
				return // ctx or the node has ended
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	ticker := time.NewTicker(devLook)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case err = <-served:
		case <-s.wake:
			err = s.takeNews()
		case <-ticker.C:
			err = node.Err()
		case e := <-events:
			s.event(e)
		case key := <-keys:
			over, failed := s.group.act(s.typed.next(key))
			if over {
				return nil
			}
			err = failed
		}
		if err != nil {
			return err
		}
		s.lookAtLeader(node.Status().Leader)
	}
}

func (s *devShow) takeNews() error {
	s.mu.Lock()
	all := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	for _, n := range all {
		if n.process != n.part.process {
			continue // it was killed
		}
		if err := s.take(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *devShow) take(n devNews) error {
	p, r := n.part, n.report
	if n.ended || r.Kind == devFailed {
		return s.ended(n)
	}
	switch r.Kind {
	case devReady:
		if !p.told {
			s.group.say(plainly, "%s can get locks.", p.Name)
		}
	case devGranted:
		s.granted(p, r)
	case devWrites:
		s.write(p, r.Token)
		_ = p.process.order(orderWrote) // fails if the process has ended, which is reported
	case devLost:
		s.group.say(badly, "%s knows that it has lost %s with token %s.", p.Name, devKey, tokenText(r.Token))
	}
	p.keep(r)
	return nil
}

func (s *devShow) granted(p *devPart, r devReport) {
	wait := ""
	if r.Waited >= devSoon {
		wait = " after a wait of " + took(r.Waited)
	}
	s.group.say(plainly, "%s is granted %s with token %s%s%s.", p.Name, devKey, tokenText(r.Token), wait,
		s.group.lockBlow.since())
	s.group.lockBlow = nil
	s.write(p, r.Token)
}

// write is the write of an instance to the report, which refuses tokens that are too low.
func (s *devShow) write(p *devPart, token mortise.Token) {
	var stale *fence.StaleError
	if err := s.report.Advance(context.Background(), devKey, token); errors.As(err, &stale) {
		s.group.say(badly, "%s writes the report with token %s, and is refused: token %s has written it.", p.Name,
			tokenText(token), tokenText(stale.Highest))
	}
}

// ended is called for a process that has ended although no key has killed it.
func (s *devShow) ended(n devNews) error {
	n.part.kill()
	log := n.log
	if !n.ended {
		log = n.report.Text
	}
	if n.part.id == "" && n.part.starts == 1 {
		return fmt.Errorf("%s could not start: %s", n.part.Name, log)
	}
	s.group.say(badly, "%s has ended, and no key has killed it. Its log ends with: %s", n.part.Name, log)
	return nil
}

func (s *devShow) lookAtLeader(leader string) {
	switch leader {
	case "":
		if s.leadless.IsZero() {
			s.leadless = time.Now()
		}
		if s.group.leader != "" && time.Since(s.leadless) >= devLeadGone {
			s.group.leader = ""
			s.group.say(badly, "No leader is known.")
		}
		return
	default:
		if p := s.group.named(leader); p != nil && p.Name != s.group.leader {
			s.group.say(well, "%s leads%s.", p.Name, s.group.leadBlow.since())
			s.group.leader, s.group.leadBlow = p.Name, nil
		}
	}
	s.leadless = time.Time{}
}

// event prints the holds of other programs, and the ends of holds that are no releases. An instance
// reports its own holds, with its wait.
func (s *devShow) event(e mortise.Event) {
	switch {
	case s.holds.isNew(e) && s.group.named(e.Holder) == nil:
		holder := e.Holder
		if e.Value != "" {
			holder += ", " + e.Value + ","
		}
		s.group.say(plainly, "%s is granted %s with token %s.", holder, e.Key, tokenText(e.Token))
	case e.Kind == mortise.EventFreed && e.Cause != "" && e.Cause != mortise.OutcomeReleased:
		reason := string(e.Cause)
		if e.Reason != "" {
			reason += ": " + e.Reason
		}
		s.group.say(badly, "The group has ended the hold of %s on %s with token %s (%s).", e.Holder, e.Key,
			tokenText(e.Token), reason)
	}
}

// foreignHolds tells new holds from those that a watch reports again.
type foreignHolds struct {
	now     map[devHold]bool
	earlier map[devHold]bool // before the reset; nil if the watch has caught up
}

type devHold struct {
	key   string
	token mortise.Token
}

// isNew reports whether an event is the first one of a hold.
func (h *foreignHolds) isNew(e mortise.Event) bool {
	one := devHold{e.Key, e.Token}
	switch e.Kind {
	case mortise.EventReset:
		h.now, h.earlier = map[devHold]bool{}, h.now
	case mortise.EventCurrent:
		h.earlier = nil
	case mortise.EventHeld:
		known := h.now[one] || h.earlier[one] // a watch begins with a reset
		h.now[one] = true
		return !known
	case mortise.EventFreed:
		delete(h.now, one)
	}
	return false
}
