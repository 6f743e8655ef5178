package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

var writeStates = flag.Bool("states", false, "write "+statesFile+" anew")

// statesFile is a table of the output of each view in each state. docs/OPERATION.md links to it.
const statesFile = "testdata/states.md"

type state struct {
	name, truth string
	nodes       int
	dir         bool
	play        func(s *stage)
	lasts       time.Duration // fake time that passes before the views are read
	calm        bool          // no operator needs to act, so no view may raise an alarm
}

func states() []state {
	hold := func(s *stage, i int, key string) { s.lock(i, mortise.Request{Key: key, Value: "charging"}) }
	return []state{
		{name: "healthy", truth: "locks are granted, and any one instance may be stopped", nodes: 3,
			play: func(*stage) {}, calm: true},
		{name: "an election", truth: "one instance leads, and the others wait until it stops", nodes: 3,
			calm: true, play: func(s *stage) {
				for i := range 3 {
					e := election.New(s.Node(i), "leader", election.Options{})
					s.run(func(ctx context.Context) {
						_ = e.Run(ctx, "10.0.0.7:80", func(ctx context.Context,
							_ *election.Leadership) error {
							<-ctx.Done()
							return nil
						})
					})
				}
			}},
		{name: "package tick", truth: "a job runs once a minute on one of the instances", nodes: 3, calm: true,
			play: func(s *stage) {
				for i := range 3 {
					node := s.Node(i)
					s.run(func(ctx context.Context) {
						_ = tick.Run(ctx, node, tick.Job{Name: "report", Schedule: tick.Every(time.Minute),
							Run: func(context.Context, tick.Tick) error {
								time.Sleep(time.Second) // fake time
								return nil
							}})
					})
				}
			}},
		{name: "a contended lock", truth: "a lock changes hands every 100 ms, and requests wait for it", nodes: 3,
			calm: true, play: func(s *stage) {
				for i := range 3 {
					node := s.Node(i)
					s.run(func(ctx context.Context) {
						for ctx.Err() == nil {
							_ = node.Do(ctx, "orders/42", func(context.Context, mortise.Token) error {
								time.Sleep(100 * time.Millisecond) // fake time
								return nil
							})
						}
					})
				}
			}},
		{name: "a stuck holder", truth: "the holder is alive and does not unlock, and a request waits for the lock", nodes: 3,
			play: func(s *stage) {
				hold(s, 1, "orders/42")
				s.wait(0, "orders/42")
			}},
		{name: "a restarted holder",
			truth: "an instance was killed with a lock and runs again: the lock is free when its earlier session ends",
			nodes: 3, lasts: time.Second, play: func(s *stage) {
				s.follow(1)
				hold(s, 1, "orders/42")
				s.wait(0, "orders/42")
				time.Sleep(time.Minute) // fake time
				s.Kill(1)
				s.start(1)
				s.Until("node-1 has a session",
					func() bool { return s.Node(1).Status().Attached })
			}},
		{name: "a voter is lost", truth: "locks are granted by the two others; after a minute one of them has the only " +
			"vote, and its loss would end that", nodes: 3, dir: true, play: func(s *stage) {
			s.follow(2)
			s.Kill(2)
		}},
		{name: "the quorum is lost", truth: "nothing is granted before one of the two others is back with its directory",
			nodes: 3, dir: true, play: func(s *stage) {
				hold(s, 0, "orders/42")
				s.wait(0, "orders/42")
				time.Sleep(time.Minute) // fake time
				s.Kill(1)
				s.Kill(2)
			}},
		{name: "an instance is cut off", truth: "this instance reaches no other one; the two others continue", nodes: 3,
			dir: true, play: func(s *stage) {
				s.follow(0)
				s.Isolate(0)
			}},
		{name: "another secret", truth: "this instance, a voter, has another secret than the two others, which continue",
			nodes: 3, dir: true, play: func(s *stage) {
				s.follow(2)
				s.Kill(2)
				s.secret[2] = "another secret of the same length, that no other one has 0123"
				s.start(2)
				s.look = 2
			}},
		{name: "three of five are here", truth: "three instances run, and Replicas is five; the voters are there",
			nodes: 5, play: func(s *stage) {
				for _, i := range s.others() {
					s.Kill(i)
				}
				s.look = s.running()[0]
			}},
		{name: "five run, and Replicas says two",
			truth: "five instances run and Replicas is two, so a second group could be founded during a cut", nodes: 5,
			play: func(s *stage) {
				s.replicas = 2
				for i := range s.Len() { // a rolling update of Replicas
					s.Kill(i)
					s.start(i)
					s.Ready()
				}
				s.look = s.Leader()
			}},
		{name: "two instances of one name",
			truth: "a fourth instance runs under the name of this one; it locks, and gets no vote", nodes: 4,
			play: func(s *stage) {
				i := s.others()[0]
				s.Kill(i)
				s.look = s.Leader()
				s.name[i] = s.Node(s.look).Status().Name
				s.start(i)
			}},
	}
}

