//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lapse"
)

// played is a lock that writes down each call, with the time limit of its context, and answers it
// with err.
type played struct {
	token  mortise.Token
	c      *call
	err    error
	wanted chan struct{}
	quiet  bool // it writes nothing, because the order of the locks is random
}

func (p *played) note(ctx context.Context, what string, args ...any) error {
	limit := "without a limit"
	if until, has := ctx.Deadline(); has {
		limit = "within " + time.Until(until).String()
	}
	if why := lapse.Reason(ctx); why != "" {
		limit += ", because it " + why
	}
	if !p.quiet {
		p.c.printf("    lock %d: %s%v %s\n", p.token, what, args, limit)
	}
	return p.err
}

func (p *played) Key() string                       { return fmt.Sprint("key of ", uint64(p.token)) }
func (p *played) Token() mortise.Token              { return p.token }
func (p *played) Err() error                        { return p.err }
func (p *played) Beat()                             { _ = p.note(context.Background(), "Beat") }
func (p *played) Wanted() <-chan struct{}           { return p.wanted }
func (p *played) Unlock(ctx context.Context) error  { return p.note(ctx, "Unlock") }
func (p *played) UnlockSoon() error                 { return p.note(context.Background(), "UnlockSoon") }
func (p *played) Detach(ctx context.Context) error  { return p.note(ctx, "Detach") }
func (p *played) Regain(ctx context.Context) error  { return p.note(ctx, "Regain") }
func (p *played) Downgrade(c context.Context) error { return p.note(c, "Downgrade") }
func (p *played) SetValue(ctx context.Context, value string) error {
	return p.note(ctx, "SetValue", value)
}
func (p *played) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return revision + 1, p.note(ctx, "Put", key, string(data), revision)
}

// play adds a lock to a lease.
func (l *lease) play(c *call, token mortise.Token, err error) *played {
	p := &played{token: token, c: c, err: err, wanted: make(chan struct{})}
	l.locks[token] = p
	return p
}

// leftIn writes what a pool of leases has.
func (ls *leases) leftIn(c *call) {
	c.printf("    %d places taken by %d clients\n", ls.places.taken, len(ls.places.each))
	names := map[string]*lease{}
	for _, l := range ls.all {
		names[l.name] = l
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		l := names[name]
		c.printf("    lease %s: locks %v, over %v, %d IDs of requests\n", name, slices.Sorted(maps.Keys(l.locks)),
			context.Cause(l.ctx), len(l.requests.byID))
	}
}

