//go:build linux

package proctest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	fleetEnv  = "MORTISE_FLEET" // number of instances; default 200
	fleetCrew = 5               // the founders, all of which vote
	fleetStep = 10              // number of instances that the deployment replaces at a time
	fleetSlow = "40"            // all pauses of an instance are longer by this factor
	fleetBorn = 45 * time.Second
	birthsEnv = "MORTISE_BIRTHS" // number of instances of TestAsManyBirthsAsFit
	// birthBytes is the resident memory of an instance with few locks, and of its machine.
	birthBytes = 30 << 20
	birthGoal  = 300 * time.Millisecond // for each instance, on two processors
	// birthsPerProcessor is how many instances one processor serves from their start on. With 150 for
	// each, leases end since no processor renews them in time; with 300 the leaders starve, too.
	birthsPerProcessor = 100
	// fleetSettled is longer than the time between two renewals, so that each instance has renewed
	// its lease since the births, which keep all processors busy.
	fleetSettled = 5 * time.Second
)

// TestFleet starts many instances simultaneously. The leader is killed, a deployment replaces all
// instances, a third of them is cut off for a while, and the new leader is killed.
func TestFleet(t *testing.T) {
	begin(t, alone)
	size := 200
	if text := os.Getenv(fleetEnv); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil || size < 3*fleetCrew {
			t.Fatalf("%s=%q is not a number from %d on", fleetEnv, text, 3*fleetCrew)
		}
	}
	var founders []string
	for i := range fleetCrew {
		founders = append(founders, fleetName(i))
	}
	w := newWorld(t, settings{founders: founders, voters: fleetCrew, fleet: true})
	w.net.roomForNeighbors()
	var machines []*machine
	for range size {
		machines = append(machines, w.machine())
	}
	w.list(machines[:fleetCrew]...) // Join names the founders

	fleet := make([]*instance, size)
	for i, m := range machines {
		fleet[i] = w.startSlow(i, m)
	}
	last := time.Now()
	w.waitReady(slack*fleetBorn, fleet...)
	t.Logf("births: %d instances on %d machines, the last one ready %v after the last start", size, size,
		sinceStart(fleet, last))

	time.Sleep(fleetSettled)
	w.killLeader(fleet)
	began := time.Now()
	w.deploy(fleet)
	t.Logf("deployment: %d instances replaced, %d at a time and each founder alone, in %v", size, fleetStep,
		time.Since(began).Round(time.Second))

	// A third of the instances is cut off, including two of the five voters. So the other instances
	// include a majority of the voters.
	leader := w.leader(fleet[:fleetCrew]...)
	cut := without(fleet[:fleetCrew], leader)[:2]
	cut = append(cut, fleet[size-size/3+2:]...)
	w.lose(cut...)
	w.net.part(machinesOf(cut))
	time.Sleep(25 * time.Second) // longer than the TTL and the LockDelay of the locks of that third
	for _, in := range cut[:3] {
		w.notGranted(in, time.Second)
	}
	w.keepsGranting(5*time.Second, without(fleet, cut...)[:fleetStep]...)
	began = time.Now()
	w.net.join(machinesOf(cut))
	w.waitAllReady(slack * fleetBorn)
	t.Logf("cut: %d instances, all ready again %v after the heal", len(cut), time.Since(began).Round(time.Millisecond))

	w.killLeader(fleet)
	w.verdict(slack * fleetBorn)
}

// TestManyBirths starts many instances simultaneously. Three of them found the group.
func TestManyBirths(t *testing.T) {
	for _, c := range []struct {
		n    int
		goal time.Duration // goal for the time from the last start until all are ready, on two processors
	}{{64, 15 * time.Second}, {100, 30 * time.Second}} {
		t.Run(fmt.Sprint(c.n), func(t *testing.T) {
			begin(t, whole)
			births(t, c.n, c.goal)
		})
	}
}

