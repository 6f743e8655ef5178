package whole

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/memnet"
	"github.com/mortise-lock/mortise/internal/outside"
)

// run is one run of a plan.
type run struct {
	plan
	began time.Time
	net   *memnet.Network
	dir   string   // parent of the directories of all instances
	only  []string // the names of the parts that the run has; nil means all
	disks []*disk

	mu      sync.Mutex // guards all below; never held across a wait
	out     io.Writer
	verbose bool
	hash    hash.Hash64
	text    []byte // memory of line
	lines   int
	bugs    []string
	source  *rand.ChaCha8
	lone    bool            // instances that start name only the first founder
	nodes   []*mortise.Node // nil while an instance does not run
	lives   []*process      // of the instances that run
	tapes   []*tape
	claims  claims
	acked   map[string]acked
	counts  map[string]int
	shows   shows
	events  []history.Event // all tapes, at the end
	slowest map[string]time.Duration
}

// acked is the revision of data whose Put was acknowledged.
type acked struct {
	group    string
	revision uint64
}

// process is the world of one life of an instance or a guest.
type process struct {
	tape int        // its number
	mu   sync.Mutex // guards dead
	dead bool
}

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *process) lives() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// tape is the history of one life, read after the node was closed.
type tape struct{ bytes.Buffer }

func newRun(p plan, dir string, out io.Writer, verbose bool) *run {
	r := &run{plan: p, began: time.Now(), net: memnet.New(), dir: dir, out: out, verbose: verbose, hash: fnv.New64a(),
		source: rand.NewChaCha8([32]byte{byte(p.seed), byte(p.seed >> 8), byte(p.seed >> 16), 1}),
		nodes:  make([]*mortise.Node, p.nodes), lives: make([]*process, p.nodes),
		claims: claims{of: map[string][]*claim{}, last: map[string]lastToken{}},
		acked:  map[string]acked{}, counts: map[string]int{}, slowest: map[string]time.Duration{}}
	for range p.nodes {
		r.disks = append(r.disks, newDisk())
	}
	return r
}

func (r *run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(fmt.Sprintf(format, args...), true)
}

// line adds a line to the transcript. The hash has every line, and out those to print.
func (r *run) line(text string, printed bool) {
	if r.dirs {
		text = strings.ReplaceAll(text, r.dir, "DIR")
	}
	r.text = fmt.Appendf(r.text[:0], "%10d %s\n", time.Since(r.began).Microseconds(), text)
	_, _ = r.hash.Write(r.text)
	r.lines++
	if printed || r.verbose {
		_, _ = r.out.Write(r.text)
	}
}

// Write receives the log of the nodes.
func (r *run) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.TrimSuffix(string(b), "\n")
	r.line(text, false)
	r.shows.log(r.elapsed(), text)
	return len(b), nil
}

func (r *run) bug(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bugs) == 0 {
		r.shows.at = r.elapsed()
	}
	r.bugs = append(r.bugs, text)
	r.line("BUG "+text, true)
}

func (r *run) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

func (r *run) random(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.source.Read(b)
}

func host(i int) string      { return fmt.Sprintf("10.0.0.%d", i+1) }
func address(i int) string   { return host(i) + ":7947" }
func guestHost(n int) string { return fmt.Sprintf("10.0.1.%d", n+1) }

func (r *run) logger(name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})).With("of", name)
}

const secret = "0123456789abcdef0123456789abcdefWHOLE+nodes/from-one*seed"

func (r *run) config(i int) mortise.Config {
	c := mortise.Config{Name: fmt.Sprintf("node-%d", i), Bind: address(i), SessionTTL: r.ttl, Insecure: true,
		Logger: r.logger(fmt.Sprint(i))}
	if r.secretly() {
		c.Insecure, c.Secret = false, secret
	}
	if r.grows {
		c.Voters = 2*(r.plan.nodes/2) + 1
		for j := range r.founders() {
			c.Founders = append(c.Founders, fmt.Sprintf("node-%d", j))
		}
	} else {
		c.Replicas = r.plan.nodes
	}
	for j := range r.plan.nodes {
		c.Join = append(c.Join, address(j))
	}
	if r.dirs {
		c.Dir, c.DirFreeBytes = filepath.Join(r.dir, c.Name), -1
	}
	if r.hooks {
		c.Hooks = r.everyHook()
	}
	return c
}

