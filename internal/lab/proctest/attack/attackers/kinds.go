//go:build linux

package attackers

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
)

// kind is one kind of attack. The function `each` makes one attempt and returns the tally.
type kind struct {
	name  string
	lanes int           // number of goroutines that run the attack
	pause time.Duration // time between two attempts of a goroutine
	each  func(a *attacker, ctx context.Context, target known) Tally
}

func attacks() []kind {
	return []kind{
		{"impostors", 2, 5 * time.Millisecond, (*attacker).impostor},
		{"hearsay about the voters", 1, 20 * time.Millisecond, (*attacker).hearsay},
		{"unfinished questions of many MiB", 1, 500 * time.Millisecond, (*attacker).questions},
		{"half snapshots", 2, 200 * time.Millisecond, (*attacker).snapshot},
		{"ghosts and false words in gossip", 1, 100 * time.Millisecond, (*attacker).gossip},
		{"fresh identities that retire", 2, 5 * time.Millisecond, (*attacker).identities},
		{"sessions of strangers' records", 1, 20 * time.Millisecond, (*attacker).sessions},
		{"locks that fill the budget", 1, 2000 * time.Millisecond, (*attacker).budget},
		{"frames of tiny raft messages", 1, 500 * time.Millisecond, (*attacker).raft},
		{"connections without TLS", 2, 20 * time.Millisecond, (*attacker).strangers},
		{"resume: one key of a hold of two", 1, 200 * time.Millisecond, (*attacker).resumePart},
		{"resume: a path, with the key above", 1, 200 * time.Millisecond, (*attacker).resumeAbove},
		{"resume: a live hold, as a guest", 1, 200 * time.Millisecond, (*attacker).resumeLive},
		{"resume: a live hold, as a member", 1, 200 * time.Millisecond, (*attacker).resumeMember},
		{"resume: force for one key of a hold", 1, 200 * time.Millisecond, (*attacker).forcePart},
		{"work: owners behind many waiters", 1, time.Second, (*attacker).owners},
		{"work: tokens that no hold has", 1, time.Second, (*attacker).tokens},
		{"work: permits beside many holders", 1, time.Second, (*attacker).permits},
		{"work: repeated Attach", 1, time.Second, (*attacker).attaches},
		{"work: questions about many holders", 1, 100 * time.Millisecond, (*attacker).checks},
		{"streams: rapid reset", 1, 5 * time.Millisecond, (*attacker).resets},
		{"streams: pings", 1, 5 * time.Millisecond, (*attacker).pings},
		{"streams: settings", 1, 5 * time.Millisecond, (*attacker).settings},
		{"streams: priorities and windows", 1, 5 * time.Millisecond, (*attacker).smallFrames},
		{"streams: headers without an end", 1, 20 * time.Millisecond, (*attacker).endlessHeaders},
		{"links: of one guest, kept open", 2, 0, (&linkPool{}).fill},
		{"agent: made-up secrets", 1, time.Second, (*attacker).madeUp},
		{"agent: idle connections", 1, 20 * time.Millisecond, (&idlePool{}).fill},
		{"agent: all leases", 1, time.Second, (*attacker).allLeases},
	}
}

// chosen returns the kinds whose names contain one of the texts in only, which has commas between
// the texts.
func chosen(only string) (list []kind) {
	texts := strings.Split(only, ",")
	for _, k := range attacks() {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(k.name, text) }) {
			list = append(list, k)
		}
	}
	return list
}

// Kinds returns the names of the attacks whose names contain one of the texts in only, which has
// commas between the texts.
func Kinds(only string) (names []string) {
	for _, k := range chosen(only) {
		names = append(names, k.name)
	}
	return names
}

// MostTimes is how many times its length Run may take.
const MostTimes = 5

// Run makes the attacks of the given kinds for the given time, after it has read the plan from in.
// On a slow machine a kind may not have been tried then. Such kinds run again, without the others,
// until [MostTimes] that time have passed. Every few seconds Run writes the tallies to out, by the
// name of the kind.
func Run(ctx context.Context, in io.Reader, out io.Writer, length time.Duration, only string) error {
	var p plan.Plan
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		return err
	}
	a, err := prepare(ctx, p, length)
	if err != nil {
		return err
	}
	r := runner{attacker: a, all: map[string]Tally{}}
	r.runAll(ctx, out, chosen(only))
	return nil
}

type runner struct {
	*attacker
	sums sync.Mutex // guards all
	all  map[string]Tally
}

func (r *runner) runAll(ctx context.Context, out io.Writer, kinds []kind) {
	for n := 0; n < MostTimes && len(kinds) > 0 && ctx.Err() == nil; n++ {
		r.runOnce(ctx, out, kinds)
		kinds = slices.DeleteFunc(kinds, func(k kind) bool { return r.all[k.name].Tried > 0 })
	}
}

func (r *runner) runOnce(ctx context.Context, out io.Writer, kinds []kind) {
	ctx, cancel := context.WithTimeout(ctx, r.length)
	defer cancel()
	var running sync.WaitGroup
	for _, k := range kinds {
		for range k.lanes {
			running.Go(func() { r.run(ctx, k) })
		}
	}
	for ctx.Err() == nil {
		wait(ctx, 5*time.Second)
		r.tell(out)
	}
	running.Wait()
	r.tell(out)
}

func (r *runner) tell(out io.Writer) {
	r.sums.Lock()
	defer r.sums.Unlock()
	_ = json.NewEncoder(out).Encode(r.all)
}

func (r *runner) run(ctx context.Context, k kind) {
	for n := rand.IntN(len(r.targets)); ctx.Err() == nil; n++ {
		t := k.each(r.attacker, ctx, r.targets[n%len(r.targets)])
		if ctx.Err() != nil {
			t.Refused = 0 // the end of the campaign may have interrupted the attempt
		}
		r.sums.Lock()
		sum := r.all[k.name]
		r.all[k.name] = Tally{sum.Tried + t.Tried, sum.Refused + t.Refused, sum.Believed + t.Believed,
			max(sum.Open, t.Open)}
		r.sums.Unlock()
		wait(ctx, k.pause)
	}
}