// TestAsManyBirthsAsFit starts MORTISE_BIRTHS instances simultaneously, or as many as the memory
// and the processors of this machine have room for.
func TestAsManyBirthsAsFit(t *testing.T) {
	begin(t, alone)
	n, err := strconv.Atoi(os.Getenv(birthsEnv))
	if err != nil || n < 3 {
		t.Skipf("%s is not the number of instances to start, such as 1000", birthsEnv)
	}
	memory, processors := int(available(t)/4*3/birthBytes), birthsPerProcessor*runtime.NumCPU()
	if room := min(memory, processors); room < n {
		t.Logf("%d instances are started instead of %d: three quarters of the free memory have room for %d, the "+
			"processors for %d", room, n, memory, processors)
		n = room
	}
	births(t, n, time.Duration(n)*birthGoal)
}

func births(t *testing.T, n int, goal time.Duration) {
	w := newWorld(t, settings{founders: []string{fleetName(0), fleetName(1), fleetName(2)}, fleet: true})
	w.net.roomForNeighbors()
	var machines []*machine
	for range n {
		machines = append(machines, w.machine())
	}
	w.list(machines[:3]...)
	fleet, first := make([]*instance, n), time.Now()
	for i, m := range machines {
		fleet[i] = w.startSlow(i, m)
	}
	last := time.Now()
	w.waitReady(slack*goal, fleet...)
	sum, most := int64(0), int64(0)
	for _, in := range fleet {
		b := resident(t, in.cmd.Process.Pid)
		sum, most = sum+b, max(most, b)
	}
	t.Logf("%d processes are ready %v after the last start (goal %v), and %v after the first; resident: %d MiB in all, "+
		"at most %d MiB each", n, sinceStart(fleet, last), goal, time.Since(first).Round(time.Millisecond), sum>>20, most>>20)
	w.verdict(slack * goal)
}

// available returns the memory that can be used without swapping.
func available(t *testing.T) int64 {
	t.Helper()
	return kilobytes(t, "/proc/meminfo", "MemAvailable:")
}

func resident(t *testing.T, pid int) int64 {
	t.Helper()
	return kilobytes(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
}

// kilobytes returns the number of bytes in a line such as "VmRSS: 20480 kB".
func kilobytes(t *testing.T, file, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == field {
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("%s has no line %s", file, field)
	return 0
}

func fleetName(i int) string { return fmt.Sprintf("pod-%d", i) }

// startSlow starts the i-th instance of a fleet, with a very small load.
func (w *world) startSlow(i int, m *machine) *instance {
	return w.start(fleetName(i), m, "MT_SLOWER="+fleetSlow, "MT_PROBE_EVERY=50ms")
}

func sinceStart(fleet []*instance, last time.Time) time.Duration {
	var longest time.Duration
	for _, in := range fleet {
		in.mu.Lock()
		longest = max(longest, in.readyAt.Sub(last))
		in.mu.Unlock()
	}
	return longest.Round(time.Millisecond)
}

func (w *world) killLeader(fleet []*instance) {
	w.t.Helper()
	leader := w.leader(fleet[:fleetCrew]...)
	at := slices.Index(fleet, leader)
	began := time.Now()
	w.kill(leader)
	w.granted(fleet[len(fleet)-1], slack*failover)
	grant := time.Since(began)
	fleet[at] = w.startSlow(at, leader.machine)
	w.waitAllReady(slack * fleetBorn)
	w.t.Logf("the leader was killed: a member was granted a lock %v later, all were ready %v later",
		grant.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// deploy replaces all instances by new processes on the same machines: one founder at a time, and
// then several other instances at a time.
func (w *world) deploy(fleet []*instance) {
	w.t.Helper()
	for from := 0; from < len(fleet); {
		to := from + 1
		if from >= fleetCrew {
			to = min(from+fleetStep, len(fleet))
		}
		w.leave(fleet[from:to]...)
		for i := from; i < to; i++ {
			fleet[i] = w.startSlow(i, fleet[i].machine)
		}
		w.waitReady(slack*readyTime, fleet[from:to]...)
		from = to
	}
}
