package e2e

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// How long the things of the matrix take. No observation but those of MaxHold and MaxIdle takes two
// minutes.
const (
	matrixTTL   = 10 * time.Second
	matrixHold  = 5 * time.Minute
	matrixIdle  = 150 * time.Second
	matrixDelay = time.Hour
)

var (
	modeX, modeS, modeU = mortise.Exclusive, mortise.Shared, mortise.Upgradable
	twoOfFive           = mortise.Permits(2, 5)
)

var refusals = []refusal{
	{"Permits", "Also", "a request that waits for one of its keys would take permits of the others meanwhile: nest " +
		"the requests, the narrowest limit first (`Node.DoNested`)"},
	{"Permits", "Tree", "it would be a request for several keys, as with Also"},
	{"Permits", "Downgrade", "permits exclude no reader, so nothing is left to give up"},
	{"Permits", "re-entry", "permits are counted: each request takes its own"},
	{"Upgradable", "Also", "two that upgrade one key each would wait for each other's other key"},
	{"Upgradable", "Tree", "it would be a request for several keys, as with Also"},
	{"Upgradable", "LockDelay", "a hold without a holder cannot be upgraded, and would keep out those that can"},
	{"Upgradable", "Resume", "its upgrade, which has a token of its own, would stay with the former holder"},
	{"sticky", "Downgrade", "the instance keeps the lock for its next caller, which asks for the same mode"},
	{"sticky", "Put", "the group does not know which caller of the instance holds the lock"},
	{"sticky", "SetValue", "the group does not know which caller of the instance holds the lock"},
	{"sticky", "Resume", "the group does not know which caller of the instance holds the lock"},
}

// things are what a caller can ask for.
var things []*thing

func init() { // the observations use the list
	things = []*thing{
		{name: "Exclusive", mode: &modeX, fields: []string{"Mode"}, observe: func(s *stage) error {
			return s.keepsOut(mortise.Request{Key: s.keyOf(modeX), Mode: modeS})
		}},
		{name: "Shared", mode: &modeS, fields: []string{"Mode"}, observe: func(s *stage) error {
			key := s.keyOf(modeS)
			return errors.Join(s.letsIn(mortise.Request{Key: key, Mode: modeS}), s.keepsOut(mortise.Request{Key: key}))
		}},
		{name: "Upgradable", mode: &modeU, fields: []string{"Mode"}, observe: func(s *stage) error {
			key := s.keyOf(modeU)
			return errors.Join(s.letsIn(mortise.Request{Key: key, Mode: modeS}),
				s.keepsOut(mortise.Request{Key: key, Mode: modeU}))
		}},
		{name: "Permits", mode: &twoOfFive, fields: []string{"Mode"}, observe: observePermits},
		{name: "Tree", fields: []string{"Tree"}, ask: func(r *mortise.Request) { r.Tree = true },
			observe: observeTree},
		{name: "Also", fields: []string{"Also"}, ask: func(r *mortise.Request) {
			r.Also = []mortise.Part{{Key: r.Key + "-also"}}
		}, observe: observeAlso},
		{name: "Try", fields: []string{"Try"}, ask: func(r *mortise.Request) { r.Try = true },
			observe: func(s *stage) error { return s.doesNotWait(mortise.ErrHeld, 0) }},
		{name: "MaxWaiting", fields: []string{"MaxWaiting"}, ask: func(r *mortise.Request) { r.MaxWaiting = 1 },
			observe: func(s *stage) error {
				if s.asks("Try") { // which is refused earlier
					return s.doesNotWait(mortise.ErrHeld, 1)
				}
				return s.doesNotWait(mortise.ErrQueueFull, 1)
			}},
		{name: "MaxHold", fields: []string{"MaxHold"}, ask: func(r *mortise.Request) { r.MaxHold = matrixHold },
			observe: observeMaxHold, ends: true},
		{name: "MaxIdle", fields: []string{"MaxIdle"}, ask: func(r *mortise.Request) { r.MaxIdle = matrixIdle },
			observe: observeMaxIdle, ends: true},
		{name: "JeopardyGrace", fields: []string{"JeopardyGrace"},
			ask: func(r *mortise.Request) { r.JeopardyGrace = time.Hour }, observe: observeGrace},
		{name: "LockDelay", fields: []string{"LockDelay"}, ask: func(r *mortise.Request) { r.LockDelay = matrixDelay },
			observe: observeDelay, ends: true},
		{name: "Notice", fields: []string{"Notice"}, ask: func(r *mortise.Request) { r.Notice = true },
			observe: observeNotice},
		{name: "Value", fields: []string{"Value", "Labels"}, ask: func(r *mortise.Request) {
			r.Value, r.Labels = "first", map[string]string{"of": "all"}
		}, observe: func(s *stage) error { return s.shows("first") }},
		{name: "sticky", call: &ownCall{reflect.TypeFor[mortise.StickyOptions](), []string{"Exclusive", "Shared", "Try",
			"Notice", "Resume"}}, observe: observeSticky},
		{name: "re-entry", observe: observeReentry},
		{name: "Downgrade", mode: &modeX, observe: observeDowngrade, undoes: "Exclusive"},
		{name: "Upgrade", mode: &modeU, needs: "Upgradable", observe: observeUpgrade},
		{name: "Detach", needs: "LockDelay", observe: observeDetach, ends: true},
		{name: "Put", observe: observePut},
		{name: "SetValue", undoes: "Value", observe: func(s *stage) error {
			if err := s.lock.SetValue(brief(s.f.t), "second"); err != nil {
				return err
			}
			return s.shows("second")
		}},
		{name: "Resume", call: &ownCall{reflect.TypeFor[mortise.ResumeOptions](), []string{"Exclusive", "Shared",
			"Upgradable", "Permits", "Tree", "Also", "MaxHold", "MaxIdle", "JeopardyGrace", "LockDelay", "Notice", "Value"}},
			observe: observeResume},
	}
}