// TestCallsOfLocksAreAsRecorded makes each request about a lock of a lease: with the right lease
// and token, with wrong ones, and for a lock that is lost or in doubt. It compares the answers, the
// calls of the lock with their limits, and what is left.
func TestCallsOfLocksAreAsRecorded(t *testing.T) {
	all := map[string]func(c *call) error{}
	d := func(ls *leases) *door { return &door{leases: ls} }
	limit, none, wrong := 7.0, 0.0, -1.0
	for what, do := range map[string]func(ls *leases, r *http.Request, a asked) (any, error){
		"unlock":    func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).unlock(r, a) },
		"detach":    func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).detach(r, a) },
		"downgrade": func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).downgrade(r, a) },
		"value":     func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).value(r, a) },
		"check":     func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).check(r, a) },
		"put":       func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).put(r, a) },
		"put with an ID": func(ls *leases, r *http.Request, a asked) (any, error) {
			a.Request = "id"
			door := d(ls)
			_, _ = door.put(r, a)
			return door.put(r, a)
		},
		"beat":    func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).beat(r, a) },
		"upgrade": func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).upgrade(r, a) },
		"upgrade for no time": func(ls *leases, r *http.Request, a asked) (any, error) {
			a.Wait = &none
			return d(ls).upgrade(r, a)
		},
		"upgrade for less": func(ls *leases, r *http.Request, a asked) (any, error) {
			a.Wait = &wrong
			return d(ls).upgrade(r, a)
		},
		"regain": func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).regain(r, a) },
		"regain for a time": func(ls *leases, r *http.Request, a asked) (any, error) {
			a.Wait = &limit
			return d(ls).regain(r, a)
		},
		"regain for less": func(ls *leases, r *http.Request, a asked) (any, error) {
			a.Wait = &wrong
			return d(ls).regain(r, a)
		},
		"keepalive": func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).keepalive(r, a) },
		"end":       func(ls *leases, r *http.Request, a asked) (any, error) { return d(ls).end(r, a) },
		"giving up": func(ls *leases, r *http.Request, a asked) (any, error) {
			a.Request = "another"
			return d(ls).unlock(r, a)
		},
	} {
		all[what] = func(c *call) error {
			if c.json {
				return nil
			}
			for _, how := range []string{"right", "another lease", "another token", "lost", "in doubt", "client gone"} {
				ls := newLeases(nil)
				l, err := ls.open("client", "one", time.Minute)
				if err != nil {
					return err
				}
				if _, err := ls.open("client", "two", time.Minute); err != nil {
					return err
				}
				a := asked{Lease: l.id, Token: 41, Key: "k", Value: "v", Data: []byte("d"), Revision: 9, Name: "n"}
				lock := l.play(c, 41, nil)
				l.play(c, 42, nil).quiet = true
				r := httptest.NewRequest("POST", "/v1/lock", nil)
				switch how {
				case "another lease":
					a.Lease = "x"
				case "another token":
					a.Token = 43
				case "lost":
					lock.err = mortise.ErrLost
				case "in doubt":
					lock.err = mortise.ErrInJeopardy
				case "client gone":
					ctx, gone := context.WithCancel(r.Context())
					gone()
					lock.err = fmt.Errorf("%w: %w", mortise.ErrInJeopardy, context.Canceled)
					r = r.WithContext(ctx)
				}
				c.printf("%s\n", how)
				answer, err := do(ls, r, a)
				text, _ := dialect(answer)
				c.printf("    %s, %v\n", strings.TrimSpace(string(text)), err)
				ls.leftIn(c)
				ls.close()
			}
			return nil
		}
	}
	synctest.Test(t, func(t *testing.T) { sameAs(t, "testdata/locks.txt", record(all)) })
}

// pass lets time pass. The timers of leases see what was written before.
func (ls *leases) pass(d time.Duration) {
	_, _ = ls.find(nil, "") // takes mu, as the timers do
	time.Sleep(d)           // fake time
	synctest.Wait()
}