func (r *run) secretly() bool { return r.plan.secret }

// founders is how many instances the configuration of the next start names.
func (r *run) founders() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lone {
		return 1
	}
	return r.plan.nodes
}

// alone says whether the next start names only the first founder.
func (r *run) alone(lone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lone = lone
}

// grow starts the instances that do not run yet. Those that run learn of the new founders when they
// start again.
func (r *run) grow(random *rand.Rand, first int) {
	r.alone(false)
	for i := first; i < r.plan.nodes; i++ {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		r.start(i, false)
	}
	for i := range first {
		if r.grows {
			r.kill(i)
			r.start(i, false)
		}
	}
}

func (r *run) everyHook() *mortise.Hooks {
	lock := func(mortise.LockEvent) { r.count("hook") }
	return &mortise.Hooks{
		Mark:     func(context.Context) []byte { return []byte("mark") },
		Acquired: func(context.Context, mortise.LockEvent) any { r.count("hook"); return 1 },
		Unlocked: func(context.Context, mortise.LockEvent) { r.count("hook") },
		Lost:     lock, InDoubt: lock, Node: func(mortise.NodeEvent) { r.count("hook") },
		Synced: func(time.Duration, error) { r.count("hook") },
	}
}

// world returns the environment of one life of a host. When the life has ended, it reaches nothing.
func (r *run) world(p *process, from string) outside.World {
	dial := r.net.Dialer(from)
	return outside.World{
		Listen: func(a string) (net.Listener, error) { return r.net.Listen(a) },
		Dial: func(ctx context.Context, a string) (net.Conn, error) {
			if !p.lives() {
				return nil, syscall.ECONNREFUSED
			}
			return dial(ctx, a)
		},
		Resolve: func(_ context.Context, h string) ([]string, error) { return []string{h}, nil },
		Clock:   clock.Monotonic(), Random: r.random,
	}
}

// start starts instance i, which does not run.
func (r *run) start(i int, powerLost bool) {
	c, p := r.config(i), &process{}
	w := r.world(p, host(i))
	if r.dirs {
		w.Files, w.Site = r.disks[i].begin(powerLost), host(i) // the number of a real file differs in each run
	}
	t := new(tape)
	c.History = t
	n, err := mortise.Start(outside.In(context.Background(), w), c)
	if err != nil {
		r.bug("start of node %d: %v", i, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[i], r.lives[i], r.tapes = n, p, append(r.tapes, t)
	p.tape = len(r.tapes) - 1
	r.shows.ended = append(r.shows.ended, 0)
	r.shows.line.Begin(timeline.Runs, r.elapsed(), lane(i), "runs")
	r.line(fmt.Sprintf("node %d starts", i), true)
}

func (r *run) node(i int) *mortise.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[i]
}

// detach returns instance i, and callers no longer find it.
func (r *run) detach(i int) (n *mortise.Node, p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, p = r.nodes[i], r.lives[i]
	r.nodes[i] = nil
	if n != nil {
		r.shows.ended[p.tape] = r.elapsed()
		r.shows.line.End(timeline.Leads, r.elapsed(), lane(i), "")
		r.shows.line.End(timeline.Runs, r.elapsed(), lane(i), "")
	}
	return n, p
}

// running returns the numbers of the instances that run.
func (r *run) running() (all []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range r.nodes {
		if n != nil {
			all = append(all, i)
		}
	}
	return all
}

func (r *run) leader() int {
	for i := range r.nodes {
		if n := r.node(i); n != nil && n.Status().Leading {
			return i
		}
	}
	return -1
}

// within calls f, and reports a call that does not return within d.
func (r *run) within(what string, d time.Duration, f func()) {
	var once sync.Once
	began := time.Now()
	timer := time.AfterFunc(d, func() {
		once.Do(func() {
			r.bug("%s has not returned within %v", what, d)
			stacks := make([]byte, 1<<20)
			r.say("%s", stacks[:runtime.Stack(stacks, true)])
		})
	})
	f()
	once.Do(func() {})
	timer.Stop()
	kind, _, _ := strings.Cut(what, ":")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowest[kind] = max(r.slowest[kind], time.Since(began))
}

// kill ends instance i like the end of its process.
func (r *run) kill(i int) {
	n, p := r.detach(i)
	if n == nil {
		return
	}
	p.die()
	r.net.Crash(host(i))
	r.close(i, n)
	r.net.Crash(host(i))
}

func (r *run) close(i int, n *mortise.Node) {
	r.within(fmt.Sprintf("Close: node %d", i), 20*time.Second, func() {
		if err := n.Close(); err != nil {
			r.say("close of node %d: %v", i, err)
		}
	})
}

func (r *run) leave(i int) {
	n, _ := r.detach(i)
	if n == nil {
		return
	}
	r.within(fmt.Sprintf("Leave: node %d", i), 12*time.Second, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := n.Leave(ctx)
		cancel()
		r.say("leave of node %d: %v", i, err)
	})
	r.close(i, n)
}