func observePermits(s *stage) error {
	key := s.keyOf(twoOfFive)
	rest, err := s.f.nodes[1].Acquire(brief(s.f.t), mortise.Request{Key: key, Mode: mortise.Permits(3, 5)})
	if err != nil {
		return asText(err)
	}
	defer func() { _ = rest.Unlock(brief(s.f.t)) }()
	return s.keepsOut(mortise.Request{Key: key, Mode: mortise.Permits(1, 5)})
}

func observeTree(s *stage) error {
	above := s.key[:len("top")]
	return errors.Join(s.keepsOut(mortise.Request{Key: s.key + "/below", Tree: true}),
		s.keepsOut(mortise.Request{Key: above}), s.letsIn(mortise.Request{Key: above + "/beside", Tree: true}))
}

func observeAlso(s *stage) error {
	if _, err := s.standing(s.also()); err != nil {
		return err
	}
	return s.keepsOut(mortise.Request{Key: s.also()})
}

// doesNotWait asks for a key that another node holds, and for which some requests wait.
func (s *stage) doesNotWait(want error, waiters int) error {
	key := s.key + " in use"
	held, err := s.f.nodes[1].Lock(brief(s.f.t), key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(brief(s.f.t))
	done := make(chan bool)
	for range waiters {
		go func() {
			_, _ = s.f.nodes[2].Lock(ctx, key)
			done <- true
		}()
	}
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	l, err := s.acquire(brief(s.f.t), key)
	took := time.Since(began)
	cancel()
	for range waiters {
		<-done
	}
	if err == nil {
		_ = l.Unlock(brief(s.f.t))
	}
	if unlocked := held.Unlock(brief(s.f.t)); !errors.Is(err, want) || took > 3*time.Second || unlocked != nil {
		return fmt.Errorf("for a key in use: %v after %v; %v", err, took, unlocked)
	}
	return nil
}

func observeMaxHold(s *stage) error {
	for end := s.granted.Add(matrixHold - time.Second); time.Now().Before(end); {
		s.lock.Beat()
		time.Sleep(min(time.Minute, time.Until(end)))
	}
	if err := s.lock.Err(); err != nil {
		return fmt.Errorf("before its time: %w", asText(err))
	}
	time.Sleep(2 * time.Second)
	if err := s.lock.Err(); !errors.Is(err, mortise.ErrLost) {
		return fmt.Errorf("after its time: %v", err)
	}
	return nil
}

// observeMaxIdle beats once, before the lock would end.
func observeMaxIdle(s *stage) error {
	time.Sleep(matrixIdle * 2 / 3)
	if err := s.lock.Err(); err != nil {
		return fmt.Errorf("before its time: %w", asText(err))
	}
	s.lock.Beat()
	last := time.Now()
	<-s.lock.Done()
	took := time.Since(last)
	if err := s.lock.Err(); !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "Beat") ||
		took < matrixIdle || took > matrixIdle*5/4+time.Second {
		return fmt.Errorf("%v after the last beat: %v", took, err)
	}
	return nil
}

// observeGrace separates all nodes, so that no leader can end the session.
func observeGrace(s *stage) error {
	token := s.lock.Token()
	for i := range s.f.nodes {
		s.f.isolate(i)
	}
	time.Sleep(2 * matrixTTL)
	doubt := s.lock.Err()
	for i := range s.f.nodes {
		s.f.rejoin(i)
	}
	if doubt != mortise.ErrInJeopardy {
		return fmt.Errorf("without a leader: %v", doubt)
	}
	ctx, cancel := context.WithTimeout(s.f.t.Context(), time.Minute)
	defer cancel()
	if err := s.lock.Regain(ctx); err != nil || s.lock.Token() != token {
		return fmt.Errorf("token %d, then %d: %v", token, s.lock.Token(), err)
	}
	s.f.ready()
	return nil
}