// TestLivesOfLeasesAreAsRecorded compares how leases end, what becomes of their locks, and what
// their clients are told.
func TestLivesOfLeasesAreAsRecorded(t *testing.T) {
	opened := func(c *call, ttl time.Duration) (*leases, *lease) {
		ls := newLeases(nil)
		l, err := ls.open("client", "one", ttl)
		if err != nil {
			t.Fatal(err)
		}
		l.play(c, 41, nil)
		return ls, l
	}
	lasting := func(c *call, ls *leases, id string, most time.Duration) func() {
		done, err := ls.lasting("client", id, "lasting "+id, most)
		c.printf("    %s: %v\n", id, err)
		if err != nil {
			return func() {}
		}
		return done
	}
	all := map[string]func(c *call) error{
		"expires": func(c *call) error {
			ls, l := opened(c, time.Minute)
			ls.pass(time.Minute - 1)
			ls.leftIn(c)
			ls.pass(1)
			ls.leftIn(c)
			c.printf("    %v\n", context.Cause(l.ctx))
			return nil
		},
		"is kept": func(c *call) error {
			ls, l := opened(c, time.Minute)
			for range 3 {
				ls.pass(time.Minute - 1)
				kept, held, err := ls.keep(nil, l.id)
				c.printf("    %v, %v, %v\n", kept == l, held, err)
			}
			ls.pass(time.Minute)
			_, held, err := ls.keep(nil, l.id)
			c.printf("    %v, %v\n", held, err)
			return nil
		},
		"of a connection": func(c *call) error {
			ls, l := opened(c, 0)
			ls.pass(time.Hour)
			_, held, err := ls.keep(nil, l.id)
			c.printf("    %v, %v\n", held, err)
			c.printf("    %v, %v\n", ls.drop(l.id, l.lost("is gone")), ls.drop(l.id, "again"))
			ls.leftIn(c)
			return nil
		},
		"of another program": func(c *call) error {
			ls, l := opened(c, 0)
			_, _, err := ls.keep(&program{}, l.id)
			c.printf("    %v\n", err)
			ls.drop(l.id, "")
			return nil
		},
		"is cut off": func(c *call) error {
			ls, l := opened(c, 0)
			ls.close()
			_, err := ls.open("client", "late", 0)
			c.printf("    %v, %v, %v\n", err, ls.ctx.Err(), context.Cause(l.ctx))
			ls.leftIn(c)
			return nil
		},
		"news": func(c *call) error {
			ls, l := opened(c, 0)
			first, second := l.locks[41].(*played), l.play(c, 40, nil)
			told := map[mortise.Token]lockText{}
			for _, step := range []func(){
				func() {}, func() { close(first.wanted) }, func() {}, func() { second.err = mortise.ErrInJeopardy }, func() {},
				func() { close(second.wanted) }, func() { second.err = nil }, func() { first.err = mortise.ErrInJeopardy },
				func() { first.err, second.err = mortise.ErrLost, mortise.ErrLost }, func() {},
				func() { l.play(c, 44, mortise.ErrInJeopardy); close(l.play(c, 43, mortise.ErrInJeopardy).wanted) },
			} {
				step()
				c.printf("    %+v\n", ls.news(l, told))
			}
			return nil
		},
		"lasting": func(c *call) error {
			ls := newLeases(nil)
			done, again := lasting(c, ls, "a", time.Minute), lasting(c, ls, "a", time.Hour)
			lasting(c, ls, "b", 0)()
			ls.leftIn(c)
			done()
			ls.leftIn(c)
			ls.all["a"].play(c, 41, nil)
			c.printf("    %v %v\n", ls.holds("a"), ls.holds("b"))
			again()
			ls.leftIn(c)
			_, _, err := ls.keep(nil, "a")
			c.printf("    %v\n", err)
			ls.pass(time.Minute)
			ls.leftIn(c)
			return nil
		},
		"lasting, without room": func(c *call) error {
			ls := newLeases(nil)
			ls.places.limit = 4 // one client has half of them at most
			for _, id := range []string{"a", "b"} {
				done := lasting(c, ls, id, 0)
				ls.all[id].play(c, 41, nil)
				done()
			}
			lasting(c, ls, "c", 0)
			ls.all["a"].locks[41].(*played).err = mortise.ErrLost
			lasting(c, ls, "c", 0)
			ls.leftIn(c)
			return nil
		},
		"finished": func(c *call) error {
			for _, err := range []error{nil, mortise.ErrLost} {
				ls := newLeases(nil)
				done := lasting(c, ls, "a", 0)
				ls.all["a"].play(c, 41, err)
				done()
				for _, id := range []string{"a", "b"} {
					ended, err := ls.finish(context.Background(), nil, id)
					c.printf("    %s: %v, %v, holds %v\n", id, ended, err, ls.holds(id))
				}
				ls.leftIn(c)
			}
			return nil
		},
		"requests": func(c *call) error {
			ls, l := opened(c, 0)
			take := func(id string, token mortise.Token, fails error) {
				ctx := context.WithValue(context.Background(), requestKey{}, request{id: id})
				lock, err := ls.take(ctx, nil, l.id, func(context.Context) (holding, error) {
					return &played{token: token, c: c, wanted: make(chan struct{})}, fails
				})
				if err != nil {
					c.printf("    %s: %v\n", id, err)
					return
				}
				c.printf("    %s: token %d\n", id, lock.Token())
			}
			take("p", 50, nil)
			take("p", 51, nil)
			l.locks[50].(*played).err = mortise.ErrInJeopardy
			take("p", 52, nil)
			l.locks[50].(*played).err = mortise.ErrLost
			take("p", 53, nil)
			take("q", 54, errors.New("no"))
			take("q", 55, nil)
			token, err := ls.giveUp(context.Background(), nil, l.id, "q")
			c.printf("    %d, %v\n", token, err)
			take("q", 56, nil)
			c.printf("    %v\n", ls.release(context.Background(), nil, l.id, 53, holding.Unlock))
			take("p", 57, nil)
			ls.leftIn(c)
			return nil
		},
	}
	for what, play := range all {
		all[what] = func(c *call) error {
			if c.json {
				return nil
			}
			return play(c)
		}
	}
	synctest.Test(t, func(t *testing.T) { sameAs(t, "testdata/leases.txt", record(all)) })
}
