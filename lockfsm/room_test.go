package lockfsm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestSessionsGiveTheirRoomBack checks that sessions which once had many requests, and keep one
// lock each, need little memory afterwards.
func TestSessionsGiveTheirRoomBack(t *testing.T) {
	const sessions, requests = 40, 2048
	w := newWorld(t)
	once := func(nonce byte) {
		s := w.session(nonce)
		for n := Number(1); n <= requests; n++ {
			w.acquire(s, n, fmt.Sprint(nonce, "/", n), Granted)
		}
		for n := Number(2); n <= requests; n++ {
			w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: n}, Done)
		}
	}
	once(1) // fills the pools
	before := heap()
	for nonce := byte(2); nonce <= sessions; nonce++ {
		once(nonce)
	}
	const most = 16 << 10
	if each := int64(heap()-before) / (sessions - 1); each > most {
		t.Errorf("a session with one lock needs %d bytes after it had %d, want at most %d", each, requests, most)
	}
	w.check()
}

// TestNoRoomRemains lets sessions with many requests end most of them, one session and one key
// after the other. What each leaves behind must be within its charge. A map, for example, keeps the
// room of all its former items: then a guest can make a voter use any memory within a small charge,
// and each walk over the map visits the room.
func TestNoRoomRemains(t *testing.T) {
	const requests, left, rounds = 10_000, 40, 4
	key := func(round, n int) string { return fmt.Sprint("k/", round, "/", n) }
	for name, request := range map[string]func(round, n int) Command{
		"readers that want a notice": func(round, _ int) Command {
			return Command{Key: key(round, 0), Mode: ModeIS, Notice: true}
		},
		"permits, each of another total": func(round, n int) Command {
			return Command{Key: key(round, 0), Mode: ModePermits, Permits: 1, Of: 1<<30 - uint32(n)}
		},
		"stays": func(round, _ int) Command { return Command{Key: key(round, 0), Mode: ModeIS, Sticky: true} },
		"requests, each of another owner": func(round, n int) Command {
			return Command{Key: key(round, n), Owner: Number(n) * Number(n%2)}
		},
		"waiters":    func(round, n int) Command { return Command{Key: key(round, 0)} },
		"a key each": func(round, n int) Command { return Command{Key: key(round, n)} },
		"several keys": func(round, n int) Command {
			return Command{Key: key(round, n), Keys: []string{key(round+rounds, n)}}
		},
	} {
		for order, permuted := range map[string]func(all []Number){
			"the first ones end": func([]Number) {},
			"random ones end": func(all []Number) {
				r := rand.New(rand.NewPCG(1, 2))
				r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			},
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				w := newWorld(t)
				w.do(Command{Kind: Stamp, WallUnixMS: 1 << 40}, Done)
				f := &filler{t: t, m: w.m}
				for range rounds {
					f.open(nil)
				}
				var used, charged []uint64
				for round := range rounds {
					var all []Number
					for n := range requests {
						if code := f.acquire(round, request(round, n)); code != Granted && code != Waiting {
							t.Fatal(code)
						}
						all = append(all, f.numbers[round])
					}
					permuted(all)
					for _, n := range all[:requests-left] {
						f.apply(Command{Kind: Release, Session: f.sessions[round], Number: n})
					}
					f.m.spares = spares{} // bounded separately
					used, charged = append(used, heap()), append(charged, f.m.charged())
				}
				if err := f.m.Check(); err != nil {
					t.Fatal(err)
				}
				// The first round fills the event log, which has a bound.
				more, paid := int64(used[rounds-1])-int64(used[0]), int64(charged[rounds-1]-charged[0])
				if each := (rounds - 1) * int64(8<<10); more > paid+each {
					t.Errorf("%d bytes remain, %d are charged", more, paid)
				}
				t.Logf("%d bytes remain, %d are charged", more, paid)
				runtime.KeepAlive(f)
			})
		}
	}
}
