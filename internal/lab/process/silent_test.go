//go:build unix

package process

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// stopsEnv is the number of leaders that TestStoppedLeaderCostsOneFailover stops. If it is set, the
// test first waits until the voters have measured quiet minutes, and has a goal for the median.
const (
	stopsEnv  = "MORTISE_STOPS"
	stopsGoal = 200 * time.Millisecond
	quiet     = 2*time.Minute + 10*time.Second
)

// TestStoppedLeaderCostsOneFailover stops the process of the leader (SIGSTOP), so that its
// connections stay open, and measures the time until another instance is granted a lock.
func TestStoppedLeaderCostsOneFailover(t *testing.T) {
	f := startFleet(t)
	stops, measures := 2, false
	if n, err := strconv.Atoi(os.Getenv(stopsEnv)); err == nil {
		stops, measures = n, true
		f.leader()
		time.Sleep(quiet)
	}
	var took []time.Duration
	for i := range stops {
		leader := f.leader()
		survivor := f.instances[(leader+1+i%2)%3]
		survivor.lock(fmt.Sprint("before ", i)).unlock()
		time.Sleep(rand.N(100 * time.Millisecond)) // at any time between two heartbeats
		f.instances[leader].signal(syscall.SIGSTOP)
		stopped := time.Now()
		survivor.lock(fmt.Sprint("after ", i)).unlock()
		took = append(took, time.Since(stopped))
		time.Sleep(time.Until(stopped.Add(3 * time.Second))) // longer than every election timeout
		f.instances[leader].signal(syscall.SIGCONT)
		f.instances[leader].lock(fmt.Sprint("again ", i)).unlock()
	}
	slices.Sort(took)
	t.Logf("from the stop of the leader to the next grant: median %v of %v", took[len(took)/2], took)
	if longest := took[len(took)-1]; longest > slack*failover {
		t.Errorf("a grant took %v, more than %d failovers of %v", longest, slack, failover)
	}
	if measures && took[len(took)/2] > stopsGoal {
		t.Errorf("the median is above the goal of %v", stopsGoal)
	}
}