// observeDelay cuts the holder off until its session has ended.
func observeDelay(s *stage) error {
	s.f.isolate(0)
	time.Sleep(3 * matrixTTL)
	err := s.keepsOut(mortise.Request{Key: s.key})
	s.f.rejoin(0)
	s.f.ready()
	if s.lock.Err() == nil {
		err = errors.Join(err, errors.New("the lock is held although its session has ended"))
	}
	return err
}

func observeNotice(s *stage) error {
	ctx, cancel := context.WithCancel(brief(s.f.t))
	done := make(chan bool)
	go func() {
		_, _ = s.f.nodes[1].Lock(ctx, s.key)
		close(done)
	}()
	var err error
	select {
	case <-s.lock.Wanted():
	case <-time.After(time.Second):
		err = errors.New("the holder does not hear that another request waits")
	}
	cancel()
	<-done
	time.Sleep(time.Second) // the request has left the queue
	return err
}

// shows fails unless others see the value, and the labels if there are some.
func (s *stage) shows(value string) error {
	st, err := s.standing(s.key)
	if err == nil && (st.Value != value || s.asks("Value") && st.Labels["of"] != "all") {
		err = fmt.Errorf("others see the value %q and the labels %v", st.Value, st.Labels)
	}
	return err
}

func observeSticky(s *stage) error {
	var info mortise.KeyInfo
	for range 2 { // the first lock may be given back, because another request has waited for it
		if err := s.lock.Unlock(brief(s.f.t)); err != nil {
			return err
		}
		info = s.f.peek(1, s.key)
		before := s.f.nodes[0].Status().Sticky.Grants
		l, err := s.acquire(brief(s.f.t), s.key)
		if err != nil {
			return err
		}
		s.lock = l
		if len(info.Queue) == 1 && info.Queue[0].Kept && s.f.nodes[0].Status().Sticky.Grants > before {
			return nil
		}
	}
	return fmt.Errorf("the instance does not grant the lock that it keeps: %+v, %+v", info, s.f.nodes[0].Status().Sticky)
}

func observeReentry(s *stage) error {
	again, err := s.acquire(s.lock.Context(brief(s.f.t)), s.key)
	if err != nil {
		return err
	}
	if err := again.Unlock(brief(s.f.t)); err != nil {
		return err
	}
	if again.Token() != s.lock.Token() {
		return errAnew
	}
	return nil
}

func observeDowngrade(s *stage) error {
	token, key := s.lock.Token(), s.keyOf(modeX)
	if err := s.lock.Downgrade(brief(s.f.t)); err != nil {
		return err
	}
	s.lowered = true
	if s.lock.Token() != token {
		return errors.New("another token")
	}
	return errors.Join(s.letsIn(mortise.Request{Key: key, Mode: modeS}), s.keepsOut(mortise.Request{Key: key}))
}

func observeUpgrade(s *stage) error {
	up, err := s.lock.Upgrade(brief(s.f.t))
	if err != nil {
		return err
	}
	reader := mortise.Request{Key: s.keyOf(modeU), Mode: modeS}
	if err := s.keepsOut(reader); err != nil || up.Token() <= s.lock.Token() {
		return fmt.Errorf("the upgrade has token %d after %d: %w", up.Token(), s.lock.Token(), err)
	}
	if err := up.Unlock(brief(s.f.t)); err != nil {
		return err
	}
	return s.letsIn(reader)
}

func observeDetach(s *stage) error {
	if err := s.lock.Detach(brief(s.f.t)); err != nil {
		return err
	}
	if err := s.lock.Err(); !errors.Is(err, mortise.ErrUnlocked) {
		return fmt.Errorf("the handle: %v", err)
	}
	return s.keepsOut(mortise.Request{Key: s.key})
}

func observePut(s *stage) error {
	key := "data of " + s.key
	revision, err := s.lock.Put(brief(s.f.t), key, []byte("progress"), 0)
	if err != nil {
		return err
	}
	data, at, err := s.f.nodes[1].Get(brief(s.f.t), key)
	if err != nil || string(data) != "progress" || at != revision {
		return fmt.Errorf("%q at revision %d, put at %d: %w", data, at, revision, err)
	}
	return nil
}

func observeResume(s *stage) error {
	time.Sleep(time.Second)
	var forced *mortise.ForcedError
	if err := s.former.Err(); !errors.As(err, &forced) || !forced.Resumed || s.lock.Token() <= s.former.Token() {
		return fmt.Errorf("the former holder, with token %d before %d, learns: %w", s.former.Token(), s.lock.Token(),
			asText(err))
	}
	return nil
}
