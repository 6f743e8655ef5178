package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// shownPause is what a pause consists of, except its channel.
type shownPause struct {
	key          pauseKey
	err          string
	delay, until time.Duration
	trying       bool
}

// TestPausesAreThoseOfAModel compares all pauses, in their order, with those of a simple list, and
// which of the waiting calls were woken, after each of many random steps.
func TestPausesAreThoseOfAModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		began := time.Unix(1_000_000, 0)
		now, p := began, &pauses{known: map[pauseKey]*pause{}}
		var model []*shownPause
		open := map[<-chan struct{}]pauseKey{} // channels that are not closed
		keys := func() pauseKey {
			return pauseKey{fmt.Sprint("h", r.IntN(4)), nodeidtest.ID(r.Uint64N(3))}
		}
		find := func(key pauseKey) int {
			return slices.IndexFunc(model, func(b *shownPause) bool { return b.key == key })
		}
		kept := func(b *shownPause) bool { return now.Sub(began) < b.until+pauseKept }
		for step := range 300 {
			now = now.Add(time.Duration(r.Int64N(int64(1 << r.IntN(35)))))
			key, random := keys(), r.Uint64()
			ended := map[pauseKey]bool{} // whose channel must be closed in this step
			switch k := r.IntN(10); {
			case k < 4:
				first, most := pauseFirst, []time.Duration{maxPause, pauseAnswered, preferredFirst}[r.IntN(3)]
				next := &shownPause{key: key, err: fmt.Sprint("failure ", step), delay: min(first, most)}
				if i := find(key); i >= 0 {
					if kept(model[i]) {
						next.delay = min(2*model[i].delay, most)
					}
					ended[key] = true
					model = slices.Delete(model, i, i+1)
				}
				for len(model) > 0 && !kept(model[0]) {
					ended[model[0].key] = true
					model = model[1:]
				}
				next.until = now.Sub(began) + 1 + time.Duration(random%uint64(next.delay))
				model = append(model, next)
				p.failed(key, errors.New(next.err), first, most, now, random)
			case k < 5:
				if i := find(key); i >= 0 {
					ended[key] = true
					model = slices.Delete(model, i, i+1)
				}
				p.end(key)
			case k < 7:
				most := []time.Duration{preferredLast, pauseNewborn}[r.IntN(2)]
				for _, b := range model {
					if b.key.addr == key.addr && b.until > now.Sub(began)+most {
						b.until, b.delay = now.Sub(began)+1+time.Duration(random%uint64(most)), most
						ended[b.key] = true
					}
				}
				p.shorten(key.addr, most, now, random)
			case k < 8:
				if i := find(key); i >= 0 {
					model[i].trying = !model[i].trying
					p.known[key].trying = model[i].trying
				}
			}
			var got []*shownPause
			for e := p.order.Front(); e != nil; e = e.Next() {
				b := e.Value.(*pause)
				got = append(got, &shownPause{b.key, b.err.Error(), b.delay, b.until.Sub(began), b.trying})
				if p.known[b.key] != b || b.place != e {
					t.Fatalf("seed %d, step %d: %v is not where it should be", seed, step, b.key)
				}
			}
			if len(got) != len(p.known) || len(got)+len(model) > 0 && !reflect.DeepEqual(got, model) {
				t.Fatalf("seed %d, step %d: %+v\nwant %+v", seed, step, got, model)
			}
			remembered := 0
			for _, b := range model {
				if kept(b) {
					remembered++
				}
			}
			if n := p.remembered(now); n != remembered {
				t.Fatalf("seed %d, step %d: %d are remembered, want %d", seed, step, n, remembered)
			}
			i := find(key)
			if in := p.in(key, now); (in != nil) != (i >= 0 && (model[i].trying || now.Sub(began) < model[i].until)) ||
				in != nil && in.key != key {
				t.Fatalf("seed %d, step %d: in a pause: %+v", seed, step, in)
			}
			for over, key := range open {
				select {
				case <-over:
					if !ended[key] {
						t.Fatalf("seed %d, step %d: the end of %v is told too early", seed, step, key)
					}
					delete(open, over)
				default:
					if ended[key] {
						t.Fatalf("seed %d, step %d: the end of %v is not told", seed, step, key)
					}
				}
			}
			for _, b := range p.known {
				open[b.over] = b.key
			}
		}
	}
}

func TestPausesAtTheirBound(t *testing.T) {
	p, now := &pauses{known: map[pauseKey]*pause{}}, time.Unix(1_000_000, 0)
	key := func(i int) pauseKey { return pauseKey{addr: fmt.Sprint("h", i)} }
	for i := range maxPauses + 3 {
		p.failed(key(i), ErrRefused, maxPause, maxPause, now, 1<<60)
		if n := min(i+1, maxPauses); len(p.known) != n || p.order.Len() != n || p.in(key(i), now) == nil ||
			i >= maxPauses && p.known[key(i-maxPauses)] != nil {
			t.Fatalf("after %d failures: %d and %d pauses", i+1, len(p.known), p.order.Len())
		}
	}
}

// TestWhatAFailedDialMeans has each kind of failure, alone and behind a pause.
func TestWhatAFailedDialMeans(t *testing.T) {
	for _, c := range []struct {
		err                     error
		answered, ofLink, route bool // what the failure means
		stays                   bool // it is still found behind a pause
	}{
		{ErrRefused, true, false, false, false}, {ErrForeign, true, false, false, false},
		{ErrVersion, true, false, false, false}, {ErrRules, true, false, false, false},
		{ErrOther, false, true, false, false}, {ErrCopy, false, true, false, false},
		{ErrNoLink, false, true, false, false}, {ErrGroup, false, true, false, false},
		{ErrSilent, false, false, false, true}, {ErrPlain, errors.Is(ErrPlain, ErrForeign), false, false, true},
		{ErrSecured, errors.Is(ErrSecured, ErrForeign), false, false, true}, {ErrNoRoute, false, false, false, true},
		{ErrFull, false, false, false, false}, {ErrTooLarge, false, false, false, false},
		{syscall.ENETUNREACH, false, false, true, false}, {syscall.EHOSTUNREACH, false, false, true, false},
		{syscall.EADDRNOTAVAIL, false, false, true, false}, {syscall.EAFNOSUPPORT, false, false, true, false},
		{syscall.ECONNREFUSED, false, false, false, false}, {errors.New("other"), false, false, false, false},
	} {
		err := fmt.Errorf("wrapped: %w", c.err)
		if answered(err) != c.answered || ofLink(err) != c.ofLink || noRoute(err) != c.route {
			t.Errorf("%v: answered %v, of the link %v, no route %v", c.err, answered(err), ofLink(err), noRoute(err))
		}
		paused := error(&pausedError{"a:1", err})
		var number, want syscall.Errno
		if !errors.Is(paused, ErrSilent) || errors.Is(paused, c.err) != c.stays ||
			errors.As(paused, &number) != errors.As(err, &want) || number != want {
			t.Errorf("%v behind a pause: %v, error number %d, want %d", c.err, paused, number, want)
		}
		var link *pausedError
		if !errors.As(paused, &link) || errors.As(err, &link) {
			t.Errorf("%v: %v", c.err, link)
		}
	}
}
