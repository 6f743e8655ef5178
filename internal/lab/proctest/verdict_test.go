//go:build linux

package proctest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// clocks limits the difference between the clocks of two histories. Each process reads the common
// wall clock and then the boot clock, and may lose the processor between the two readings.
const clocks = 200 * time.Millisecond

// verdict ends a scenario. It waits until all running instances are ready, makes them release all
// locks and stop, and judges all histories.
func (w *world) verdict(readyWithin time.Duration) {
	w.t.Helper()
	w.close()
	began := time.Now()
	w.waitAllReady(readyWithin)
	ready := time.Since(began)
	w.waitVoters(readyWithin, w.living()...)
	voters := time.Since(began)
	w.waitMembers(gossipTime, w.living()...)
	w.t.Logf("all ready after %v, with all voters after %v, and seen by each other after %v",
		ready.Round(time.Millisecond), voters.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	time.Sleep(2 * time.Second) // the instances must remain ready
	living := w.living()
	together(living, func(in *instance) {
		if _, err := in.ask("quiet", "", time.Minute); err != nil {
			w.t.Errorf("give everything back: %v", err)
		}
	})
	together(living, func(in *instance) {
		_ = in.in.Close() // this ends the process
		select {
		case <-in.ended:
		case <-time.After(time.Minute):
			w.t.Errorf("%s does not stop", in.life)
		}
	})
	w.judge()
}

func (w *world) judge() {
	w.t.Helper()
	w.judged = true
	events := w.recorded()
	// settle is longer than any lease, and longer than a group may be without a leader after the
	// faults.
	settle := 2*cmp.Or(w.ttl, defaultTTL) + 15*time.Second
	err := history.Judge(events, history.Options{Uncertainty: clocks, Settle: settle})
	switch {
	case w.noVoter && errors.Is(err, history.ErrUnknown):
		w.t.Logf("all voters were killed, and one had not written its record: %v", err)
	case err != nil:
		w.t.Errorf("the history of this world is not right: %v", err)
	}
	w.census(events)
	w.waits(events)
	w.losses(events)
	w.gaps(events)
}

// census logs the number of recorded events, and the groups that have granted locks. A second group
// may be founded only if the scenario removes the majority. The log shows no token of a pass.
func (w *world) census(events []history.Event) {
	w.t.Helper()
	told, passes := 0, 0
	var groups []string
	logged := map[lockfsm.Token]bool{}
	for _, e := range events {
		if e.Kind == history.Grant {
			logged[e.Token] = true
		}
	}
	for _, e := range events {
		switch {
		case e.Kind == history.Return && e.Outcome == history.Granted:
			told++
			if !logged[e.Token] {
				passes++
			}
		case e.Kind == history.Grant && !slices.Contains(groups, fmt.Sprintf("%x", uint64(e.Group))):
			groups = append(groups, fmt.Sprintf("%x", uint64(e.Group)))
		}
	}
	w.t.Logf("%d lives, %d events, %d locks granted, %d of them as passes, by group %s", len(w.lives), len(events),
		told, passes, strings.Join(groups, ", then "))
	if passes == 0 {
		w.t.Error("no pass was granted: there is too little to judge")
	}
	if most := max(w.groups, 1); len(groups) > most {
		w.t.Errorf("%d groups have granted locks, and there may be %d", len(groups), most)
	}
}

// recorded reads the histories of all instances. In the events of an instance, Stream is its
// position in w.lives, counted from 1.
func (w *world) recorded() []history.Event {
	w.t.Helper()
	var events []history.Event
	for i, in := range w.lives {
		file, err := os.Open(w.file(in.life + ".jsonl"))
		if err != nil {
			w.t.Errorf("the history of %s: %v", in.life, err)
			continue
		}
		var own []history.Event
		own, err = history.Read(nil, file)
		file.Close()
		if err != nil {
			w.t.Errorf("the history of %s: %v", in.life, err)
		}
		for _, e := range own {
			e.Stream = i + 1
			events = append(events, e)
		}
	}
	return events
}

func (w *world) losses(events []history.Event) {
	w.t.Helper()
	keys := map[int]map[uint64]string{} // by stream and by call
	lost := map[int][]string{}
	for _, e := range events {
		switch e.Kind {
		case history.Call:
			if keys[e.Stream] == nil {
				keys[e.Stream] = map[uint64]string{}
			}
			keys[e.Stream][e.Op] = e.Key
		case history.Lost:
			lost[e.Stream] = append(lost[e.Stream], keys[e.Stream][e.Op])
		}
	}
	for i, in := range w.lives {
		if few := lost[i+1]; len(few) > 0 && !w.mayLose[in] {
			w.t.Errorf("%s has lost %d locks, and nothing was done to it: %s", in.life, len(few),
				strings.Join(few[:min(len(few), 5)], ", "))
		}
	}
}

func together(instances []*instance, do func(*instance)) {
	var all sync.WaitGroup
	for _, in := range instances {
		all.Go(func() { do(in) })
	}
	all.Wait()
}
