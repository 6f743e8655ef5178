//go:build linux

package proctest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests multiply limits in real time by slack, because machines are shared.
const slack = 5

// settings apply to all instances of a world. An instance's own variables override them.
type settings struct {
	replicas int
	founders []string
	voters   int           // zero means the default, 3
	ttl      time.Duration // zero means the default, 10 s
	unused   time.Duration // Config.StickyUnused; zero means the default, 1 s
	grace    bool          // keep the default of Config.Grace; needed if one group follows another
	durable  bool          // each instance has a directory, named after it
	groups   int           // number of groups that may grant locks in turn; zero means one
	// noVoter means that all voters are killed at once. No other process has the ends of their
	// records, which may be lost with them.
	noVoter bool
	// fleet means that there are far more instances than processors.
	fleet bool
	// kinds means that forwarders in front of the instances can cut some kinds of connections.
	kinds   bool
	air     *air // nil means that no packet is delayed or lost
	callers int  // goroutines of each instance that lock and unlock their own key all the time
}

type world struct {
	t *testing.T
	settings
	net        *network
	names      *names
	forwarders *forwarders // nil unless the test cuts kinds of connections
	dir        string
	resolv     string // the file resolv.conf of all machines

	lives      []*instance // all instances that were ever started, in the order of their starts
	listed     []*machine  // the machines to which the service's name resolves
	departures []departure
	// Instances that were cut off, stopped or without a majority, and so may lose their locks.
	mayLose map[*instance]bool
	judged  bool
}

func newWorld(t *testing.T, s settings) *world {
	t.Helper()
	w := &world{t: t, settings: s, dir: t.ArtifactDir(), mayLose: map[*instance]bool{}}
	w.net = newNetwork(t, s.air)
	server := w.net.add()
	w.names = serveNames(t, server)
	w.resolv = filepath.Join(w.dir, "resolv.conf")
	if err := os.WriteFile(w.resolv, fmt.Appendf(nil, "nameserver %s\noptions timeout:1 attempts:1\n", server.ip),
		0o644); err != nil {
		t.Fatal(err)
	}
	if s.kinds {
		w.forwarders = newForwarders()
	}
	t.Cleanup(w.end)
	return w
}

// end stops all running instances. If the test has failed, end first prints their state.
func (w *world) end() {
	if w.t.Failed() {
		w.tell()
	}
	for _, in := range w.lives {
		in.stopNow()
	}
	if !w.judged && !w.t.Failed() {
		w.t.Error("the scenario has ended without a verdict")
	}
}

func (w *world) list(machines ...*machine) {
	w.listed = machines
	var found []netip.Addr
	for _, m := range machines {
		found = append(found, netip.MustParseAddr(m.ip))
	}
	w.names.say(func(netip.Addr) []netip.Addr { return found })
}

func (w *world) machine() *machine {
	w.t.Helper()
	m := w.net.add()
	if w.kinds {
		w.forwarders.stand(w.t, m)
	}
	return m
}

func (w *world) unlist(m *machine) {
	w.list(slices.DeleteFunc(slices.Clone(w.listed), func(other *machine) bool { return other == m })...)
}

// startAll starts n instances simultaneously, named a, b, c, …, each on its own machine. The name
// server lists these machines.
func (w *world) startAll(n int) []*instance {
	w.t.Helper()
	return w.startOn(w.machinesFor(n)...)
}

func (w *world) machinesFor(n int) []*machine {
	w.t.Helper()
	var machines []*machine
	for range n {
		machines = append(machines, w.machine())
	}
	w.list(slices.Concat(w.listed, machines)...)
	return machines
}

func (w *world) startOn(machines ...*machine) []*instance {
	w.t.Helper()
	var started []*instance
	for i, m := range machines {
		started = append(started, w.start(nameOf(i), m))
	}
	return started
}

func nameOf(i int) string { return string(rune('a' + i)) }

func (w *world) start(name string, m *machine, more ...string) *instance {
	return w.startProgram(present, name, m, more...)
}

// startProgram starts an instance that runs the given program. The variables in more replace other
// variables of the same name.
func (w *world) startProgram(program, name string, m *machine, more ...string) *instance {
	w.t.Helper()
	life := fmt.Sprintf("%s-%d", name, len(w.lives))
	in := newInstance(w, name, life, m)
	w.lives = append(w.lives, in)
	in.run(filepath.Join(os.Getenv(programsEnv), program), append(w.environment(name, life, m), more...))
	return in
}

func (w *world) environment(name, life string, m *machine) []string {
	vars := []string{
		"PATH=" + os.Getenv("PATH"), "PLANTED_BUG=" + os.Getenv("PLANTED_BUG"),
		"MT_HISTORY=" + w.file(life+".jsonl"), "MT_PROBE_EVERY=20ms",
		"ORDERS_NAME=" + name, "ORDERS_JOIN=dns:///" + service + ":7947",
	}
	set := func(name, value string) { vars = append(vars, name+"="+value) }
	if w.replicas > 0 {
		set("ORDERS_REPLICAS", fmt.Sprint(w.replicas))
	}
	if len(w.founders) > 0 {
		set("ORDERS_FOUNDERS", strings.Join(w.founders, ","))
	}
	if w.voters > 0 {
		set("ORDERS_VOTERS", fmt.Sprint(w.voters))
	}
	if w.ttl > 0 {
		set("ORDERS_SESSION_TTL", w.ttl.String())
	}
	if w.unused > 0 {
		set("ORDERS_STICKY_UNUSED", w.unused.String())
	}
	if !w.grace {
		set("ORDERS_GRACE", "none")
	}
	if os.Getenv(wantEnv) == "part" { // at a merge other steps need the processors, too
		vars = append(vars, "MT_SLOWER=3")
	}
	if w.callers > 0 {
		vars = append(vars, "MT_CALLERS="+fmt.Sprint(w.callers))
	}
	if w.durable {
		set("ORDERS_DIR", w.file("state-"+name))
	}
	if w.kinds { // without TLS, so that the forwarders can read the first request of a connection
		set("ORDERS_INSECURE", "true")
		set("ORDERS_BIND", m.ip+behindForwarder)
		set("ORDERS_ADVERTISE", m.ip+":7947")
	} else {
		set("ORDERS_SECRET", "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c")
	}
	return vars
}

// The method lose notes that the given instances may lose their locks from now on, because the test
// cuts them off.
func (w *world) lose(instances ...*instance) {
	for _, in := range instances {
		w.mayLose[in] = true
	}
}

func without(list []*instance, out ...*instance) []*instance {
	return slices.DeleteFunc(slices.Clone(list), func(in *instance) bool { return slices.Contains(out, in) })
}

func machinesOf(instances []*instance) []*machine {
	var machines []*machine
	for _, in := range instances {
		machines = append(machines, in.machine)
	}
	return machines
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

func (w *world) living() []*instance {
	var living []*instance
	for _, in := range w.lives {
		if !in.gone() {
			living = append(living, in)
		}
	}
	return living
}

func (w *world) tell() {
	for _, in := range w.lives {
		if !in.gone() {
			w.t.Logf("%s: %s", in.life, in.describe())
		}
		w.t.Logf("the log of %s ends:\n%s", in.life, in.logTail(12))
	}
}