// ready waits until all instances that run are ready.
func (r *run) ready(d time.Duration, when string) {
	for _, i := range r.running() {
		n := r.node(i)
		if n == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), d)
		err := n.Ready(ctx)
		cancel()
		if err != nil {
			r.bug("%s: node %d is not ready in %v: %v", when, i, d, err)
		}
	}
	r.say("ready %s", when)
}

// play runs the plan, and returns the bugs that it saw.
func (r *run) play() []string {
	r.say("%v", r.plan)
	if r.latency > 0 {
		r.net.SetLatency(r.latency)
	}
	first := r.plan.nodes
	if r.grows {
		first = 1
		r.alone(true)
	}
	for i := range first {
		r.start(i, false)
	}
	r.ready(time.Minute, "at first")
	random := rand.New(rand.NewPCG(r.seed, 2))
	if r.storm == 0 {
		r.grow(random, first)
	} else {
		r.net.SetLoss(r.loss, r.pause, r.seed)
		r.stormy(random, first)
		r.net.SetLoss(0, 0, r.seed)
	}
	r.repair()
	r.calmly()
	for i := range r.nodes {
		if n, _ := r.detach(i); n != nil {
			r.close(i, n)
		}
	}
	r.judge()
	r.say("counts %v slowest %v lines %d", r.counts, r.slowest, r.lines)
	return r.bugs
}

// repair ends all faults, and waits until the group is well.
func (r *run) repair() {
	r.heal()
	for i := range r.nodes {
		r.disks[i].mend()
		if r.node(i) == nil {
			r.start(i, false)
		}
	}
	r.ready(time.Minute, "after the storm")
	began := time.Now()
	for !r.well() {
		if time.Since(began) > time.Minute {
			r.bug("the group is not well after a minute: %v", r.node(max(0, r.leader())).Status())
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(2 * r.ttl)
}

// well reports whether the leader has all voters that it wants.
func (r *run) well() bool {
	lead := r.leader()
	if lead < 0 {
		return false
	}
	s := r.node(lead).Status()
	votes := 0
	for _, v := range s.Voters {
		if v.Votes {
			votes++
		}
	}
	want := min(3, r.plan.nodes)
	if r.grows {
		want = r.plan.nodes
	}
	return votes == want
}

func (r *run) judge() {
	var tapes []io.Reader
	for _, t := range r.tapes {
		tapes = append(tapes, t)
	}
	events, err := history.Read(nil, io.MultiReader(tapes...)) // each Read has a buffer of a megabyte
	if err != nil {
		r.bug("reading the history: %v", err)
	}
	r.events = events
	err = history.Judge(events, history.Options{Settle: 5 * time.Minute})
	// The calls of guests are in no file, and the judge says so when it has found nothing else.
	foreign := r.guests > 0 && errors.Is(err, history.ErrUnknown) &&
		strings.Contains(err.Error(), "no file has its calls")
	if err != nil && !foreign {
		r.bug("%v", err)
	}
	keys := make([]string, 0, len(r.claims.of))
	for key, left := range r.claims.of {
		if len(left) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		r.bug("claims on %v are left", keys)
	}
}

// directory returns an empty directory for the instances of a run. Its name has the same length in
// each process.
func directory() (string, func(), error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("whole-%08d", os.Getpid()))
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
