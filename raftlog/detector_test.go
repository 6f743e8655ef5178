package raftlog

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

const (
	second = uint64(40) // ticks of realTick
	minute = 60 * second
	hour   = 60 * minute
)

// trial is a detector with the times of package internal/replica.
type trial struct {
	t *testing.T
	detector
}

func newTrial(t *testing.T) *trial {
	d := &trial{t, newDetector(8, 20, 2, int(minute))}
	d.follows(1)
	return d
}

// pass lets ticks pass. After each number of ticks in the list gaps, a message of replica 1
// arrives. The list is repeated. An empty list means silence.
func (d *trial) pass(ticks uint64, gaps ...uint64) (gaveUp bool) {
	next, since := 0, uint64(0)
	for range ticks {
		d.tick(1)
		since++
		gaveUp = d.givesUp() || gaveUp
		if len(gaps) > 0 && since == gaps[next%len(gaps)] {
			d.follows(1)
			d.heard(1)
			next, since = next+1, 0
		}
	}
	return gaveUp
}

func (d *trial) want(what string, limit uint64) {
	d.t.Helper()
	if got := d.limit(); got != limit {
		d.t.Errorf("%s the limit is %d ticks, want %d", what, got, limit)
	}
}

func TestTheLimitFallsSlowlyAndRisesAtOnce(t *testing.T) {
	d := newTrial(t)
	d.want("at the start", 20)
	d.pass(minute, 2)
	d.want("after a quiet minute", 20)
	d.pass(minute+1, 2, 3, 1)
	d.want("after two quiet minutes", 8)
	d.heard(1)
	d.pass(6, 6)
	d.want("directly after a gap of two ticks too many", 16)
	d.pass(minute-6, 2)
	d.want("a minute after that gap", 16)
	d.pass(minute+1, 2)
	d.want("two minutes after that gap", 8)
	d.tick(2)
	d.want("directly after a tick that came one tick late", 8)
	d.tick(3)
	d.want("directly after a tick that came two ticks late", 12)
	d.pass(2*minute+1, 2)
	d.want("two minutes after that tick", 8)
}

func TestALeaderIsGivenUpAtTheLimitAndOnce(t *testing.T) {
	d := newTrial(t)
	if d.pass(100) {
		t.Error("at the upper bound the detector has given up, and not left that to raft")
	}
	d = newTrial(t)
	d.pass(2*minute+2, 2)
	if d.pass(7) {
		t.Error("it has given up before the limit")
	}
	if !d.pass(1) {
		t.Error("it has not given up at the limit")
	}
	if d.pass(100) {
		t.Error("it has given up twice in one silence")
	}
	d.pass(2*minute+2, 2)
	d.want("after a silence that was longer than every timeout", 8)
	if !d.pass(8) {
		t.Error("the detector did not give up in a second silence")
	}
}

// A process that gets no processor takes few ticks, and late ones.
func TestALateTickCountsOnceAsSilence(t *testing.T) {
	d := newTrial(t)
	d.pass(2*minute+2, 2)
	for range 7 {
		d.tick(1000) // longer than every timeout, so the limit does not rise
		if d.givesUp() {
			t.Fatal("a process that did not run has given up its leader")
		}
	}
	d.tick(1)
	if !d.givesUp() {
		t.Error("after eight ticks it has not given up")
	}
}

// An election that was not needed must not be repeated within an hour, and then within two.
func TestANeedlessElectionHoldsTheLimit(t *testing.T) {
	slow.UnderRace(t)
	d := newTrial(t)
	for _, hold := range []uint64{1, 2, 4, 8, 16, 24, 24} {
		d.pass(2*minute+2, 2)
		d.want("after quiet minutes", 8)
		if !d.pass(12) {
			t.Fatal("it does not give up")
		}
		d.follows(2) // another replica was elected
		d.heard(1)   // and the leader before it was only late
		d.want("after a needless election", 20)
		d.pass(hold*hour-1, 2)
		d.want("before the end of the hold", 20)
		d.pass(1, 2)
		d.want("after the hold", 8)
	}
}

func TestWhatCountsAsANeedlessElection(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(d *trial)
		limit   uint64 // after two further minutes
	}{
		"the leader was late, and there was no election": {func(d *trial) { d.pass(8, 8) }, 20},
		"this process was late":                          {func(d *trial) { d.tick(6) }, 20},
		"this process was a little late":                 {func(d *trial) { d.tick(5) }, 8},
		"the leader was late, but not too late":          {func(d *trial) { d.pass(7, 7) }, 8},
		"this process was stopped":                       {func(d *trial) { d.tick(41) }, 8},
		"the leader was silent for very long":            {func(d *trial) { d.pass(41, 41) }, 8},
		"another replica was late":                       {func(d *trial) { d.heard(3); d.pass(9, 2); d.heard(3) }, 8},
		"the leader has changed":                         {func(d *trial) { d.pass(7, 9); d.follows(2); d.pass(7, 9) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTrial(t)
			d.pass(2*minute+2, 2)
			tc.happens(d)
			d.follows(1)
			d.pass(2*minute+2, 2)
			d.want("later", tc.limit)
		})
	}
}

// Whatever other replicas send, and whenever this process runs, the limit stays within its bounds.
func TestTheLimitStaysWithinItsBounds(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		d := newTrial(t)
		d.now = random.Uint64N(2) * (1 << 40)
		for range 20_000 {
			switch random.IntN(6) {
			case 0:
				d.follows(random.Uint64N(4))
			case 1:
				d.heard(random.Uint64N(4))
			case 2:
				d.givesUp()
			case 3:
				d.now += random.Uint64N(hour) >> random.IntN(20)
			default:
				n := 1 + random.Uint64N(1<<random.IntN(8))
				d.tick(n)
			}
			if limit := d.limit(); limit < 8 || limit > 20 {
				t.Fatalf("seed %d: the limit is %d ticks", seed, limit)
			}
			if d.holds > d.now+24*hour {
				t.Fatalf("seed %d: a hold of more than a day", seed)
			}
		}
	}
}

// realTick is the tick of package internal/replica.
const realTick = 25 * time.Millisecond