type stage struct {
	*mortisetest.Cluster
	t            *testing.T
	state        state
	root         string
	name, secret map[int]string
	all          sync.WaitGroup
	ctx          context.Context
	look         int
	replicas     int // Config.Replicas of the next start; 0 means all nodes
	lives        []*counters
	scrapes      history
	leaderless   map[int]time.Time
}

// TestStates creates each state, and compares the output of Status, the page, mortise doctor and
// the alert rules with statesFile, which was reviewed by hand. With the flag -states it writes the
// file anew. A calm state must raise no alarm. At a merge it creates every fourth state.
func TestStates(t *testing.T) {
	table := "| state | what is true | Status | the page | mortise doctor | alerts |\n|---|---|---|---|---|---|\n"
	for i, state := range states() {
		if testing.Short() && !*writeStates && i%4 > 0 {
			continue
		}
		t.Run(state.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { table += newStage(t, state).row() })
		})
	}
	if *writeStates {
		if err := os.WriteFile(statesFile, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	same := table == string(want)
	if testing.Short() {
		same = true
		for row := range strings.Lines(table) {
			same = same && strings.Contains(string(want), row)
		}
	}
	if !same && !t.Failed() {
		t.Errorf("%s is not what the views say now; read the difference, then write it with -states:\n%s", statesFile,
			table)
	}
	page, err := os.ReadFile("../../docs/OPERATION.md")
	if err != nil || !strings.Contains(string(page), "(../cmd/mortise/"+statesFile+")") {
		t.Errorf("docs/OPERATION.md does not link to %s (%v)", statesFile, err)
	}
}

func newStage(t *testing.T, state state) *stage {
	s := &stage{
		t: t, state: state, root: t.TempDir(), name: map[int]string{}, secret: map[int]string{},
		lives: make([]*counters, state.nodes), leaderless: map[int]time.Time{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.Cluster = mortisetest.NewWith(t, state.nodes, mortisetest.Options{MayHold: true, Configure: s.configure})
	t.Cleanup(s.all.Wait)
	t.Cleanup(cancel)
	state.play(s)
	lasts := cmp.Or(state.lasts, 12*time.Minute)
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(min(scrapeEvery, lasts)) { // in fake time
		s.scrape()
	}
	s.scrape()
	return s
}

func (s *stage) configure(i int, c *mortise.Config) {
	c.SessionTTL = 10 * time.Second
	c.Secret = cmp.Or(s.secret[i], "a secret of this test with more than enough bits 0123456789abcdef")
	c.Name = cmp.Or(s.name[i], c.Name)
	c.Replicas = cmp.Or(s.replicas, c.Replicas)
	if s.state.dir {
		c.Dir = s.root + "/" + c.Name + s.secret[i]
	}
	s.lives[i] = &counters{}
	c.Hooks = s.lives[i].hooks()
}

func (s *stage) start(i int) { s.Start(i) }

func (s *stage) follow(i int) {
	for s.Leader() == i {
		s.Isolate(i)
		time.Sleep(20 * time.Second) // fake time
		s.Heal()
		s.Ready()
	}
	time.Sleep(time.Minute) // fake time until the lost voter is replaced
}

func (s *stage) others() (list []int) {
	for i := range s.Len() {
		if !s.Node(i).Status().Votes {
			list = append(list, i)
		}
	}
	return list
}

func (s *stage) run(fn func(context.Context)) { s.all.Go(func() { fn(s.ctx) }) }

func (s *stage) lock(i int, r mortise.Request) {
	if _, err := s.Node(i).Acquire(s.ctx, r); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) wait(i int, key string) {
	node := s.Node(i)
	s.run(func(ctx context.Context) { _, _ = node.Lock(ctx, key) })
	s.Until("it waits", func() bool { return node.Status().Waiters == 1 })
}

func (s *stage) running() (list []int) {
	for i := range s.Len() {
		if !errors.Is(s.Node(i).Err(), mortise.ErrClosed) {
			list = append(list, i)
		}
	}
	return list
}

func (s *stage) scrape() {
	now := scrape{at: time.Now()}
	for _, i := range s.running() {
		st := s.Node(i).Status()
		now.all = append(now.all, s.lives[i].reading(st))
		if st.Leader != "" {
			delete(s.leaderless, i)
		} else if s.leaderless[i].IsZero() {
			s.leaderless[i] = now.at
		}
	}
	s.scrapes = append(s.scrapes, now)
}

func (s *stage) row() string {
	alerts := firing(s.scrapes)
	status, page, doctor := s.statusSays(), s.pageSays(), s.doctorSays()
	if s.state.calm && (len(alerts) > 0 || !strings.HasPrefix(page, "fine: ") ||
		!strings.HasPrefix(doctor, "well: ") || strings.Contains(page+doctor, "force")) {
		s.t.Errorf("an alarm in %q:\n%s\n%s\n%s", s.state.name, page, doctor, alerts)
	}
	links := "none"
	for i, name := range alerts {
		alerts[i] = "[" + name + "](../../../docs/OPERATION.md#" + strings.ToLower(name) + ")"
		links = strings.Join(alerts[:i+1], ", ")
	}
	cells := []string{s.state.name, s.state.truth, status, page, doctor, links}
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
		if i > 1 && i < 5 {
			cells[i] = figures(cells[i])
		}
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

var masked = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b[0-9a-f]{12,16}\b`), "GROUP"},
	{regexp.MustCompile(`10\.0\.0\.\d(:7947)?`), "ADDR"},
	{regexp.MustCompile(`"?\bnode-\d\b"?`), "NAME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`), "TIME"},
	// Whether this instance has asked a voter since the last leader did is a matter of chance.
	{regexp.MustCompile(`\(last answered TIME\)`), "(no answer since TIME or earlier)"},
	{regexp.MustCompile(`session \d+`), "session N"},
	{regexp.MustCompile(`token \d+`), "token N"},
	{regexp.MustCompile(`\b\d+(\.\d+)?( min \d+)? (s|min)\b`), "N s"},
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?m?s\b`), "N s"},
}

func figures(text string) string {
	for _, m := range masked {
		text = m.find.ReplaceAllString(text, m.with)
	}
	return text
}

func (s *stage) statusSays() string {
	st := s.Node(s.look).Status()
	text := cmp.Or(st.Waiting, "reports no problem")
	if st.Namesake != "" {
		text += "; " + st.Namesake
	}
	if h := s.health(); h != nil && st.Leader != "" {
		text += "; next safe step: " + h.Advice
	}
	return text
}

func (s *stage) pageSays() string {
	h := console.New(s.Node(s.look), console.Options{})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/status.json", nil))
	var page struct {
		Findings []struct {
			Level, What, Next string
			About             []struct{ Key, Text string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Findings) == 0 {
		s.t.Fatalf("%v: %s", err, w.Body)
	}
	f := page.Findings[0]
	text := f.Level + ": " + f.What
	for _, a := range f.About {
		text += " " + a.Key + " " + a.Text + "."
	}
	return text + " Next: " + f.Next
}

func (s *stage) leading() int {
	for _, i := range s.running() {
		if s.Node(i).Status().Leading {
			return i
		}
	}
	return -1
}

func (s *stage) health() *mortise.Health {
	if i := s.leading(); i >= 0 {
		return s.Node(i).Status().Health
	}
	return nil
}

// doctorSays returns the headline, the first step and, for each key that requests wait for, the
// fate of its holder.
func (s *stage) doctorSays() string {
	f := facts{health: s.health()}
	for i := range s.Len() {
		st := s.Node(i).Status()
		r := guest.Report{Addr: "10.0.0." + string(rune('1'+i)) + ":7947", From: "Join"}
		switch {
		case !slices.Contains(s.running(), i):
			r.Outcome, r.Err = guest.Refused, errors.New("connection refused")
		case s.secret[i] != "":
			r.Outcome, r.Err = guest.Foreign, errors.New("it has another secret")
		default:
			st.Health = nil
			r.Outcome, r.Status = guest.Answered, &st
			r.Answer = &query.HereAnswer{Durable: s.state.dir, Replicas: uint32(cmp.Or(s.replicas, s.state.nodes))}
			if since := s.leaderless[i]; !since.IsZero() {
				r.Answer.Leaderless = int64(time.Since(since))
			}
		}
		f.reports = append(f.reports, r)
	}
	d := diagnose(f)
	fates := ""
	if i := s.leading(); i >= 0 {
		for k, err := range s.Node(i).List(s.ctx, "") {
			if err != nil {
				s.t.Fatal(err)
			}
			if k.Waiting > 0 && !lasts(k) && k.Held > 0 {
				d.stuck(f, []hot{hotOf(k)})
				if !s.state.calm { // in calm states the lock changes hands, so its holder differs each time
					fates += ". " + k.Key + ": " + holderFate(k.Queue[0], f).text
				}
			}
		}
	}
	text := map[bool]string{true: "well: ", false: "trouble: "}[d.Well] + d.Problem + ". Next: " + d.Steps[0] + fates
	return text
}
